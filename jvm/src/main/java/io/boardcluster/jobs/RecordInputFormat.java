package io.boardcluster.jobs;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.RecordReader;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.input.FileSplit;
import org.apache.hadoop.util.StringUtils;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaSparkContext;

/**
 * Reads the files of a folder as blocks of whole records. A split ends anywhere; a record belongs
 * to the split that holds its first byte.
 */
public final class RecordInputFormat extends FileInputFormat<NullWritable, Block> {

    /** How the names of the files begin that are read; empty for all. */
    private static final String BEGIN = "boardcluster.input.begin";

    private static final long LEAST_SPLIT_BYTES = 4L << 20;

    /** Bytes of the largest split. */
    static final long MOST_SPLIT_BYTES = 32L << 20;

    /** Hadoop makes one by reflection. */
    public RecordInputFormat() {}

    /**
     * {@return blocks of all records of a folder}
     *
     * @param context the application
     * @param input the folder
     * @param begin how the names of the files begin; empty for all but hidden ones
     * @param totalBytes what the files hold together; all cores get some of it
     */
    static JavaPairRDD<NullWritable, Block> open(
            JavaSparkContext context, String input, String begin, long totalBytes) {
        Configuration settings = new Configuration(context.hadoopConfiguration());
        settings.set(BEGIN, begin);
        settings.set(INPUT_DIR, StringUtils.escapeString(input));
        settings.setLong(SPLIT_MAXSIZE, splitBytes(totalBytes, context.defaultParallelism()));
        return context.newAPIHadoopRDD(
                settings, RecordInputFormat.class, NullWritable.class, Block.class);
    }

    /** A share per core, within bounds that keep a task's data in a small heap. */
    static long splitBytes(long totalBytes, int cores) {
        long share = Records.ceilDiv(totalBytes, cores);
        return Math.max(LEAST_SPLIT_BYTES, Math.min(MOST_SPLIT_BYTES, share));
    }

    /**
     * {@return the files to read, by name}
     *
     * @throws InputException if there is no such folder, or a file does not hold whole records
     */
    static List<FileStatus> list(Configuration settings, String input, String begin)
            throws IOException {
        Path folder = new Path(input);
        FileSystem files = folder.getFileSystem(settings);
        if (!files.exists(folder)) {
            throw new InputException(input + " does not exist");
        }
        List<FileStatus> found = new ArrayList<>();
        // With the places of their blocks, so that tasks run where their data is.
        RemoteIterator<LocatedFileStatus> rows = files.listLocatedStatus(folder);
        while (rows.hasNext()) {
            FileStatus file = rows.next();
            String name = file.getPath().getName();
            boolean hidden = name.startsWith("_") || name.startsWith(".");
            if (!file.isFile() || hidden || !name.startsWith(begin)) {
                continue;
            }
            if (file.getLen() % Records.LENGTH != 0) {
                throw new InputException(
                        file.getPath().toUri().getPath()
                                + " has "
                                + file.getLen()
                                + " bytes, which is no multiple of "
                                + Records.LENGTH);
            }
            found.add(file);
        }
        found.sort(Comparator.comparing(FileStatus::getPath));
        return found;
    }

    @Override
    protected List<FileStatus> listStatus(JobContext context) throws IOException {
        Configuration settings = context.getConfiguration();
        String input = StringUtils.unEscapeString(settings.get(INPUT_DIR));
        return list(settings, input, settings.get(BEGIN));
    }

    @Override
    public RecordReader<NullWritable, Block> createRecordReader(
            InputSplit split, TaskAttemptContext context) {
        return new Reader();
    }

    private static final class Reader extends RecordReader<NullWritable, Block> {

        private final Block block = new Block(Block.BYTES);
        private FSDataInputStream in;
        private long begin;
        private long position;
        private long end;

        @Override
        public void initialize(InputSplit split, TaskAttemptContext context) throws IOException {
            FileSplit part = (FileSplit) split;
            Path path = part.getPath();
            begin = wholeRecords(part.getStart());
            end = wholeRecords(part.getStart() + part.getLength());
            position = begin;
            block.file = path.getName();
            in = path.getFileSystem(context.getConfiguration()).open(path);
            in.seek(begin);
        }

        /** {@return the first boundary of records at or after an offset} */
        private static long wholeRecords(long offset) {
            return Records.ceilDiv(offset, Records.LENGTH) * Records.LENGTH;
        }

        @Override
        public boolean nextKeyValue() throws IOException {
            block.offset = position;
            block.length = (int) Math.min(Block.BYTES, end - position);
            if (block.length <= 0) {
                return false;
            }
            in.readFully(block.bytes, 0, block.length);
            position += block.length;
            return true;
        }

        @Override
        public NullWritable getCurrentKey() {
            return NullWritable.get();
        }

        @Override
        public Block getCurrentValue() {
            return block;
        }

        @Override
        public float getProgress() {
            return end == begin ? 1f : (position - begin) / (float) (end - begin);
        }

        @Override
        public void close() throws IOException {
            if (in != null) {
                in.close();
            }
        }
    }
}
