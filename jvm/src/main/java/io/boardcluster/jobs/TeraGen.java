package io.boardcluster.jobs;

import java.io.IOException;
import java.io.PrintStream;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.api.java.JavaSparkContext;

/**
 * Makes the input of the sort benchmark: rows of 100 bytes, the same as {@code teragen} of Hadoop's
 * examples makes for the same row numbers, in files {@code part-m-00000} and so on, each a range of
 * rows cut as {@code teragen} cuts it.
 *
 * <p>Without a number of partitions there are as many as the application has cores, and at least
 * two, which is {@code teragen}'s own default.
 */
public final class TeraGen {

    private static final int LEAST_PARTITIONS = 2;

    private TeraGen() {}

    /**
     * Runs the job; ends the JVM with status 2 after wrong arguments.
     *
     * @param args number of rows, output folder, which must not exist, and optionally the number of
     *     partitions
     * @throws IOException if a file cannot be written
     */
    public static void main(String[] args) throws IOException {
        Launch.exit(run(args, System.err));
    }

    static int run(String[] args, PrintStream errors) throws IOException {
        return Launch.run(
                TeraGen.class, "<rows> <output> [partitions]", errors, () -> parse(args));
    }

    private static Launch.Job parse(String[] args) throws UsageException {
        Arguments given = new Arguments(args, 2, 3);
        long rows = given.number(0, "the number of rows", 0, Long.MAX_VALUE / Records.LENGTH);
        String output = given.path(1, "output");
        int wanted = given.has(2) ? given.count(2, "the number of partitions") : 0;
        return context -> {
            int least = Math.max(LEAST_PARTITIONS, context.defaultParallelism());
            generate(context, rows, output, wanted == 0 ? least : wanted);
        };
    }

    private static void generate(
            JavaSparkContext context, long rows, String output, int partitions) {
        RawOutputFormat.save(
                context.parallelize(ranges(rows, partitions), partitions)
                        .flatMapToPair(Rows::new),
                output,
                context.hadoopConfiguration(),
                'm');
    }

    /** Cuts as {@code TeraGen.RangeInputFormat} does, rounding included. */
    static List<Range> ranges(long rows, int partitions) {
        List<Range> ranges = new ArrayList<>(partitions);
        long first = 0;
        for (int number = 1; number <= partitions; number++) {
            long end = (long) Math.ceil(rows * (double) number / partitions);
            // Beyond 2^53 rows the quotient is rounded to a double.
            end = number == partitions ? rows : Math.min(rows, end);
            ranges.add(new Range(first, end));
            first = end;
        }
        return ranges;
    }

    /** Row numbers from {@code first} up to but not including {@code end}. */
    static final class Range implements Serializable {

        private static final long serialVersionUID = 1L;

        final long first;
        final long end;

        Range(long first, long end) {
            this.first = first;
            this.end = end;
        }
    }

    private static final class Rows extends BlockSource {

        private final RowGenerator generator;
        private long remaining;

        Rows(Range range) {
            super(Block.BYTES);
            generator = new RowGenerator(range.first);
            remaining = range.end - range.first;
        }

        @Override
        void fill(Block empty) {
            int rows = (int) Math.min(remaining, Block.BYTES / Records.LENGTH);
            for (int row = 0; row < rows; row++) {
                generator.write(empty.bytes, row * Records.LENGTH);
            }
            empty.length = rows * Records.LENGTH;
            remaining -= rows;
        }
    }
}
