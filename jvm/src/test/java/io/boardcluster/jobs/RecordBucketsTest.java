package io.boardcluster.jobs;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.io.NullWritable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import scala.Tuple2;

class RecordBucketsTest {

    private static KeyRanges even(int partitions) {
        long[] prefixes = new long[partitions];
        for (int place = 0; place < partitions; place++) {
            prefixes[place] = prefix(place, partitions);
        }
        return new KeyRanges(prefixes, new int[partitions], partitions);
    }

    /** {@return the smallest prefix of a partition} */
    private static long prefix(int partition, int partitions) {
        return partition * Long.divideUnsigned(-1L, partitions);
    }

    private static List<Tuple2<NullWritable, Block>> blocks(byte[] records) {
        List<Tuple2<NullWritable, Block>> blocks = new ArrayList<>();
        for (int from = 0; from < records.length; from += Block.BYTES) {
            int count = Math.min(Block.BYTES, records.length - from);
            Block block = new Block(count);
            block.append(records, from, count);
            block.offset = from;
            blocks.add(new Tuple2<>(NullWritable.get(), block));
        }
        return blocks;
    }

    /** Goes round the partitions; the number in the value part shows the order. */
    private static byte[] records(int count, int partitions) {
        ByteBuffer records = ByteBuffer.allocate(count * Records.LENGTH);
        for (int number = 0; number < count; number++) {
            records.putLong(number * Records.LENGTH, prefix(number % partitions, partitions));
            records.putInt(number * Records.LENGTH + 96, number);
        }
        return records.array();
    }

    @ParameterizedTest
    @CsvSource({"1, 1", "1, 3", "20000, 3", "20000, 2000", "600000, 900"})
    void everyRecordGetsToItsPartitionInOrder(int count, int partitions) {
        byte[] records = records(count, partitions);
        Map<Integer, ByteArrayOutputStream> had = new TreeMap<>();
        new RecordBuckets(blocks(records).iterator(), even(partitions), partitions)
                .forEachRemaining(
                        part -> {
                            assertEquals(0, part._2().length % Records.LENGTH);
                            assertTrue(part._2().length <= RecordBuckets.RECORDS * Records.LENGTH);
                            had.computeIfAbsent(part._1(), to -> new ByteArrayOutputStream())
                                    .writeBytes(part._2());
                        });

        assertEquals(Math.min(count, partitions), had.size());
        had.forEach(
                (partition, bytes) -> {
                    ByteArrayOutputStream expected = new ByteArrayOutputStream();
                    for (int number = partition; number < count; number += partitions) {
                        expected.write(records, number * Records.LENGTH, Records.LENGTH);
                    }
                    assertArrayEquals(expected.toByteArray(), bytes.toByteArray());
                });
    }

    /** A terabyte in partitions of 32 MiB; with a full buffer for each they would take 2 GB. */
    @Test
    void manyPartitionsDoNotTakeAFullBufferEach() {
        int partitions = 32_768;
        int[] counts = new int[partitions];
        List<Tuple2<NullWritable, Block>> blocks = blocks(records(partitions, partitions));
        new RecordBuckets(blocks.iterator(), even(partitions), partitions)
                .forEachRemaining(part -> counts[part._1()] += part._2().length / Records.LENGTH);

        for (int partition = 0; partition < partitions; partition++) {
            assertEquals(1, counts[partition]);
        }
    }
}
