package io.boardcluster.jobs;

import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;

/**
 * Reads keys at evenly spaced places of the input. The driver does it: at a few kilobytes per place
 * this takes less time than a Spark job of its own.
 */
final class KeySample {

    private static final int PLACES_PER_PARTITION = 4;
    private static final int LEAST_PLACES = 32;
    private static final int MOST_PLACES = 1024;
    private static final int RECORDS_PER_PLACE = 200;

    private KeySample() {}

    /** {@return ranges of keys that divide the records of the files into about equal parts} */
    static KeyRanges ranges(List<FileStatus> files, Configuration settings, int partitions)
            throws IOException {
        long records = 0;
        for (FileStatus file : files) {
            records += file.getLen() / Records.LENGTH;
        }
        if (partitions == 1 || records == 0) {
            return new KeyRanges(new long[0], new int[0], partitions);
        }
        long places = (long) PLACES_PER_PARTITION * partitions;
        places = Math.max(LEAST_PLACES, Math.min(MOST_PLACES, places));
        places = Math.min(places, Records.ceilDiv(records, RECORDS_PER_PLACE));
        return sorted(read(files, settings, records, (int) places), partitions);
    }

    private static byte[][] read(
            List<FileStatus> files, Configuration settings, long records, int places)
            throws IOException {
        byte[][] keys = new byte[places * RECORDS_PER_PLACE][];
        byte[] buffer = new byte[RECORDS_PER_PLACE * Records.LENGTH];
        int count = 0;
        int place = 0;
        long before = 0;
        for (FileStatus file : files) {
            long held = file.getLen() / Records.LENGTH;
            long end = before + held;
            if (place < places && start(place, places, records) < end) {
                FileSystem system = file.getPath().getFileSystem(settings);
                try (FSDataInputStream in = system.open(file.getPath())) {
                    for (; place < places && start(place, places, records) < end; place++) {
                        long first = start(place, places, records) - before;
                        int taken = (int) Math.min(RECORDS_PER_PLACE, held - first);
                        in.readFully(first * Records.LENGTH, buffer, 0, taken * Records.LENGTH);
                        for (int record = 0; record < taken; record++) {
                            int at = record * Records.LENGTH;
                            keys[count++] = Arrays.copyOfRange(buffer, at, at + Records.KEY_LENGTH);
                        }
                    }
                }
            }
            before = end;
        }
        return Arrays.copyOf(keys, count);
    }

    /** {@return the first record of a place} */
    private static long start(int place, int places, long records) {
        return records / places * place + records % places * place / places;
    }

    private static KeyRanges sorted(byte[][] keys, int partitions) {
        Arrays.sort(keys, Arrays::compareUnsigned);
        long[] prefixes = new long[keys.length];
        int[] tails = new int[keys.length];
        for (int key = 0; key < keys.length; key++) {
            prefixes[key] = Records.prefix(keys[key], 0);
            tails[key] = Records.tail(keys[key], 0);
        }
        return new KeyRanges(prefixes, tails, partitions);
    }
}
