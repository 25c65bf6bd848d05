package io.boardcluster.jobs;

import java.io.IOException;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.stream.IntStream;
import org.apache.spark.api.java.JavaSparkContext;

/**
 * Estimates Pi from the share of random points of the unit square that lie within a quarter circle.
 *
 * <p>Each partition draws from its own generator, so that the count depends on the arguments alone
 * and can be made again elsewhere: partition p, from 0, starts at s = mix(seed + (p + 1) * GOLDEN);
 * a draw adds GOLDEN to s and is the 53 highest bits of mix(s) as a fraction; a point is two draws,
 * and counts if x * x + y * y is at most 1.
 *
 * <p>Source: SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
 * OOPSLA 2014) for the generator; {@code JavaSparkPi} of Apache Spark for the method; {@code
 * QuasiMonteCarlo} of Apache Hadoop's examples for the form of the result.
 */
public final class Pi {

    private static final long GOLDEN = 0x9e3779b97f4a7c15L;
    private static final int DECIMALS = 20;

    private Pi() {}

    /**
     * Runs the job; ends the JVM with status 2 after wrong arguments.
     *
     * @param args number of partitions, samples of each partition, seed
     * @throws IOException never
     */
    public static void main(String[] args) throws IOException {
        Launch.exit(run(args, System.out, System.err));
    }

    static int run(String[] args, PrintStream out, PrintStream errors) throws IOException {
        return Launch.run(
                Pi.class, "<partitions> <samples> <seed>", errors, () -> parse(args, out));
    }

    private static Launch.Job parse(String[] args, PrintStream out) throws UsageException {
        Arguments given = new Arguments(args, 3, 3);
        int partitions = given.count(0, "the number of partitions");
        long most = Long.MAX_VALUE / partitions;
        long samples = given.number(1, "the number of samples of each partition", 1, most);
        long seed = given.number(2, "the seed", Long.MIN_VALUE, Long.MAX_VALUE);
        return context -> {
            long inside = count(context, partitions, samples, seed);
            long total = partitions * samples;
            out.println("inside " + inside + " of " + total);
            out.println("Estimated value of Pi is " + estimate(inside, total));
        };
    }

    private static long count(JavaSparkContext context, int partitions, long samples, long seed) {
        return context.parallelize(IntStream.range(0, partitions).boxed().toList(), partitions)
                .map(partition -> inside(partition, samples, seed))
                .reduce(Long::sum);
    }

    /** {@return how many of a partition's points lie within the quarter circle} */
    static long inside(int partition, long samples, long seed) {
        long state = mix(seed + (partition + 1) * GOLDEN);
        long inside = 0;
        for (long sample = 0; sample < samples; sample++) {
            state += GOLDEN;
            double x = (mix(state) >>> 11) * 0x1.0p-53;
            state += GOLDEN;
            double y = (mix(state) >>> 11) * 0x1.0p-53;
            if (x * x + y * y <= 1.0) {
                inside++;
            }
        }
        return inside;
    }

    private static long mix(long value) {
        long mixed = (value ^ (value >>> 30)) * 0xbf58476d1ce4e5b9L;
        mixed = (mixed ^ (mixed >>> 27)) * 0x94d049bb133111ebL;
        return mixed ^ (mixed >>> 31);
    }

    /** {@return four times the share, with 20 decimals} */
    static BigDecimal estimate(long inside, long total) {
        return BigDecimal.valueOf(4)
                .setScale(DECIMALS)
                .multiply(BigDecimal.valueOf(inside))
                .divide(BigDecimal.valueOf(total), RoundingMode.HALF_UP);
    }
}
