package io.boardcluster.jobs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import org.junit.jupiter.api.Test;

class KeyRangesTest {

    private static final long[] PREFIXES = {1, 5, 5, 5, 9, 0x7FFFFFFFFFFFFFFFL, -2L, -1L};
    private static final int[] TAILS = {0, 3, 3, 3, 0, 0, 7, 65535};

    /** Eight samples and eight partitions: the points are the samples but the first. */
    private static KeyRanges ranges() {
        return new KeyRanges(PREFIXES, TAILS, 8);
    }

    @Test
    void aKeyGoesBehindAllPointsUpToIt() {
        assertEquals(0, ranges().partition(0, 0, 0));
        assertEquals(0, ranges().partition(5, 2, 0));
        assertEquals(3, ranges().partition(5, 4, 0));
        assertEquals(3, ranges().partition(8, 65535, 1));
        assertEquals(4, ranges().partition(9, 0, 1));
        assertEquals(4, ranges().partition(9, 1, 1));
        assertEquals(5, ranges().partition(Long.MIN_VALUE, 0, 1));
        assertEquals(5, ranges().partition(-2L, 6, 1));
        assertEquals(6, ranges().partition(-2L, 7, 1));
        assertEquals(7, ranges().partition(-1L, 65535, 1));
    }

    @Test
    void recordsOfAKeyOfSeveralPointsAreDealtOut() {
        int[] dealt = new int[8];
        for (int ordinal = 0; ordinal < 300; ordinal++) {
            dealt[ranges().partition(5, 3, ordinal)]++;
        }
        assertEquals("[0, 100, 100, 100, 0, 0, 0, 0]", Arrays.toString(dealt));
    }

    @Test
    void onePartitionOrNoSampleTakesEverything() {
        assertEquals(0, new KeyRanges(PREFIXES, TAILS, 1).partition(-1L, 65535, 3));
        assertEquals(0, new KeyRanges(new long[0], new int[0], 4).partition(-1L, 65535, 3));
    }

    @Test
    void fewSamplesForManyPartitionsKeepTheOrder() {
        KeyRanges ranges = new KeyRanges(new long[] {10, 20}, new int[] {0, 0}, 7);
        int before = 0;
        for (long prefix = 0; prefix < 30; prefix++) {
            int partition = ranges.partition(prefix, 0, 0);
            assertTrue(partition >= before && partition < 7, prefix + ": " + partition);
            before = partition;
        }
    }
}
