package io.boardcluster.jobs;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.mapreduce.RecordWriter;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.spark.api.java.JavaPairRDD;

/**
 * Writes the bytes of blocks one after another, nothing before, between or after them.
 *
 * <p>Files are committed by Hadoop's own committer: what a failed or a second attempt wrote is
 * dropped, and {@code _SUCCESS} comes last. Replication, block size and kind of checksum are those
 * of the Hadoop configuration that the job was submitted with.
 */
public final class RawOutputFormat extends FileOutputFormat<NullWritable, Block> {

    /** Names the letter in {@code part-r-00000}: that of the MapReduce task that writes such. */
    private static final String LETTER = "boardcluster.output.letter";

    /** Hadoop makes one by reflection. */
    public RawOutputFormat() {}

    /** Saves blocks as {@code part-r-00000} and so on, a file per partition. */
    static void save(JavaPairRDD<NullWritable, Block> blocks, String output, Configuration base) {
        save(blocks, output, base, 'r');
    }

    static void save(
            JavaPairRDD<NullWritable, Block> blocks,
            String output,
            Configuration base,
            char letter) {
        Configuration settings = new Configuration(base);
        settings.set(LETTER, String.valueOf(letter));
        blocks.saveAsNewAPIHadoopFile(
                output, NullWritable.class, Block.class, RawOutputFormat.class, settings);
    }

    @Override
    public RecordWriter<NullWritable, Block> getRecordWriter(TaskAttemptContext context)
            throws IOException {
        FileOutputCommitter committer = (FileOutputCommitter) getOutputCommitter(context);
        Configuration settings = context.getConfiguration();
        int number = context.getTaskAttemptID().getTaskID().getId();
        String name = String.format("part-%s-%05d", settings.get(LETTER, "r"), number);
        Path file = new Path(committer.getWorkPath(), name);
        return new Writer(file.getFileSystem(settings).create(file, false));
    }

    private static final class Writer extends RecordWriter<NullWritable, Block> {

        private final FSDataOutputStream out;

        Writer(FSDataOutputStream out) {
            this.out = out;
        }

        @Override
        public void write(NullWritable nothing, Block block) throws IOException {
            out.write(block.bytes, 0, block.length);
        }

        @Override
        public void close(TaskAttemptContext context) throws IOException {
            out.close();
        }
    }
}
