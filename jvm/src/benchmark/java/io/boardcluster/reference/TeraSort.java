package io.boardcluster.reference;

import org.apache.hadoop.io.Text;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;
import scala.Tuple2;

/** Spark's own sort by key over a pair per record. */
public final class TeraSort {

    private TeraSort() {}

    /**
     * Sorts records of 100 bytes.
     *
     * @param args input, output
     */
    public static void main(String[] args) {
        try (JavaSparkContext context = new JavaSparkContext(new SparkConf())) {
            Keyed.read(context, args[0])
                    .sortByKey(new Keyed.Order())
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
