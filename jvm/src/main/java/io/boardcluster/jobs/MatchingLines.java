package io.boardcluster.jobs;

import java.nio.charset.StandardCharsets;
import java.util.Iterator;
import java.util.Objects;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import scala.Tuple2;

/**
 * The lines in which an expression is found, packed into blocks.
 *
 * <p>A line of ASCII is matched where it lies, without a string being made of it; an expression
 * without any special character is searched for in the bytes.
 */
final class MatchingLines extends BlockSource {

    private static final int ENOUGH = 1 << 17;
    private static final String SPECIAL = "\\[](){}.*+?^$|";

    private final Iterator<Tuple2<LongWritable, Text>> lines;
    private final byte[] literal;
    private final AsciiLine view = new AsciiLine();
    private final Matcher matcher;

    MatchingLines(Iterator<Tuple2<LongWritable, Text>> lines, String regex) {
        super(2 * ENOUGH);
        this.lines = lines;
        literal = isLiteral(regex) ? regex.getBytes(StandardCharsets.US_ASCII) : null;
        matcher = Pattern.compile(regex).matcher("");
    }

    private static boolean isLiteral(String regex) {
        return !regex.isEmpty()
                && regex.chars().allMatch(one -> one < 0x80 && SPECIAL.indexOf(one) < 0);
    }

    @Override
    void fill(Block empty) {
        while (empty.length < ENOUGH && lines.hasNext()) {
            Text line = lines.next()._2();
            byte[] bytes = line.getBytes();
            int length = line.getLength();
            if (literal != null && !contains(bytes, length, literal)) {
                continue;
            }
            if (TextInput.isAscii(bytes, length)) {
                view.set(bytes, length);
                if (literal != null || matcher.reset(view).find()) {
                    write(bytes, length, empty);
                }
            } else if (literal != null || matcher.reset(line.toString()).find()) {
                byte[] repaired = TextInput.wellFormed(line);
                write(repaired, repaired.length, empty);
            }
        }
    }

    private static void write(byte[] bytes, int length, Block target) {
        target.append(bytes, 0, length);
        target.append((byte) '\n');
    }

    /** {@return whether bytes hold others; in UTF-8 no character begins inside another} */
    static boolean contains(byte[] bytes, int length, byte[] wanted) {
        int end = length - wanted.length;
        byte first = wanted[0];
        for (int at = 0; at <= end; at++) {
            if (bytes[at] == first && isAt(bytes, at, wanted)) {
                return true;
            }
        }
        return false;
    }

    private static boolean isAt(byte[] bytes, int at, byte[] wanted) {
        for (int place = 1; place < wanted.length; place++) {
            if (bytes[at + place] != wanted[place]) {
                return false;
            }
        }
        return true;
    }

    /** Bytes of ASCII as characters, without a copy. */
    private static final class AsciiLine implements CharSequence {

        private byte[] bytes = {};
        private int length;

        void set(byte[] from, int count) {
            bytes = from;
            length = count;
        }

        @Override
        public int length() {
            return length;
        }

        @Override
        public char charAt(int index) {
            return (char) bytes[Objects.checkIndex(index, length)];
        }

        @Override
        public CharSequence subSequence(int start, int end) {
            return toString().substring(start, end);
        }

        @Override
        public String toString() {
            return new String(bytes, 0, length, StandardCharsets.US_ASCII);
        }
    }
}
