package io.boardcluster.jobs;

import java.nio.charset.StandardCharsets;
import java.util.Objects;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.io.Text;

/**
 * Finds a regular expression in lines. A line of ASCII is matched where it lies, without a string
 * being made of it; an expression without any special character is searched for in the bytes.
 */
final class LineMatcher {

    private static final String SPECIAL = "\\[](){}.*+?^$|";

    private final byte[] literal;
    private final AsciiLine view = new AsciiLine();
    private final Matcher matcher;

    LineMatcher(String regex) {
        literal = isLiteral(regex) ? regex.getBytes(StandardCharsets.US_ASCII) : null;
        matcher = Pattern.compile(regex).matcher("");
    }

    private static boolean isLiteral(String regex) {
        return !regex.isEmpty()
                && regex.chars().allMatch(one -> one < 0x80 && SPECIAL.indexOf(one) < 0);
    }

    /** {@return whether the expression is found anywhere in the line} */
    boolean isIn(Text line) {
        if (literal != null) {
            return indexOf(line.getBytes(), 0, line.getLength()) >= 0;
        }
        if (Lines.isAscii(line)) {
            view.set(line.getBytes(), line.getLength());
            return matcher.reset(view).find();
        }
        return matcher.reset(line.toString()).find();
    }

    /** Counts each text in the line that the expression matches, one behind the other. */
    void addMatches(Text line, WordTable table) {
        byte[] bytes = line.getBytes();
        int length = line.getLength();
        if (literal != null) {
            int at = indexOf(bytes, 0, length);
            while (at >= 0) {
                table.add(bytes, at, literal.length, 1);
                at = indexOf(bytes, at + literal.length, length);
            }
        } else if (Lines.isAscii(line)) {
            view.set(bytes, length);
            matcher.reset(view);
            while (matcher.find()) {
                table.add(bytes, matcher.start(), matcher.end() - matcher.start(), 1);
            }
        } else {
            matcher.reset(line.toString());
            while (matcher.find()) {
                byte[] found = matcher.group().getBytes(StandardCharsets.UTF_8);
                table.add(found, 0, found.length, 1);
            }
        }
    }

    /** {@return where the literal begins; -1 if nowhere. In UTF-8 no character is in another} */
    private int indexOf(byte[] bytes, int from, int length) {
        int end = length - literal.length;
        byte first = literal[0];
        for (int at = from; at <= end; at++) {
            if (bytes[at] == first && isAt(bytes, at, literal)) {
                return at;
            }
        }
        return -1;
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
