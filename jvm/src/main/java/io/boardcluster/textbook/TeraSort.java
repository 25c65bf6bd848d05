package io.boardcluster.textbook;

import org.apache.hadoop.io.Text;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaSparkContext;
import scala.Tuple2;

/** Spark's own sort by key over a pair per record. */
public final class TeraSort {

    private TeraSort() {}

    /**
     * Sorts records of 100 bytes.
     *
     * @param args input, output, and optionally the number of partitions, else that of the input
     */
    public static void main(String[] args) {
        try (JavaSparkContext context = new JavaSparkContext(new SparkConf())) {
            JavaPairRDD<byte[], byte[]> records = Keyed.read(context, args[0]);
            int wanted = args.length > 2 ? Integer.parseInt(args[2]) : records.getNumPartitions();
            records.sortByKey(new Keyed.Order(), true, wanted)
                    .mapToPair(pair -> new Tuple2<>(new Text(pair._1()), new Text(pair._2())))
                    .saveAsNewAPIHadoopFile(
                            args[1],
                            Text.class,
                            Text.class,
                            PairOutputFormat.class,
                            context.hadoopConfiguration());
        }
    }
}
