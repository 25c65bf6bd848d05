package io.boardcluster.textbook;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;

/** As {@code SparkPi} of Apache Spark's examples: an element per sample, mapped and added up. */
public final class Pi {

    private static final int DECIMALS = 20;

    private Pi() {}

    private static long inside() {
        double x = ThreadLocalRandom.current().nextDouble() * 2 - 1;
        double y = ThreadLocalRandom.current().nextDouble() * 2 - 1;
        return x * x + y * y <= 1 ? 1 : 0;
    }

    /**
     * Estimates Pi, and prints the count that the estimate follows from.
     *
     * @param args number of partitions, samples of each partition; a seed is not used
     */
    public static void main(String[] args) {
        int partitions = Integer.parseInt(args[0]);
        long samples = Math.multiplyExact((long) partitions, Long.parseLong(args[1]));
        try (JavaSparkContext context = new JavaSparkContext(new SparkConf())) {
            long inside =
                    context.sc()
                            .range(0, samples, 1, partitions)
                            .toJavaRDD()
                            .map(sample -> inside())
                            .reduce(Long::sum);
            System.out.println("inside " + inside + " of " + samples);
            System.out.println(
                    "Estimated value of Pi is "
                            + BigDecimal.valueOf(4)
                                    .setScale(DECIMALS)
                                    .multiply(BigDecimal.valueOf(inside))
                                    .divide(BigDecimal.valueOf(samples), RoundingMode.HALF_UP));
        }
    }
}
