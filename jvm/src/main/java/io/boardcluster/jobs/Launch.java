package io.boardcluster.jobs;

import java.io.IOException;
import java.io.PrintStream;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;

/**
 * How every job begins and ends: arguments are judged before Spark starts, the context is stopped
 * whatever happens, and what the user can mend is said in one line.
 *
 * <p>Master, application name and every setting come from {@code spark-submit}.
 */
final class Launch {

    /** Exit status after an input that the job cannot work on. */
    static final int EXIT_INPUT = 1;

    /** Exit status after wrong arguments. */
    static final int EXIT_USAGE = 2;

    /** What a job does once there is a context. */
    @FunctionalInterface
    interface Job {
        void run(JavaSparkContext context) throws IOException;
    }

    /** Turns arguments into a job. */
    @FunctionalInterface
    interface Parser {
        Job parse() throws UsageException;
    }

    private Launch() {}

    /**
     * Runs a job. Failures of Spark and of the file system are thrown on, after the context was
     * stopped, so that {@code spark-submit} reports them and ends with a status other than zero.
     *
     * @param type the main class
     * @param usage the arguments as a user reads them
     * @param errors where wrong arguments and wrong input are said
     * @param parser judges the arguments
     * @return the exit status: zero if the job was done
     */
    static int run(Class<?> type, String usage, PrintStream errors, Parser parser)
            throws IOException {
        Job job;
        try {
            job = parser.parse();
        } catch (UsageException error) {
            errors.println(type.getSimpleName() + ": " + error.getMessage());
            errors.println(
                    "usage: spark-submit --class "
                            + type.getName()
                            + " boardcluster-jobs.jar "
                            + usage);
            return EXIT_USAGE;
        }
        try (JavaSparkContext context = new JavaSparkContext(settings())) {
            job.run(context);
        } catch (InputException error) {
            errors.println(type.getSimpleName() + ": " + error.getMessage());
            return EXIT_INPUT;
        }
        return 0;
    }

    /**
     * Sort-based shuffle in memory instead of one file per partition that is then copied into
     * another: on a board's SD card every byte written twice shows.
     */
    private static SparkConf settings() {
        return new SparkConf().setIfMissing("spark.shuffle.sort.bypassMergeThreshold", "1");
    }

    /** Ends the JVM if a job did not end well. */
    static void exit(int status) {
        if (status != 0) {
            System.exit(status);
        }
    }
}
