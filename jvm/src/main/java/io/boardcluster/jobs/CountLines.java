package io.boardcluster.jobs;

import java.nio.charset.StandardCharsets;
import java.util.Iterator;

/** The reduce side of the word count: adds up the counts of a partition, then writes its lines. */
final class CountLines extends BlockSource {

    private static final int ENOUGH = 1 << 17;

    private final WordTable table = new WordTable();
    private byte[] entries;
    private int at;
    private int next;

    /**
     * @param parts entries as {@link CountedWords} writes them
     */
    CountLines(Iterator<byte[]> parts) {
        super(2 * ENOUGH);
        while (parts.hasNext()) {
            entries = parts.next();
            at = 0;
            while (at < entries.length) {
                int length = (int) readNumber();
                int start = at;
                at += length;
                table.add(entries, start, length, readNumber());
            }
        }
        entries = null;
    }

    private long readNumber() {
        long number = 0;
        int shift = 0;
        byte read = entries[at++];
        while (read < 0) {
            number |= (read & 0x7FL) << shift;
            shift += 7;
            read = entries[at++];
        }
        return number | (long) read << shift;
    }

    @Override
    void fill(Block empty) {
        while (next < table.size() && empty.length < ENOUGH) {
            table.appendTo(empty, next);
            empty.append((byte) '\t');
            byte[] digits = Long.toString(table.count(next)).getBytes(StandardCharsets.US_ASCII);
            empty.append(digits, 0, digits.length);
            empty.append((byte) '\n');
            next++;
        }
    }
}
