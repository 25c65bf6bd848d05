package io.boardcluster.jobs;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.math.BigInteger;
import java.nio.ByteOrder;

/**
 * Makes the rows of the sort benchmark's binary data from any row number on.
 *
 * <p>Row n is made of the (n + 1)-th value x of a linear congruential generator of 128 bits that
 * starts at zero: 10 bytes key, the highest of x; 0x0011; n as 32 hexadecimal digits; 0x8899AABB;
 * the 12 lowest hexadecimal digits of x, each four times; 0xCCDDEEFF.
 *
 * <p>Source: {@code gensort} 1.1 by Chris Nyberg, and {@code GenSort} and {@code Random16} of
 * Apache Hadoop's examples, which make the same rows.
 */
final class RowGenerator {

    private static final BigInteger MULTIPLIER =
            new BigInteger("2360ed051fc65da44385df649fccf645", 16);
    private static final BigInteger INCREMENT =
            new BigInteger("4a696d47726179524950202020202001", 16);
    private static final long A_HIGH = MULTIPLIER.shiftRight(64).longValue();
    private static final long A_LOW = MULTIPLIER.longValue();
    private static final long C_HIGH = INCREMENT.shiftRight(64).longValue();
    private static final long C_LOW = INCREMENT.longValue();

    private static final VarHandle LONG =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN);
    private static final VarHandle INT =
            MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.BIG_ENDIAN);
    private static final VarHandle SHORT =
            MethodHandles.byteArrayViewVarHandle(short[].class, ByteOrder.BIG_ENDIAN);

    private static final int HEX_AT = 12;
    private static final int FILLER_AT = 48;
    private static final long EIGHT_ZEROS = 0x3030303030303030L;
    private static final short[] HEX_PAIRS = new short[256];
    private static final int[] FOUR_DIGITS = new int[16];

    static {
        String digits = "0123456789ABCDEF";
        for (int value = 0; value < 256; value++) {
            HEX_PAIRS[value] =
                    (short) (digits.charAt(value >>> 4) << 8 | digits.charAt(value & 0xF));
        }
        for (int value = 0; value < 16; value++) {
            FOUR_DIGITS[value] = digits.charAt(value) * 0x01010101;
        }
    }

    private long row;
    private long high;
    private long low;

    /**
     * @param first number of the first row to make, from 0
     */
    RowGenerator(long first) {
        row = first;
        // x after n steps is a^n * 0 + c * (a^(n-1) + ... + 1): n steps put together by squaring.
        BigInteger multiplier = MULTIPLIER;
        BigInteger increment = INCREMENT;
        BigInteger value = BigInteger.ZERO;
        BigInteger mask = BigInteger.ONE.shiftLeft(128).subtract(BigInteger.ONE);
        for (long steps = first; steps != 0; steps >>>= 1) {
            if ((steps & 1) != 0) {
                value = value.multiply(multiplier).add(increment).and(mask);
            }
            increment = multiplier.add(BigInteger.ONE).multiply(increment).and(mask);
            multiplier = multiplier.multiply(multiplier).and(mask);
        }
        high = value.shiftRight(64).longValue();
        low = value.longValue();
    }

    /** Writes the next row. */
    void write(byte[] target, int at) {
        step();
        LONG.set(target, at, high);
        SHORT.set(target, at + 8, (short) (low >>> 48));
        SHORT.set(target, at + 10, (short) 0x0011);
        // A row number has 63 bits, so that the first 16 of its 32 digits are zeros.
        LONG.set(target, at + HEX_AT, EIGHT_ZEROS);
        LONG.set(target, at + HEX_AT + 8, EIGHT_ZEROS);
        for (int pair = 0; pair < 8; pair++) {
            int value = (int) (row >>> (56 - 8 * pair)) & 0xFF;
            SHORT.set(target, at + HEX_AT + 16 + 2 * pair, HEX_PAIRS[value]);
        }
        INT.set(target, at + 44, 0x8899AABB);
        for (int digit = 0; digit < 12; digit++) {
            int value = (int) (low >>> (44 - 4 * digit)) & 0xF;
            INT.set(target, at + FILLER_AT + 4 * digit, FOUR_DIGITS[value]);
        }
        INT.set(target, at + 96, 0xCCDDEEFF);
        row++;
    }

    /** x = a * x + c modulo 2^128, in two halves. */
    private void step() {
        long nextLow = A_LOW * low;
        // multiplyHigh takes its factors as signed; the two masked terms make them unsigned.
        long nextHigh = Math.multiplyHigh(A_LOW, low);
        nextHigh += ((A_LOW >> 63) & low) + ((low >> 63) & A_LOW);
        nextHigh += A_HIGH * low + A_LOW * high;
        low = nextLow + C_LOW;
        high = nextHigh + C_HIGH + (Long.compareUnsigned(low, nextLow) < 0 ? 1 : 0);
    }
}
