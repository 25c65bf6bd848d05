package io.boardcluster.jobs;

import java.io.EOFException;
import java.io.IOException;
import java.io.Serializable;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.Path;

/** Reads one of the files of {@link Dfsio}; what the bytes are is not looked at. */
final class FileReader implements Serializable {

    private static final long serialVersionUID = 1L;

    private final HadoopSettings settings;
    private final String folder;
    private final long bytes;

    FileReader(HadoopSettings settings, String folder, long bytes) {
        this.settings = settings;
        this.folder = folder;
        this.bytes = bytes;
    }

    /** {@return the milliseconds that reading a file took} */
    long read(int number) throws IOException {
        byte[] buffer = new byte[FileWriter.BUFFER_BYTES];
        Path file = new Path(folder, FileWriter.NAME + number);
        long began;
        try (FSDataInputStream in = file.getFileSystem(settings.get()).open(file)) {
            began = System.currentTimeMillis();
            for (long had = 0; had < bytes; ) {
                int count = in.read(buffer, 0, buffer.length);
                if (count < 0) {
                    throw new EOFException(file + " has " + had + " bytes, " + bytes + " wanted");
                }
                had += count;
            }
        }
        return Math.max(1, System.currentTimeMillis() - began);
    }
}
