package io.boardcluster.jobs;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.input.TextInputFormat;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaSparkContext;

/**
 * Lines of UTF-8 text as bytes, read by Hadoop's text input format: files, folders, patterns and
 * compressed files, split so that all cores get some.
 */
final class TextInput {

    private TextInput() {}

    /**
     * {@return the lines without their ends; the objects are filled again for every line}
     *
     * @param totalBytes what {@link #bytes} says
     */
    static JavaPairRDD<LongWritable, Text> open(
            JavaSparkContext context, String input, long totalBytes) {
        Configuration settings = new Configuration(context.hadoopConfiguration());
        long split = RecordInputFormat.splitBytes(totalBytes, context.defaultParallelism());
        settings.setLong(FileInputFormat.SPLIT_MAXSIZE, split);
        return context.newAPIHadoopFile(
                input, TextInputFormat.class, LongWritable.class, Text.class, settings);
    }

    /**
     * {@return what the files of an input hold together}
     *
     * @throws InputException if a path or pattern names none
     */
    static long bytes(JavaSparkContext context, String input) throws IOException {
        Job job = Job.getInstance(context.hadoopConfiguration());
        FileInputFormat.setInputPaths(job, input);
        long bytes = 0;
        for (Path path : FileInputFormat.getInputPaths(job)) {
            FileSystem files = path.getFileSystem(job.getConfiguration());
            FileStatus[] found = files.globStatus(path);
            if (found == null || found.length == 0) {
                throw new InputException(path + " does not exist");
            }
            for (FileStatus status : found) {
                bytes += files.getContentSummary(status.getPath()).getLength();
            }
        }
        return bytes;
    }
}
