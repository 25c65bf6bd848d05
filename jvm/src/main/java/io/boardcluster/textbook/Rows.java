package io.boardcluster.textbook;

import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.Iterator;
import org.apache.hadoop.io.Text;
import scala.Tuple2;

/** Rows of the sort benchmark, one key and one value at a time, as stock {@code teragen} does. */
final class Rows implements Iterator<Tuple2<Text, Text>> {

    private static final BigInteger A = new BigInteger("2360ed051fc65da44385df649fccf645", 16);
    private static final BigInteger C = new BigInteger("4a696d47726179524950202020202001", 16);
    private static final long A_HIGH = A.shiftRight(64).longValue();
    private static final long A_LOW = A.longValue();
    private static final long C_HIGH = C.shiftRight(64).longValue();
    private static final long C_LOW = C.longValue();
    private static final byte[] DIGITS =
            "0123456789ABCDEF".getBytes(StandardCharsets.US_ASCII);

    private final byte[] row = new byte[100];
    private final Text key = new Text();
    private final Text value = new Text();
    private final long end;
    private long number;
    private long high;
    private long low;

    Rows(long first, long end) {
        this.end = end;
        number = first;
        // n steps at once: c * (a^n - 1) / (a - 1), with the division taken in the integers.
        BigInteger less = A.subtract(BigInteger.ONE);
        BigInteger modulus = BigInteger.ONE.shiftLeft(128);
        BigInteger power = A.modPow(BigInteger.valueOf(first), modulus.multiply(less));
        BigInteger x = power.subtract(BigInteger.ONE).divide(less).multiply(C).mod(modulus);
        high = x.shiftRight(64).longValue();
        low = x.longValue();
    }

    @Override
    public boolean hasNext() {
        return number < end;
    }

    @Override
    public Tuple2<Text, Text> next() {
        step();
        for (int at = 0; at < 8; at++) {
            row[at] = (byte) (high >>> (56 - 8 * at));
        }
        row[8] = (byte) (low >>> 56);
        row[9] = (byte) (low >>> 48);
        row[10] = 0x00;
        row[11] = 0x11;
        for (int digit = 0; digit < 32; digit++) {
            long rest = digit < 16 ? 0 : number >>> (4 * (31 - digit));
            row[12 + digit] = DIGITS[(int) (rest & 0xF)];
        }
        row[44] = (byte) 0x88;
        row[45] = (byte) 0x99;
        row[46] = (byte) 0xAA;
        row[47] = (byte) 0xBB;
        for (int digit = 0; digit < 48; digit++) {
            row[48 + digit] = DIGITS[(int) (low >>> (44 - digit / 4 * 4) & 0xF)];
        }
        row[96] = (byte) 0xCC;
        row[97] = (byte) 0xDD;
        row[98] = (byte) 0xEE;
        row[99] = (byte) 0xFF;
        number++;
        key.set(row, 0, 10);
        value.set(row, 10, 90);
        return new Tuple2<>(key, value);
    }

    private void step() {
        long product = A_LOW * low;
        long carried = Math.multiplyHigh(A_LOW, low) + (A_LOW >> 63 & low) + (low >> 63 & A_LOW);
        high = carried + A_HIGH * low + A_LOW * high;
        low = product + C_LOW;
        high += C_HIGH + (Long.compareUnsigned(low, product) < 0 ? 1 : 0);
    }
}
