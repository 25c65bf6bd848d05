package io.boardcluster.jobs;

import java.util.Arrays;

/**
 * A run of bytes that travels through Spark as one element, so that the cost of an element is paid
 * once for many records. Blocks are filled again and again: who takes one must be done with it
 * before asking for the next.
 */
final class Block {

    /** Room for 10,000 records of 100 bytes; lines are packed up to it as well. */
    static final int BYTES = 1_000_000;

    byte[] bytes;
    int length;

    /** Path of the file that the bytes were read from; empty if they were made. */
    String file = "";

    /** Offset of the first byte in that file. */
    long offset;

    Block(int capacity) {
        bytes = new byte[capacity];
    }

    /** {@return where {@code more} further bytes can be put; grows if there is no room} */
    int reserve(int more) {
        int start = length;
        if (bytes.length - start < more) {
            int doubled = (int) Math.min(2L * bytes.length, Integer.MAX_VALUE - 8);
            bytes = Arrays.copyOf(bytes, Math.max(Math.addExact(start, more), doubled));
        }
        length = start + more;
        return start;
    }

    void append(byte[] source, int from, int count) {
        int start = reserve(count);
        System.arraycopy(source, from, bytes, start, count);
    }

    void append(byte value) {
        int start = reserve(1);
        bytes[start] = value;
    }
}
