package io.boardcluster.jobs;

import java.io.IOException;
import java.io.PrintStream;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;

/**
 * Counts how often each word occurs in a text: split, count within a task, shuffle by word, add up.
 *
 * <p>Input is UTF-8 text: a file, a folder or a pattern, as Hadoop's text input format takes it.
 * Output is a folder of UTF-8 text files with one line {@code word<TAB>count} per distinct word, in
 * no particular order; the count is in occurrences (64 bits).
 *
 * <p>A word is a maximal run of characters other than space, tab, line feed, carriage return and
 * form feed. Every other character, the vertical tab and the no-break space among them, belongs to
 * a word. No word is empty.
 *
 * <p>Words stay bytes from the input to the output: no string, pair or boxed number is made per
 * word. Source: {@code org.apache.hadoop.examples.WordCount} of Apache Hadoop for the words and the
 * form of the output.
 */
public final class WordCount {

    /** Text of a partition after the shuffle: in the worst case its words are all distinct. */
    private static final long PARTITION_BYTES = 16L << 20;

    private WordCount() {}

    /**
     * Runs the job and ends the JVM with status 2 after wrong arguments. A failure of the job is
     * thrown on, after the Spark context was stopped, so that {@code spark-submit} reports it and
     * ends with a status other than zero.
     *
     * @param args path of the input, path of the output folder, which must not exist
     * @throws IOException if the input cannot be listed
     */
    public static void main(String[] args) throws IOException {
        Launch.exit(run(args, System.err));
    }

    static int run(String[] args, PrintStream errors) throws IOException {
        return Launch.run(WordCount.class, "<input> <output>", errors, () -> parse(args));
    }

    private static Launch.Job parse(String[] args) throws UsageException {
        Arguments given = new Arguments(args, 2, 2);
        String input = given.path(0, "input");
        String output = given.path(1, "output");
        return context -> count(context, input, output);
    }

    private static void count(JavaSparkContext context, String input, String output)
            throws IOException {
        long bytes = TextInput.bytes(context, input);
        long least = Records.ceilDiv(bytes, PARTITION_BYTES);
        int partitions = (int) Math.max(context.defaultParallelism(), least);
        JavaPairRDD<Integer, byte[]> counted =
                TextInput.open(context, input, bytes)
                        .mapPartitionsToPair(lines -> new CountedWords(lines, partitions));
        JavaRDD<byte[]> shuffled = BlockShuffle.toPartitions(counted, partitions);
        RawOutputFormat.save(
                shuffled.mapPartitionsToPair(CountLines::new),
                output,
                context.hadoopConfiguration());
    }
}
