package io.boardcluster.jobs;

import java.nio.charset.StandardCharsets;
import org.apache.hadoop.io.Text;

/** Lines as bytes. Nothing of Spark is needed here, since MapReduce's tasks do without it. */
final class Lines {

    private static final boolean[] IS_BLANK = new boolean[256];

    static {
        for (char blank : " \t\n\r\f".toCharArray()) {
            IS_BLANK[blank] = true;
        }
    }

    private Lines() {}

    /** {@return whether no byte has its highest bit set, so that every byte is one character} */
    static boolean isAscii(Text line) {
        byte[] bytes = line.getBytes();
        int length = line.getLength();
        int seen = 0;
        for (int at = 0; at < length; at++) {
            seen |= bytes[at];
        }
        return seen >= 0;
    }

    /** {@return the bytes of a line after decoding, which replaces what is malformed} */
    static byte[] wellFormed(Text line) {
        return line.toString().getBytes(StandardCharsets.UTF_8);
    }

    /** Counts the words of a line, once each time they occur. */
    static void addWords(Text line, WordTable table) {
        if (isAscii(line)) {
            addWords(line.getBytes(), line.getLength(), table);
        } else {
            byte[] repaired = wellFormed(line);
            addWords(repaired, repaired.length, table);
        }
    }

    private static void addWords(byte[] bytes, int length, WordTable table) {
        int at = 0;
        while (at < length) {
            while (at < length && IS_BLANK[bytes[at] & 0xFF]) {
                at++;
            }
            int start = at;
            while (at < length && !IS_BLANK[bytes[at] & 0xFF]) {
                at++;
            }
            if (at > start) {
                table.add(bytes, start, at - start, 1);
            }
        }
    }
}
