package io.boardcluster.textbook;

import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.zip.CRC32;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;
import scala.Tuple2;

/** A pair per record; what partitions say is compared in the driver. */
public final class TeraValidate {

    private TeraValidate() {}

    /**
     * Checks the order of records and adds up their checksums.
     *
     * @param args input, output
     */
    public static void main(String[] args) {
        try (JavaSparkContext context = new JavaSparkContext(new SparkConf())) {
            List<byte[][]> said =
                    Keyed.read(context, args[0]).mapPartitions(TeraValidate::check).collect();
            List<String> lines = new ArrayList<>();
            BigInteger sum = BigInteger.ZERO;
            byte[] before = {};
            for (byte[][] part : said) {
                sum = sum.add(new BigInteger(part[2]));
                if (part.length > 3 || Arrays.compareUnsigned(part[0], before) < 0) {
                    lines.add("error\tout of order");
                }
                before = part[1];
            }
            lines.add(0, "checksum\t" + sum.toString(16));
            context.parallelize(lines, 1).saveAsTextFile(args[1]);
        }
    }

    /** First key, last key, checksum, and one more if records were out of order. */
    private static Iterator<byte[][]> check(Iterator<Tuple2<byte[], byte[]>> records) {
        if (!records.hasNext()) {
            return List.<byte[][]>of().iterator();
        }
        CRC32 checksum = new CRC32();
        long sum = 0;
        byte[] first = null;
        byte[] last = null;
        boolean ordered = true;
        while (records.hasNext()) {
            Tuple2<byte[], byte[]> record = records.next();
            checksum.reset();
            checksum.update(record._1());
            checksum.update(record._2());
            sum += checksum.getValue();
            first = first == null ? record._1() : first;
            ordered &= last == null || Arrays.compareUnsigned(record._1(), last) >= 0;
            last = record._1();
        }
        byte[] total = BigInteger.valueOf(sum).toByteArray();
        byte[][] good = {first, last, total};
        byte[][] bad = {first, last, total, {}};
        return List.<byte[][]>of(ordered ? good : bad).iterator();
    }
}
