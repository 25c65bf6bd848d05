package io.boardcluster.jobs;

import java.io.PrintStream;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;
import scala.Tuple2;

/**
 * Counts how often each word occurs in a text, in the classic Spark form: split, map to pairs,
 * reduce by key.
 *
 * <p>Input is UTF-8 text: a file, a folder or a pattern, as Hadoop's text input format takes it.
 * Output is a folder of UTF-8 text files with one line {@code word<TAB>count} per distinct word, in
 * no particular order; the count is in occurrences (64 bits). What a word is says {@link
 * WordIterator}. Master, application name and every setting come from {@code spark-submit}.
 *
 * <p>Source: {@code org.apache.hadoop.examples.WordCount} of Apache Hadoop for the words and the
 * form of the output; {@code org.apache.spark.examples.JavaWordCount} of Apache Spark for the form
 * of the job.
 */
public final class WordCount {

    /** Exit status after wrong arguments. */
    static final int EXIT_USAGE = 2;

    private static final String USAGE =
            "usage: spark-submit --class io.boardcluster.jobs.WordCount boardcluster-jobs.jar"
                    + " <input> <output>";

    private WordCount() {}

    /**
     * Runs the job and ends the JVM with status 2 after wrong arguments. A failure of the job is
     * thrown on, after the Spark context was stopped, so that {@code spark-submit} reports it and
     * ends with a status other than zero.
     *
     * @param args path of the input, path of the output folder, which must not exist
     */
    public static void main(String[] args) {
        int status = run(args, System.err);
        if (status != 0) {
            System.exit(status);
        }
    }

    static int run(String[] args, PrintStream errors) {
        if (args.length != 2) {
            errors.println("WordCount: 2 arguments are needed, " + args.length + " were given");
            errors.println(USAGE);
            return EXIT_USAGE;
        }
        if (args[0].isBlank() || args[1].isBlank()) {
            errors.println("WordCount: the path of the input or of the output is empty");
            errors.println(USAGE);
            return EXIT_USAGE;
        }
        try (JavaSparkContext context = new JavaSparkContext(new SparkConf())) {
            count(context, args[0], args[1]);
        }
        return 0;
    }

    private static void count(JavaSparkContext context, String input, String output) {
        context.textFile(input)
                .flatMap(WordIterator::new)
                .mapToPair(word -> new Tuple2<>(word, 1L))
                .reduceByKey(Long::sum)
                .map(pair -> pair._1() + '\t' + pair._2())
                .saveAsTextFile(output);
    }
}
