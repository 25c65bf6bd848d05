package io.boardcluster.jobs;

import java.util.Objects;
import org.apache.spark.Partitioner;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.rdd.RDD;
import org.apache.spark.rdd.ShuffledRDD;
import org.apache.spark.serializer.KryoSerializer;
import scala.Tuple2;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/**
 * A shuffle of byte arrays to partitions named by number.
 *
 * <p>It uses Kryo whatever the application uses: Java's own serialisation holds on to a hundred
 * arrays at a time, and keeps Spark from sorting a task's output in its serialised form.
 */
final class BlockShuffle {

    private BlockShuffle() {}

    /** {@return the arrays, each in the partition that its number says} */
    static JavaRDD<byte[]> toPartitions(JavaPairRDD<Integer, byte[]> numbered, int partitions) {
        ClassTag<Integer> number = ClassTag$.MODULE$.apply(Integer.class);
        ClassTag<byte[]> array = ClassTag$.MODULE$.apply(byte[].class);
        RDD<Tuple2<Integer, byte[]>> shuffled =
                new ShuffledRDD<>(numbered.rdd(), new ByNumber(partitions), number, array, array)
                        .setSerializer(new KryoSerializer(numbered.rdd().conf()));
        return JavaPairRDD.fromRDD(shuffled, number, array).map(Tuple2::_2);
    }

    private static final class ByNumber extends Partitioner {

        private static final long serialVersionUID = 1L;

        private final int partitions;

        ByNumber(int partitions) {
            this.partitions = partitions;
        }

        @Override
        public int numPartitions() {
            return partitions;
        }

        @Override
        public int getPartition(Object key) {
            return Objects.checkIndex((Integer) key, partitions);
        }
    }
}
