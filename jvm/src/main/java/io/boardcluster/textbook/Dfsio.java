package io.boardcluster.textbook;

import java.io.IOException;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;

/** Each task writes or reads a file where it is to be. */
public final class Dfsio {

    private static final int BUFFER_BYTES = 1_000_000;

    private Dfsio() {}

    /**
     * Writes or reads files.
     *
     * @param args {@code write} or {@code read}, folder, number of files, bytes of each
     * @throws IOException if old files cannot be deleted
     */
    public static void main(String[] args) throws IOException {
        boolean write = args[0].equals("write");
        int files = Integer.parseInt(args[2]);
        long bytes = Long.parseLong(args[3]);
        try (JavaSparkContext context = new JavaSparkContext(new SparkConf())) {
            // Fully qualified, since an executor's default file system may be another.
            Path folder = new Path(args[1], "io_data");
            FileSystem system = folder.getFileSystem(context.hadoopConfiguration());
            if (write) {
                system.delete(folder, true);
            }
            String base = system.makeQualified(folder).toString();
            List<Integer> numbers = IntStream.range(0, files).boxed().toList();
            long milliseconds =
                    context.parallelize(numbers, files)
                            .map(number -> new Path(base, "test_io_" + number).toString())
                            .map(file -> write ? write(file, bytes) : read(file))
                            .reduce(Long::sum);
            System.out.println(1e3 * files * bytes / (1 << 20) / milliseconds + " MiB/s");
        }
    }

    private static long write(String name, long bytes) throws IOException {
        byte[] buffer = new byte[BUFFER_BYTES];
        for (int at = 0; at < buffer.length; at++) {
            buffer[at] = (byte) ('0' + at % 50);
        }
        Path file = new Path(name);
        long began = System.currentTimeMillis();
        try (FSDataOutputStream out = file.getFileSystem(new Configuration()).create(file)) {
            for (long remaining = bytes; remaining > 0; remaining -= buffer.length) {
                out.write(buffer, 0, (int) Math.min(buffer.length, remaining));
            }
        }
        return System.currentTimeMillis() - began;
    }

    private static long read(String name) throws IOException {
        byte[] buffer = new byte[BUFFER_BYTES];
        Path file = new Path(name);
        long began = System.currentTimeMillis();
        try (FSDataInputStream in = file.getFileSystem(new Configuration()).open(file)) {
            while (in.read(buffer) >= 0) {
                // Only the time counts.
            }
        }
        return System.currentTimeMillis() - began;
    }
}
