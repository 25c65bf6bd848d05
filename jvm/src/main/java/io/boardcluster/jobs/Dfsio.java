package io.boardcluster.jobs;

import java.io.IOException;
import java.io.PrintStream;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;

/**
 * Writes or reads whole files, one per task, and says how fast.
 *
 * <p>Files are {@code test_io_0} and so on in {@code <folder>/io_data}. Throughput is all bytes by
 * the sum of all tasks' seconds; the average rate is the mean of the files' own rates, and its
 * deviation their standard deviation over the whole set; a task's time runs from the open file to
 * the closed one, in milliseconds. A time below one millisecond counts as one. The result is one
 * line of JSON on standard output.
 *
 * <p>Source: {@code org.apache.hadoop.fs.TestDFSIO} and {@code IOMapperBase} of Apache Hadoop for
 * names, content, buffer, what is timed and the three figures.
 */
public final class Dfsio {

    private static final String DATA = "io_data";
    private static final double MEBI = 1 << 20;
    private static final double MILLI = 1e-3;
    private static final double NANO = 1e-9;

    private Dfsio() {}

    /**
     * Runs the job; ends the JVM with status 2 after wrong arguments.
     *
     * @param args {@code write} or {@code read}, folder, number of files, bytes of each file
     * @throws IOException if a file cannot be read or written
     */
    public static void main(String[] args) throws IOException {
        Launch.exit(run(args, System.out, System.err));
    }

    static int run(String[] args, PrintStream out, PrintStream errors) throws IOException {
        return Launch.run(
                Dfsio.class,
                "write|read <folder> <files> <bytes per file>",
                errors,
                () -> parse(args, out));
    }

    private static Launch.Job parse(String[] args, PrintStream out) throws UsageException {
        Arguments given = new Arguments(args, 4, 4);
        String operation = given.text(0);
        if (!operation.equals("write") && !operation.equals("read")) {
            throw new UsageException("the operation is " + operation + "; allowed: write, read");
        }
        String folder = new Path(given.path(1, "folder"), DATA).toString();
        int files = given.count(2, "the number of files");
        long bytes = given.number(3, "the number of bytes of each file", 1, 1L << 50);
        return context -> {
            long began = System.nanoTime();
            List<Long> milliseconds =
                    operation.equals("write")
                            ? write(context, folder, files, bytes)
                            : read(context, folder, files, bytes);
            double seconds = (System.nanoTime() - began) * NANO;
            out.println(line(operation, bytes, milliseconds, seconds));
        };
    }

    private static List<Long> write(
            JavaSparkContext context, String folder, int files, long bytes) throws IOException {
        Configuration settings = context.hadoopConfiguration();
        Path output = new Path(folder);
        output.getFileSystem(settings).delete(output, true);
        FileWriter writer = new FileWriter(new HadoopSettings(settings), folder, bytes);
        writer.begin();
        try {
            List<Long> times = numbers(context, files).map(writer::write).collect();
            writer.commit();
            return times;
        } catch (Throwable error) { // Spark's own exceptions are checked, and not declared
            try {
                writer.abort();
            } catch (IOException more) {
                error.addSuppressed(more);
            }
            throw error;
        }
    }

    private static List<Long> read(
            JavaSparkContext context, String folder, int files, long bytes) {
        HadoopSettings settings = new HadoopSettings(context.hadoopConfiguration());
        FileReader reader = new FileReader(settings, folder, bytes);
        return numbers(context, files).map(reader::read).collect();
    }

    private static JavaRDD<Integer> numbers(JavaSparkContext context, int files) {
        return context.parallelize(IntStream.range(0, files).boxed().toList(), files);
    }

    /** {@return the result as JSON} */
    static String line(String operation, long bytes, List<Long> milliseconds, double seconds) {
        int files = milliseconds.size();
        double total = 0;
        double rates = 0;
        double squares = 0;
        for (long time : milliseconds) {
            double rate = bytes / MEBI / (time * MILLI);
            total += time * MILLI;
            rates += rate;
            squares += rate * rate;
        }
        double mean = rates / files;
        double deviation = Math.sqrt(Math.abs(squares / files - mean * mean));
        return String.format(
                Locale.ROOT,
                "{\"operation\":\"%s\",\"files\":%d,\"total_bytes\":%d,"
                        + "\"throughput_mebibytes_per_second\":%s,"
                        + "\"average_io_rate_mebibytes_per_second\":%s,"
                        + "\"io_rate_deviation_mebibytes_per_second\":%s,"
                        + "\"execution_seconds\":%s,"
                        + "\"files_bytes\":[%s],\"files_milliseconds\":[%s]}",
                operation,
                files,
                files * bytes,
                files * bytes / MEBI / total,
                mean,
                deviation,
                seconds,
                milliseconds.stream().map(time -> "" + bytes).collect(Collectors.joining(",")),
                milliseconds.stream().map(String::valueOf).collect(Collectors.joining(",")));
    }
}
