package io.boardcluster.jobs;

import java.io.IOException;
import java.io.PrintStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapreduce.Job;

/**
 * How every MapReduce job of ours begins and ends: arguments are judged before anything is
 * submitted, and what the user can mend is said in one line. Every setting comes from the
 * configuration that it is submitted with.
 */
final class Submission {

    /** Turns arguments into a job. */
    @FunctionalInterface
    interface Parser {
        Job parse(Configuration settings) throws UsageException, IOException;
    }

    private Submission() {}

    /**
     * Submits a job and waits for its end.
     *
     * @param type the main class
     * @param usage the arguments as a user reads them
     * @param errors where wrong arguments are said
     * @param settings the configuration
     * @param parser judges the arguments and makes the job
     * @return the exit status: zero if the job was done
     */
    static int run(
            Class<?> type, String usage, PrintStream errors, Configuration settings, Parser parser)
            throws IOException {
        try {
            Job job = parser.parse(settings);
            job.setJobName(type.getSimpleName());
            job.setJarByClass(type);
            return job.waitForCompletion(true) ? 0 : Launch.EXIT_INPUT;
        } catch (UsageException error) {
            errors.println(type.getSimpleName() + ": " + error.getMessage());
            errors.println("usage: hadoop jar boardcluster-jobs.jar " + type.getName() + " " + usage);
            return Launch.EXIT_USAGE;
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new IOException("interrupted while the job ran", error);
        } catch (ClassNotFoundException error) {
            throw new IOException(error);
        }
    }
}
