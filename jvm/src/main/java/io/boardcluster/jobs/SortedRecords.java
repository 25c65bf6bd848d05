package io.boardcluster.jobs;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;

/**
 * The reduce side of the sort: the records of a partition in the order of their keys.
 *
 * <p>What is sorted is one number per record: as many of the key's bits as tell the keys of this
 * partition apart, then the record's place. Numbers sort several times faster than records, and
 * records whose numbers agree in the key's bits are compared by the whole key afterwards.
 */
final class SortedRecords extends BlockSource {

    private static final int PLACE_BITS = 10;
    private static final int PLACE_MASK = (1 << PLACE_BITS) - 1;
    private static final int FEW = 24;

    private final List<byte[]> blocks = new ArrayList<>();
    private final long[] order;
    private final int indexBits;
    private int next;

    /**
     * @param parts blocks of at most {@link RecordBuckets#RECORDS} whole records
     */
    SortedRecords(Iterator<byte[]> parts) {
        super(Block.BYTES);
        parts.forEachRemaining(blocks::add);
        indexBits = PLACE_BITS + Integer.SIZE - Integer.numberOfLeadingZeros(blocks.size());
        order = numbers();
        Arrays.sort(order);
        settleTies();
    }

    private long[] numbers() {
        long least = -1L; // the highest as an unsigned number
        long most = 0;
        int records = 0;
        for (byte[] block : blocks) {
            records += block.length / Records.LENGTH;
            for (int at = 0; at < block.length; at += Records.LENGTH) {
                long prefix = Records.prefix(block, at);
                least = Long.compareUnsigned(prefix, least) < 0 ? prefix : least;
                most = Long.compareUnsigned(prefix, most) > 0 ? prefix : most;
            }
        }
        int keyBits = Long.SIZE - Long.numberOfLeadingZeros(most - least);
        // One bit stays zero, since Arrays.sort takes numbers as signed.
        int shift = Math.max(0, keyBits - (Long.SIZE - 1 - indexBits));
        long[] numbers = new long[records];
        int count = 0;
        for (int block = 0; block < blocks.size(); block++) {
            byte[] bytes = blocks.get(block);
            long index = (long) block << PLACE_BITS;
            for (int at = 0; at < bytes.length; at += Records.LENGTH) {
                long key = (Records.prefix(bytes, at) - least) >>> shift;
                numbers[count++] = key << indexBits | index++;
            }
        }
        return numbers;
    }

    private void settleTies() {
        int first = 0;
        while (first < order.length) {
            long key = order[first] >>> indexBits;
            int end = first + 1;
            while (end < order.length && order[end] >>> indexBits == key) {
                end++;
            }
            if (end - first > 1) {
                settle(first, end);
            }
            first = end;
        }
    }

    private void settle(int first, int end) {
        if (end - first > FEW) {
            Long[] run = new Long[end - first];
            Arrays.setAll(run, place -> order[first + place]);
            Arrays.sort(run, (Comparator<Long>) this::compare);
            for (int place = 0; place < run.length; place++) {
                order[first + place] = run[place];
            }
            return;
        }
        for (int place = first + 1; place < end; place++) {
            long moved = order[place];
            int to = place;
            while (to > first && compare(order[to - 1], moved) > 0) {
                order[to] = order[to - 1];
                to--;
            }
            order[to] = moved;
        }
    }

    private int compare(long left, long right) {
        byte[] leftBytes = block(left);
        byte[] rightBytes = block(right);
        int leftAt = offset(left);
        int rightAt = offset(right);
        return Records.compare(
                Records.prefix(leftBytes, leftAt),
                Records.tail(leftBytes, leftAt),
                Records.prefix(rightBytes, rightAt),
                Records.tail(rightBytes, rightAt));
    }

    private byte[] block(long number) {
        return blocks.get((int) (number & ((1L << indexBits) - 1)) >>> PLACE_BITS);
    }

    private static int offset(long number) {
        return (int) (number & PLACE_MASK) * Records.LENGTH;
    }

    @Override
    void fill(Block empty) {
        while (next < order.length && empty.length < Block.BYTES) {
            long number = order[next++];
            System.arraycopy(
                    block(number), offset(number), empty.bytes, empty.length, Records.LENGTH);
            empty.length += Records.LENGTH;
        }
    }
}
