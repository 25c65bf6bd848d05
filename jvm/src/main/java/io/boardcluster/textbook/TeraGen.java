package io.boardcluster.textbook;

import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.io.Text;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;

/** A key and a value per row, as {@code teragen} of Hadoop's examples does it. */
public final class TeraGen {

    private TeraGen() {}

    /**
     * Makes the input of the sort benchmark.
     *
     * @param args number of rows, output, and optionally the number of partitions
     */
    public static void main(String[] args) {
        long rows = Long.parseLong(args[0]);
        try (JavaSparkContext context = new JavaSparkContext(new SparkConf())) {
            int partitions =
                    args.length > 2
                            ? Integer.parseInt(args[2])
                            : Math.max(2, context.defaultParallelism());
            List<Integer> numbers = new ArrayList<>();
            for (int number = 0; number < partitions; number++) {
                numbers.add(number);
            }
            context.parallelize(numbers, partitions)
                    .flatMapToPair(
                            number ->
                                    new Rows(
                                            rows * number / partitions,
                                            rows * (number + 1) / partitions))
                    .saveAsNewAPIHadoopFile(
                            args[1],
                            Text.class,
                            Text.class,
                            PairOutputFormat.class,
                            context.hadoopConfiguration());
        }
    }
}
