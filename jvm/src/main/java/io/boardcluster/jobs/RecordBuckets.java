package io.boardcluster.jobs;

import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Iterator;
import java.util.NoSuchElementException;
import org.apache.hadoop.io.NullWritable;
import scala.Tuple2;

/**
 * The map side of the sort: records go into one buffer per partition, and a buffer that is full
 * goes into the shuffle as one element.
 *
 * <p>A split has few records for each of many partitions, so that most buffers are never full: they
 * begin with room for twice the fair share, and all of them together stay near a split's size.
 */
final class RecordBuckets implements Iterator<Tuple2<Integer, byte[]>> {

    /** Records of a full buffer. */
    static final int RECORDS = 640;

    private static final int BYTES = RECORDS * Records.LENGTH;
    private static final int LEAST_BYTES = 8 * Records.LENGTH;

    private final Iterator<Tuple2<NullWritable, Block>> input;
    private final KeyRanges ranges;
    private final int firstBytes;
    private final byte[][] buffers;
    private final int[] lengths;
    private final ArrayDeque<Tuple2<Integer, byte[]>> ready = new ArrayDeque<>();

    RecordBuckets(
            Iterator<Tuple2<NullWritable, Block>> input, KeyRanges ranges, int partitions) {
        this.input = input;
        this.ranges = ranges;
        long share = RecordInputFormat.MOST_SPLIT_BYTES / partitions / Records.LENGTH;
        firstBytes = (int) Math.max(LEAST_BYTES, Math.min(BYTES, 2 * share * Records.LENGTH));
        buffers = new byte[partitions][];
        lengths = new int[partitions];
    }

    @Override
    public boolean hasNext() {
        while (ready.isEmpty() && input.hasNext()) {
            distribute(input.next()._2());
            if (!input.hasNext()) {
                flush();
            }
        }
        return !ready.isEmpty();
    }

    @Override
    public Tuple2<Integer, byte[]> next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        return ready.remove();
    }

    private void distribute(Block block) {
        byte[] bytes = block.bytes;
        long ordinal = block.offset / Records.LENGTH;
        for (int at = 0; at < block.length; at += Records.LENGTH) {
            long prefix = Records.prefix(bytes, at);
            int to = ranges.partition(prefix, Records.tail(bytes, at), ordinal++);
            byte[] buffer = buffers[to];
            if (buffer == null) {
                buffer = new byte[firstBytes];
                buffers[to] = buffer;
            } else if (lengths[to] == buffer.length) {
                buffer = Arrays.copyOf(buffer, Math.min(BYTES, 2 * buffer.length));
                buffers[to] = buffer;
            }
            System.arraycopy(bytes, at, buffer, lengths[to], Records.LENGTH);
            lengths[to] += Records.LENGTH;
            if (lengths[to] == BYTES) {
                // Handed over, not used again: a shuffle may hold on to what it is given.
                ready.add(new Tuple2<>(to, buffer));
                buffers[to] = null;
                lengths[to] = 0;
            }
        }
    }

    private void flush() {
        for (int partition = 0; partition < buffers.length; partition++) {
            if (lengths[partition] > 0) {
                byte[] part = Arrays.copyOf(buffers[partition], lengths[partition]);
                ready.add(new Tuple2<>(partition, part));
                lengths[partition] = 0;
            }
            buffers[partition] = null;
        }
    }
}
