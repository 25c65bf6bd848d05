package io.boardcluster.jobs;

import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Iterator;
import java.util.NoSuchElementException;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import scala.Tuple2;

/**
 * The map side of the word count: counts in a table of bounded size, and sends its content to the
 * partitions of the words whenever it is full.
 *
 * <p>An entry is the word's length, its bytes and its count; numbers take 7 bits per byte, the
 * lowest first, with the highest bit set in all but the last.
 */
final class CountedWords implements Iterator<Tuple2<Integer, byte[]>> {

    private final Iterator<Tuple2<LongWritable, Text>> lines;
    private final WordTable table = new WordTable();
    private final Block[] outputs;
    private final ArrayDeque<Tuple2<Integer, byte[]>> ready = new ArrayDeque<>();

    CountedWords(Iterator<Tuple2<LongWritable, Text>> lines, int partitions) {
        this.lines = lines;
        outputs = new Block[partitions];
    }

    @Override
    public boolean hasNext() {
        if (ready.isEmpty()) {
            while (lines.hasNext() && !table.isFull()) {
                Lines.addWords(lines.next()._2(), table);
            }
            send();
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

    private void send() {
        for (int word = 0; word < table.size(); word++) {
            // The highest bits choose the partition; the lowest choose places in its table.
            long share = (table.hash(word) & 0xFFFFFFFFL) * outputs.length;
            Block output = output((int) (share >>> Integer.SIZE));
            writeNumber(table.length(word), output);
            table.appendTo(output, word);
            writeNumber(table.count(word), output);
        }
        table.clear();
        for (int partition = 0; partition < outputs.length; partition++) {
            Block output = outputs[partition];
            if (output != null && output.length > 0) {
                byte[] entries = Arrays.copyOf(output.bytes, output.length);
                ready.add(new Tuple2<>(partition, entries));
                output.length = 0;
            }
        }
    }

    private Block output(int partition) {
        if (outputs[partition] == null) {
            outputs[partition] = new Block(1 << 12);
        }
        return outputs[partition];
    }

    private static void writeNumber(long number, Block target) {
        long rest = number;
        while (rest >= 0x80) {
            target.append((byte) (rest | 0x80));
            rest >>>= 7;
        }
        target.append((byte) rest);
    }
}
