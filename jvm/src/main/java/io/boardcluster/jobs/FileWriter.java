package io.boardcluster.jobs;

import java.io.IOException;
import java.io.Serializable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.JobID;
import org.apache.hadoop.mapreduce.JobStatus;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.TaskID;
import org.apache.hadoop.mapreduce.TaskType;
import org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter;
import org.apache.hadoop.mapreduce.task.JobContextImpl;
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl;
import org.apache.spark.TaskContext;

/**
 * Writes the files of {@link Dfsio}. Hadoop's own committer brings each attempt's file to its
 * place, outside the time that is measured.
 */
final class FileWriter implements Serializable {

    /** How names of files begin. */
    static final String NAME = "test_io_";

    /** Bytes that go to or come from the file system at a time. */
    static final int BUFFER_BYTES = 1_000_000;

    private static final long serialVersionUID = 1L;
    private static final JobID JOB = new JobID("dfsio", 0);

    private final HadoopSettings settings;
    private final String folder;
    private final long bytes;

    FileWriter(HadoopSettings settings, String folder, long bytes) {
        this.settings = settings;
        this.folder = folder;
        this.bytes = bytes;
    }

    void begin() throws IOException {
        committer().setupJob(job());
    }

    void commit() throws IOException {
        committer().commitJob(job());
    }

    void abort() throws IOException {
        committer().abortJob(job(), JobStatus.State.FAILED);
    }

    /** {@return the milliseconds that writing a file took} */
    long write(int number) throws IOException {
        TaskAttemptContext task = task(number);
        FileOutputCommitter committer = new FileOutputCommitter(new Path(folder), task);
        committer.setupTask(task);
        try {
            long milliseconds = timed(new Path(committer.getWorkPath(), NAME + number));
            committer.commitTask(task);
            return milliseconds;
        } catch (IOException | RuntimeException error) {
            committer.abortTask(task);
            throw error;
        }
    }

    private long timed(Path file) throws IOException {
        byte[] buffer = new byte[BUFFER_BYTES];
        for (int at = 0; at < buffer.length; at++) {
            buffer[at] = (byte) ('0' + at % 50);
        }
        long began;
        try (FSDataOutputStream out =
                file.getFileSystem(settings.get()).create(file, true, BUFFER_BYTES)) {
            began = System.currentTimeMillis();
            for (long remaining = bytes; remaining > 0; remaining -= buffer.length) {
                out.write(buffer, 0, (int) Math.min(buffer.length, remaining));
            }
        }
        return Math.max(1, System.currentTimeMillis() - began);
    }

    private FileOutputCommitter committer() throws IOException {
        return new FileOutputCommitter(new Path(folder), job());
    }

    private JobContext job() {
        return new JobContextImpl(settings.get(), JOB);
    }

    private TaskAttemptContext task(int number) {
        int attempt = (int) TaskContext.get().taskAttemptId();
        TaskID id = new TaskID(JOB, TaskType.MAP, number);
        Configuration own = new Configuration(settings.get());
        return new TaskAttemptContextImpl(own, new TaskAttemptID(id, attempt));
    }
}
