package io.boardcluster.textbook;

import java.io.IOException;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.RecordWriter;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;

/** Writes key and value one behind the other, as {@code TeraOutputFormat} of Hadoop's examples. */
public final class PairOutputFormat extends FileOutputFormat<Text, Text> {

    /** Hadoop makes one by reflection. */
    public PairOutputFormat() {}

    @Override
    public RecordWriter<Text, Text> getRecordWriter(TaskAttemptContext context)
            throws IOException {
        Path file = getDefaultWorkFile(context, "");
        FSDataOutputStream out = file.getFileSystem(context.getConfiguration()).create(file);
        return new RecordWriter<>() {
            @Override
            public void write(Text key, Text value) throws IOException {
                out.write(key.getBytes(), 0, key.getLength());
                out.write(value.getBytes(), 0, value.getLength());
            }

            @Override
            public void close(TaskAttemptContext ignored) throws IOException {
                out.close();
            }
        };
    }
}
