package io.boardcluster.jobs;

import java.nio.charset.StandardCharsets;
import java.util.Objects;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.io.Text;

/**
 * Finds a regular expression in lines. What every match begins with is searched for in the bytes,
 * and a line without it is done; where the expression is no more than that, so is one with it. A
 * line of ASCII is matched where it lies, without a string being made of it.
 */
final class LineMatcher {

    private static final String SPECIAL = "\\[](){}.*+?^$|";
    private static final String MAY_BE_NONE = "*?{";

    /** The ASCII that every match begins with; may be empty. */
    private final byte[] beginning;

    /** Whether the expression matches its beginning and nothing else. */
    private final boolean literal;

    private final AsciiLine view = new AsciiLine();
    private final Matcher matcher;

    LineMatcher(String regex) {
        String plain = beginningOf(regex);
        beginning = plain.getBytes(StandardCharsets.US_ASCII);
        literal = !plain.isEmpty() && plain.equals(regex);
        matcher = Pattern.compile(regex).matcher("");
    }

    /** {@return the text that every match of an expression begins with, as far as it is plain} */
    static String beginningOf(String regex) {
        if (regex.indexOf('|') >= 0) {
            return "";
        }
        int end = 0;
        while (end < regex.length() && isPlain(regex.charAt(end))) {
            end++;
        }
        boolean optional = end < regex.length() && MAY_BE_NONE.indexOf(regex.charAt(end)) >= 0;
        return regex.substring(0, optional ? Math.max(0, end - 1) : end);
    }

    private static boolean isPlain(char one) {
        return one < 0x80 && SPECIAL.indexOf(one) < 0;
    }

    /** {@return whether the expression is found anywhere in the line} */
    boolean isIn(Text line) {
        if (!mayBeIn(line)) {
            return false;
        }
        if (literal) {
            return true;
        }
        if (Lines.isAscii(line)) {
            view.set(line.getBytes(), line.getLength());
            return matcher.reset(view).find();
        }
        return matcher.reset(line.toString()).find();
    }

    private boolean mayBeIn(Text line) {
        return beginning.length == 0 || indexOf(line.getBytes(), 0, line.getLength()) >= 0;
    }

    /** Counts each text in the line that the expression matches, one behind the other. */
    void addMatches(Text line, WordTable table) {
        if (!literal && !mayBeIn(line)) {
            return;
        }
        byte[] bytes = line.getBytes();
        int length = line.getLength();
        if (literal) {
            int at = indexOf(bytes, 0, length);
            while (at >= 0) {
                table.add(bytes, at, beginning.length, 1);
                at = indexOf(bytes, at + beginning.length, length);
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

    /**
     * {@return where {@link #beginning} is; -1 if nowhere} ASCII is itself wherever it stands in
     * UTF-8, malformed or not.
     */
    private int indexOf(byte[] bytes, int from, int length) {
        int end = length - beginning.length;
        byte first = beginning[0];
        for (int at = from; at <= end; at++) {
            if (bytes[at] == first && isAt(bytes, at, beginning)) {
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
