package io.boardcluster.jobs;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Counts of words, which are kept as bytes one behind the other. */
final class WordTable {

    private static final VarHandle LONG =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle INT =
            MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final int FULL_BYTES = 4 << 20;
    private static final int FULL_WORDS = 1 << 17;
    private static final int CHUNK_BYTES = 1 << 20;
    private static final int LEAST_WORDS = 1 << 12;

    private final List<byte[]> chunks = new ArrayList<>();
    private int lastUsed = CHUNK_BYTES;
    private long bytes;
    private int size;

    /** One more than the number of a word; a power of two of slots, at most half of them taken. */
    private int[] slots = new int[2 * LEAST_WORDS];

    private int[] hashes = new int[LEAST_WORDS];
    private int[] chunkOf = new int[LEAST_WORDS];
    private int[] startOf = new int[LEAST_WORDS];
    private int[] lengthOf = new int[LEAST_WORDS];
    private long[] counts = new long[LEAST_WORDS];

    /** {@return number of distinct words} */
    int size() {
        return size;
    }

    /** {@return bytes of all distinct words together} */
    long bytes() {
        return bytes;
    }

    /** {@return whether a map should send what it has counted on, as its memory is bounded} */
    boolean isFull() {
        return bytes >= FULL_BYTES || size >= FULL_WORDS;
    }

    int hash(int word) {
        return hashes[word];
    }

    long count(int word) {
        return counts[word];
    }

    int length(int word) {
        return lengthOf[word];
    }

    void appendTo(Block target, int word) {
        target.append(chunks.get(chunkOf[word]), startOf[word], lengthOf[word]);
    }

    /** Counts a word {@code times} more times. */
    void add(byte[] from, int start, int length, long times) {
        int hash = hash(from, start, length);
        int slot = hash & slots.length - 1;
        while (slots[slot] != 0) {
            int word = slots[slot] - 1;
            if (hashes[word] == hash && isWord(word, from, start, length)) {
                counts[word] += times;
                return;
            }
            slot = slot + 1 & slots.length - 1;
        }
        if (size == counts.length) {
            grow();
            slot = freeSlot(hash);
        }
        slots[slot] = size + 1;
        hashes[size] = hash;
        lengthOf[size] = length;
        counts[size] = times;
        store(from, start, length);
        size++;
    }

    /** Forgets all words, but keeps its memory. */
    void clear() {
        Arrays.fill(slots, 0);
        size = 0;
        bytes = 0;
        byte[] kept = chunks.isEmpty() ? null : chunks.get(0);
        chunks.clear();
        lastUsed = CHUNK_BYTES;
        if (kept != null && kept.length == CHUNK_BYTES) {
            chunks.add(kept);
            lastUsed = 0;
        }
    }

    private boolean isWord(int word, byte[] from, int start, int length) {
        int at = startOf[word];
        return lengthOf[word] == length
                && Arrays.equals(
                        chunks.get(chunkOf[word]), at, at + length, from, start, start + length);
    }

    private void store(byte[] from, int start, int length) {
        if (chunks.isEmpty() || length > CHUNK_BYTES - lastUsed) {
            // A longer word than a chunk gets one of its own, and the next word another.
            chunks.add(new byte[Math.max(CHUNK_BYTES, length)]);
            lastUsed = 0;
        }
        int chunk = chunks.size() - 1;
        System.arraycopy(from, start, chunks.get(chunk), lastUsed, length);
        chunkOf[size] = chunk;
        startOf[size] = lastUsed;
        lastUsed = Math.min(CHUNK_BYTES, lastUsed + length);
        bytes += length;
    }

    private void grow() {
        int room = Math.multiplyExact(2, size);
        hashes = Arrays.copyOf(hashes, room);
        chunkOf = Arrays.copyOf(chunkOf, room);
        startOf = Arrays.copyOf(startOf, room);
        lengthOf = Arrays.copyOf(lengthOf, room);
        counts = Arrays.copyOf(counts, room);
        slots = new int[2 * room];
        for (int word = 0; word < size; word++) {
            slots[freeSlot(hashes[word])] = word + 1;
        }
    }

    private int freeSlot(int hash) {
        int slot = hash & slots.length - 1;
        while (slots[slot] != 0) {
            slot = slot + 1 & slots.length - 1;
        }
        return slot;
    }

    /** Multiplies and folds 8 bytes at a time; the last ones are read again with those before. */
    static int hash(byte[] from, int start, int length) {
        long hash = length * 0x9e3779b97f4a7c15L;
        int end = start + length;
        int at = start;
        for (; at <= end - Long.BYTES; at += Long.BYTES) {
            hash = mix(hash ^ (long) LONG.get(from, at));
        }
        if (at < end) {
            hash = mix(hash ^ rest(from, start, at, end));
        }
        return (int) (hash ^ hash >>> 32);
    }

    private static long rest(byte[] from, int start, int at, int end) {
        if (end - start >= Long.BYTES) {
            return (long) LONG.get(from, end - Long.BYTES);
        }
        if (end - start >= Integer.BYTES) {
            long first = (int) INT.get(from, at);
            return first << 32 | (int) INT.get(from, end - Integer.BYTES) & 0xFFFFFFFFL;
        }
        long few = 0;
        for (int place = at; place < end; place++) {
            few = few << 8 | from[place] & 0xFF;
        }
        return few;
    }

    /** Both halves of a product of 128 bits: every bit of the value reaches every bit of it. */
    private static long mix(long value) {
        long factor = 0xbf58476d1ce4e5b9L;
        return value * factor ^ Math.multiplyHigh(value, factor);
    }
}
