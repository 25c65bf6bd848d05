package io.boardcluster.jobs;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * Records of the sort benchmark: 100 bytes, the first 10 of which are the key, in the order of
 * unsigned bytes.
 */
final class Records {

    /** Bytes of a record. */
    static final int LENGTH = 100;

    /** Bytes of a key. */
    static final int KEY_LENGTH = 10;

    private static final VarHandle LONG =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN);

    private Records() {}

    /** {@return the first 8 bytes of a key, to be compared as an unsigned number} */
    static long prefix(byte[] bytes, int at) {
        return (long) LONG.get(bytes, at);
    }

    /** {@return the last 2 bytes of a key, from 0 to 65,535} */
    static int tail(byte[] bytes, int at) {
        return (bytes[at + 8] & 0xFF) << 8 | bytes[at + 9] & 0xFF;
    }

    /** {@return as a comparator, the order of two keys given in their two parts} */
    static int compare(long leftPrefix, int leftTail, long rightPrefix, int rightTail) {
        int order = Long.compareUnsigned(leftPrefix, rightPrefix);
        return order != 0 ? order : Integer.compare(leftTail, rightTail);
    }

    /** {@return how many parts of a size hold a total} */
    static long ceilDiv(long total, long each) {
        return total / each + (total % each == 0 ? 0 : 1);
    }
}
