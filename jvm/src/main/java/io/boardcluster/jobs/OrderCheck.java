package io.boardcluster.jobs;

import java.math.BigInteger;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.zip.CRC32;
import org.apache.hadoop.io.NullWritable;
import scala.Tuple2;

/**
 * What one part of a file has to say to {@link OrderReport}: its records that are out of order, and
 * at last its name, first key, last key and sum of checksums.
 *
 * <p>The keys of these pairs sort all last words before all records out of order, and those by file
 * and from its end to its beginning.
 */
final class OrderCheck implements Iterator<Tuple2<String, String[]>> {

    /** How keys of last words begin. */
    static final String SUMMARY = "0";

    private static final String MISORDER = "1";

    /** As Hadoop's BytesWritable writes bytes. */
    private static final HexFormat HEX = HexFormat.ofDelimiter(" ");

    private final Iterator<Tuple2<NullWritable, Block>> input;
    private final ArrayDeque<Tuple2<String, String[]>> found = new ArrayDeque<>();
    private final CRC32 checksum = new CRC32();
    private BigInteger sum = BigInteger.ZERO;
    private String file;
    private long begin;
    private String first;
    private byte[] last = {};

    OrderCheck(Iterator<Tuple2<NullWritable, Block>> input) {
        this.input = input;
    }

    /** {@return the key of a record out of order: the last of a file comes first} */
    static String misorderKey(String file, long offset) {
        return String.format("%s%s\0%020d", MISORDER, file, Long.MAX_VALUE - offset);
    }

    /** {@return what is said of a record out of order} */
    static String misorder(String file, String before, String after) {
        return "misorder in " + file + " between " + before + " and " + after;
    }

    @Override
    public boolean hasNext() {
        while (found.isEmpty() && input.hasNext()) {
            check(input.next()._2());
            if (!input.hasNext()) {
                String[] said = {file, first, key(last, 0), sum.toString(16)};
                found.add(new Tuple2<>(String.format("%s%s\0%020d", SUMMARY, file, begin), said));
            }
        }
        return !found.isEmpty();
    }

    @Override
    public Tuple2<String, String[]> next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        return found.remove();
    }

    private void check(Block block) {
        byte[] bytes = block.bytes;
        if (first == null) {
            file = block.file;
            begin = block.offset;
            first = key(bytes, 0);
            last = keyBytes(bytes, 0);
        }
        long added = 0; // 10,000 times 32 bits
        long prefix = Records.prefix(last, 0);
        int tail = Records.tail(last, 0);
        for (int at = 0; at < block.length; at += Records.LENGTH) {
            checksum.reset();
            checksum.update(bytes, at, Records.LENGTH);
            added += checksum.getValue();
            long nextPrefix = Records.prefix(bytes, at);
            int nextTail = Records.tail(bytes, at);
            if (Records.compare(nextPrefix, nextTail, prefix, tail) < 0) {
                String before = at == 0 ? key(last, 0) : key(bytes, at - Records.LENGTH);
                String[] said = {misorder(file, before, key(bytes, at))};
                found.add(new Tuple2<>(misorderKey(file, block.offset + at), said));
            }
            prefix = nextPrefix;
            tail = nextTail;
        }
        sum = sum.add(BigInteger.valueOf(added));
        last = keyBytes(bytes, block.length - Records.LENGTH);
    }

    private static byte[] keyBytes(byte[] bytes, int at) {
        return Arrays.copyOfRange(bytes, at, at + Records.KEY_LENGTH);
    }

    private static String key(byte[] bytes, int at) {
        return HEX.formatHex(bytes, at, at + Records.KEY_LENGTH);
    }
}
