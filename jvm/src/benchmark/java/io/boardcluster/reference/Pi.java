package io.boardcluster.reference;

import java.util.stream.IntStream;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;

/** As {@code JavaSparkPi} of Apache Spark's examples: an element per sample. */
public final class Pi {

    private Pi() {}

    private static boolean isInside() {
        double x = Math.random() * 2 - 1;
        double y = Math.random() * 2 - 1;
        return x * x + y * y <= 1;
    }

    /**
     * Estimates Pi.
     *
     * @param args number of partitions, samples of each partition; a seed is not used
     */
    public static void main(String[] args) {
        int partitions = Integer.parseInt(args[0]);
        int samples = Math.multiplyExact(partitions, Integer.parseInt(args[1]));
        try (JavaSparkContext context = new JavaSparkContext(new SparkConf())) {
            long inside =
                    context.parallelize(IntStream.range(0, samples).boxed().toList(), partitions)
                            .filter(sample -> isInside())
                            .count();
            System.out.println("Pi is roughly " + 4.0 * inside / samples);
        }
    }
}
