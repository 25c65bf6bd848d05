package io.boardcluster.jobs;

import java.io.IOException;
import java.io.PrintStream;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;

/**
 * Sorts records of 100 bytes by their keys, the first 10 bytes, in the order of unsigned bytes.
 *
 * <p>Input is every file {@code part-*} of a folder; output is {@code part-r-00000} and so on, in
 * order within and across files. Every record is kept, equal ones included; the order of records of
 * one key is not defined. Without a number of partitions there are enough that each holds 32 MiB at
 * most if the sample is fair, and at least as many as the application has cores.
 *
 * <p>Source: {@code org.apache.hadoop.examples.terasort.TeraSort} of Apache Hadoop for input and
 * output, and for ranges of keys taken from a sample.
 */
public final class TeraSort {

    private static final String PARTS = "part-";
    private static final long PARTITION_BYTES = 32L << 20;

    private TeraSort() {}

    /**
     * Runs the job; ends the JVM with status 2 after wrong arguments, and 1 after an input of other
     * than whole records.
     *
     * @param args input folder, output folder, which must not exist, and optionally the number of
     *     partitions
     * @throws IOException if a file cannot be read or written
     */
    public static void main(String[] args) throws IOException {
        Launch.exit(run(args, System.err));
    }

    static int run(String[] args, PrintStream errors) throws IOException {
        return Launch.run(
                TeraSort.class, "<input> <output> [partitions]", errors, () -> parse(args));
    }

    private static Launch.Job parse(String[] args) throws UsageException {
        Arguments given = new Arguments(args, 2, 3);
        String input = given.path(0, "input");
        String output = given.path(1, "output");
        int wanted = given.has(2) ? given.count(2, "the number of partitions") : 0;
        return context -> sort(context, input, output, wanted);
    }

    private static void sort(JavaSparkContext context, String input, String output, int wanted)
            throws IOException {
        Configuration settings = context.hadoopConfiguration();
        List<FileStatus> files = RecordInputFormat.list(settings, input, PARTS);
        if (files.isEmpty()) {
            throw new InputException(input + " has no file whose name begins with " + PARTS);
        }
        long bytes = files.stream().mapToLong(FileStatus::getLen).sum();
        int partitions = wanted == 0 ? partitions(bytes, context.defaultParallelism()) : wanted;
        KeyRanges ranges = KeySample.ranges(files, settings, partitions);
        JavaPairRDD<Integer, byte[]> buckets =
                RecordInputFormat.open(context, input, PARTS, bytes)
                        .mapPartitionsToPair(
                                blocks -> new RecordBuckets(blocks, ranges, partitions));
        JavaRDD<byte[]> shuffled = BlockShuffle.toPartitions(buckets, partitions);
        RawOutputFormat.save(shuffled.mapPartitionsToPair(SortedRecords::new), output, settings);
    }

    /** {@return how many partitions hold the input in small heaps and keep every core at work} */
    static int partitions(long bytes, int cores) {
        return (int) Math.max(cores, Records.ceilDiv(bytes, PARTITION_BYTES));
    }
}
