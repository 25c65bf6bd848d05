package io.boardcluster.jobs;

import java.io.Serializable;

/**
 * Which partition a key goes to, so that the partitions in their order hold the keys in theirs.
 *
 * <p>Partition p holds the keys from point p - 1 up to but not including point p. Where many
 * records share one key, several points are equal to it; its records are then dealt out to all partitions
 * between those points, so that none grows beyond the others.
 */
final class KeyRanges implements Serializable {

    private static final long serialVersionUID = 1L;

    private static final int TABLE_BITS = 16;
    private static final int TABLE_SHIFT = Long.SIZE - TABLE_BITS;

    private final long[] prefixes;
    private final int[] tails;

    /** Number of points whose first 16 bits are below the index; made where it is used. */
    private transient int[] below;

    /**
     * Takes the keys that divide a sample into equal parts.
     *
     * @param sortedPrefixes first 8 bytes of the sampled keys, which are in order
     * @param sortedTails last 2 bytes of the same keys
     * @param partitions how many to make
     */
    KeyRanges(long[] sortedPrefixes, int[] sortedTails, int partitions) {
        int samples = sortedPrefixes.length;
        int points = samples == 0 ? 0 : partitions - 1;
        prefixes = new long[points];
        tails = new int[points];
        for (int point = 0; point < points; point++) {
            int place = (int) ((point + 1L) * samples / partitions);
            prefixes[point] = sortedPrefixes[place];
            tails[point] = sortedTails[place];
        }
    }

    /**
     * {@return the partition of a key}
     *
     * @param ordinal any number that differs between records of one key, the same in every attempt
     */
    int partition(long prefix, int tail, long ordinal) {
        int[] table = table();
        int slot = (int) (prefix >>> TABLE_SHIFT);
        int low = table[slot];
        int high = table[slot + 1];
        while (low < high) { // to the number of points up to and including the key
            int middle = (low + high) >>> 1;
            if (Records.compare(prefixes[middle], tails[middle], prefix, tail) <= 0) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if (low < 2 || !isPoint(low - 2, prefix, tail)) {
            return low;
        }
        int equal = 2;
        while (low > equal && isPoint(low - equal - 1, prefix, tail)) {
            equal++;
        }
        return low - (int) (ordinal % equal);
    }

    private boolean isPoint(int point, long prefix, int tail) {
        return prefixes[point] == prefix && tails[point] == tail;
    }

    private int[] table() {
        if (below == null) {
            int[] made = new int[(1 << TABLE_BITS) + 1];
            for (long prefix : prefixes) {
                made[(int) (prefix >>> TABLE_SHIFT) + 1]++;
            }
            for (int slot = 1; slot < made.length; slot++) {
                made[slot] += made[slot - 1];
            }
            below = made;
        }
        return below;
    }
}
