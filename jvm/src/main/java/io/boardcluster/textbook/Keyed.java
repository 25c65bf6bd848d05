package io.boardcluster.textbook;

import java.io.Serializable;
import java.util.Arrays;
import java.util.Comparator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.mapreduce.lib.input.FixedLengthInputFormat;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaSparkContext;
import scala.Tuple2;

/** Records of 100 bytes as pairs of a key of 10 bytes and a value of 90. */
final class Keyed {

    private Keyed() {}

    static JavaPairRDD<byte[], byte[]> read(JavaSparkContext context, String input) {
        Configuration settings = new Configuration(context.hadoopConfiguration());
        FixedLengthInputFormat.setRecordLength(settings, 100);
        return context.newAPIHadoopFile(
                        input,
                        FixedLengthInputFormat.class,
                        LongWritable.class,
                        BytesWritable.class,
                        settings)
                .mapToPair(pair -> cut(pair._2().getBytes()));
    }

    private static Tuple2<byte[], byte[]> cut(byte[] record) {
        return new Tuple2<>(
                Arrays.copyOfRange(record, 0, 10), Arrays.copyOfRange(record, 10, 100));
    }

    /** The order of keys. */
    static final class Order implements Comparator<byte[]>, Serializable {

        private static final long serialVersionUID = 1L;

        @Override
        public int compare(byte[] left, byte[] right) {
            return Arrays.compareUnsigned(left, right);
        }
    }
}
