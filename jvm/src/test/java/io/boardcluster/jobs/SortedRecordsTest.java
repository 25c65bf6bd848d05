package io.boardcluster.jobs;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.ByteArrayOutputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SortedRecordsTest {

    private static byte[] sorted(List<byte[]> blocks) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        new SortedRecords(blocks.iterator())
                .forEachRemaining(pair -> bytes.write(pair._2().bytes, 0, pair._2().length));
        return bytes.toByteArray();
    }

    /** Numbers in the value part show that records of one key stay in the order they came in. */
    @ParameterizedTest
    @CsvSource({"1, 256", "2, 256", "700, 2", "3000, 256", "20000, 1", "20000, 3", "50000, 256"})
    void recordsComeInTheOrderOfTheirKeys(int count, int values) {
        Random random = new Random(count);
        List<byte[]> records = new ArrayList<>();
        List<byte[]> blocks = new ArrayList<>();
        ByteArrayOutputStream block = new ByteArrayOutputStream();
        int room = 1;
        for (int number = 0; number < count; number++) {
            byte[] record = new byte[Records.LENGTH];
            for (int at = 0; at < Records.KEY_LENGTH; at++) {
                record[at] = (byte) (random.nextInt(values) * (256 / values));
            }
            record[98] = (byte) (number >>> 8);
            record[99] = (byte) number;
            record[97] = (byte) (number >>> 16);
            records.add(record);
            block.writeBytes(record);
            if (block.size() == room * Records.LENGTH) {
                blocks.add(block.toByteArray());
                block.reset();
                room = 1 + random.nextInt(RecordBuckets.RECORDS);
            }
        }
        blocks.add(block.toByteArray());

        records.sort((left, right) -> Arrays.compareUnsigned(left, 0, 10, right, 0, 10));
        ByteArrayOutputStream expected = new ByteArrayOutputStream();
        records.forEach(expected::writeBytes);
        assertArrayEquals(expected.toByteArray(), sorted(blocks));
    }

    @Test
    void keysThatDifferOnlyInTheirLowestBitAreToldApart() {
        byte[] high = new byte[Records.LENGTH];
        byte[] low = new byte[Records.LENGTH];
        Arrays.fill(high, (byte) 0xFF);
        Arrays.fill(low, (byte) 0xFF);
        low[9] = (byte) 0xFE;
        byte[] zero = new byte[Records.LENGTH];
        byte[] expected = new byte[3 * Records.LENGTH];
        System.arraycopy(low, 0, expected, 100, 100);
        System.arraycopy(high, 0, expected, 200, 100);

        assertArrayEquals(expected, sorted(List.of(high, zero, low)));
    }

    @Test
    void nothingGivesNothing() {
        SortedRecords none = new SortedRecords(List.<byte[]>of().iterator());
        assertFalse(none.hasNext());
        assertThrows(NoSuchElementException.class, none::next);
    }
}
