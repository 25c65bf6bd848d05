package io.boardcluster.jobs;

import java.io.IOException;
import java.io.PrintStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.HashPartitioner;
import org.apache.spark.api.java.JavaSparkContext;

/**
 * Checks that records are in order within and across the files of a folder, and adds up their
 * checksums.
 *
 * <p>Output is one file {@code part-r-00000} in the form of {@code teravalidate} of Hadoop's
 * examples: a line {@code checksum<TAB>hex}, the sum of the CRC-32 of every record, and an {@code
 * error} for every record below the one before it and every file that begins below the end of the
 * file before it. A file may be read by several tasks; the report does not show it.
 *
 * <p>Source: {@code org.apache.hadoop.examples.terasort.TeraValidate} of Apache Hadoop.
 */
public final class TeraValidate {

    private static final String ALL = "";

    private TeraValidate() {}

    /**
     * Runs the job; ends the JVM with status 2 after wrong arguments, and 1 after an input of other
     * than whole records. Records out of order are no failure of the job: the report says them.
     *
     * @param args input folder, output folder, which must not exist
     * @throws IOException if a file cannot be read or written
     */
    public static void main(String[] args) throws IOException {
        Launch.exit(run(args, System.err));
    }

    static int run(String[] args, PrintStream errors) throws IOException {
        return Launch.run(TeraValidate.class, "<input> <output>", errors, () -> parse(args));
    }

    private static Launch.Job parse(String[] args) throws UsageException {
        Arguments given = new Arguments(args, 2, 2);
        String input = given.path(0, "input");
        String output = given.path(1, "output");
        return context -> validate(context, input, output);
    }

    private static void validate(JavaSparkContext context, String input, String output)
            throws IOException {
        long bytes =
                RecordInputFormat.list(context.hadoopConfiguration(), input, ALL).stream()
                        .mapToLong(FileStatus::getLen)
                        .sum();
        RawOutputFormat.save(
                RecordInputFormat.open(context, input, ALL, bytes)
                        .mapPartitionsToPair(OrderCheck::new)
                        .repartitionAndSortWithinPartitions(new HashPartitioner(1))
                        .mapPartitionsToPair(OrderReport::new),
                output,
                context.hadoopConfiguration());
    }
}
