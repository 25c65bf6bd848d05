package io.boardcluster.jobs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.util.Progressable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

class DfsioTest extends LocalSpark {

    private Path data;

    @BeforeEach
    void nameTheData() {
        data = folder.resolve("io_data");
    }

    private int dfsio(String operation, int files, long bytes) throws IOException {
        String[] arguments = {operation, folder.toString(), "" + files, "" + bytes};
        return Dfsio.run(arguments, out, errors);
    }

    private static String pattern(String operation, int files, long bytes) {
        String number = "[0-9.E-]+";
        String sizes = String.join(",", java.util.Collections.nCopies(files, "" + bytes));
        String times = String.join(",", java.util.Collections.nCopies(files, "[1-9][0-9]*"));
        return Pattern.quote("{\"operation\":\"" + operation + "\",\"files\":" + files)
                + (",\"total_bytes\":" + files * bytes)
                + (",\"throughput_mebibytes_per_second\":" + number)
                + (",\"average_io_rate_mebibytes_per_second\":" + number)
                + (",\"io_rate_deviation_mebibytes_per_second\":" + number)
                + (",\"execution_seconds\":" + number)
                + (",\"files_bytes\":\\[" + sizes + "\\]")
                + (",\"files_milliseconds\":\\[" + times + "\\]}\n");
    }

    @Test
    void everyFileIsWrittenInFullAndReadBack() throws IOException {
        assertEquals(0, dfsio("write", 3, 2_500_001), this::said);

        assertTrue(printed().matches(pattern("write", 3, 2_500_001)), printed());
        assertTrue(Files.exists(data.resolve("_SUCCESS")));
        assertFalse(Files.exists(data.resolve("_temporary")));
        for (int number = 0; number < 3; number++) {
            byte[] bytes = Files.readAllBytes(data.resolve("test_io_" + number));
            assertEquals(2_500_001, bytes.length);
            for (int at = 0; at < bytes.length; at++) {
                assertEquals((byte) ('0' + at % 50), bytes[at]);
            }
        }

        assertEquals(0, dfsio("read", 3, 2_500_001), this::said);
        String second = printed().lines().skip(1).findFirst().orElseThrow() + "\n";
        assertTrue(second.matches(pattern("read", 3, 2_500_001)), second);
    }

    @Test
    void writingReplacesWhatWasThere() throws IOException {
        assertEquals(0, dfsio("write", 3, 10));
        assertEquals(0, dfsio("write", 2, 5));

        assertEquals(5, Files.size(data.resolve("test_io_1")));
        assertFalse(Files.exists(data.resolve("test_io_2")));
    }

    /** The files of this machine, of which one cannot be created. */
    public static final class FullDisk extends RawLocalFileSystem {
        @Override
        public FSDataOutputStream create(
                org.apache.hadoop.fs.Path file,
                boolean overwrite,
                int bufferSize,
                short replication,
                long blockSize,
                Progressable progress)
                throws IOException {
            if (file.getName().equals("test_io_1")) {
                throw new IOException("no space left");
            }
            return super.create(file, overwrite, bufferSize, replication, blockSize, progress);
        }
    }

    @Test
    void nothingIsLeftOfFilesThatCouldNotAllBeWritten() throws IOException {
        System.setProperty("spark.hadoop.fs.file.impl", FullDisk.class.getName());
        System.setProperty("spark.hadoop.fs.file.impl.disable.cache", "true");
        try {
            Exception full = assertThrows(Exception.class, () -> dfsio("write", 2, 10));
            assertTrue(full.getMessage().contains("no space left"), full.getMessage());
        } finally {
            System.clearProperty("spark.hadoop.fs.file.impl");
            System.clearProperty("spark.hadoop.fs.file.impl.disable.cache");
        }
        assertFalse(Files.exists(data.resolve("_temporary")));
    }

    @Test
    void aFileThatIsTooShortOrMissingIsNamed() throws IOException {
        assertEquals(0, dfsio("write", 1, 10));

        Exception shorter = assertThrows(Exception.class, () -> dfsio("read", 1, 11));
        assertTrue(shorter.getMessage().contains("test_io_0 has 10 bytes, 11 wanted"));
        Exception missing = assertThrows(Exception.class, () -> dfsio("read", 2, 10));
        assertTrue(missing.getMessage().contains("test_io_1"), missing.getMessage());
    }

    @Test
    void figuresAreThoseOfTestDfsio() {
        // 10 MiB in 1 s and 10 MiB in 4 s: 20 MiB in 5 s of tasks; rates 10 and 2.5.
        String line = Dfsio.line("read", 10 << 20, List.of(1000L, 4000L), 5.5);

        assertTrue(line.contains("\"throughput_mebibytes_per_second\":4.0,"), line);
        assertTrue(line.contains("\"average_io_rate_mebibytes_per_second\":6.25,"), line);
        assertTrue(line.contains("\"io_rate_deviation_mebibytes_per_second\":3.75,"), line);
        assertTrue(line.contains("\"execution_seconds\":5.5,"), line);
        assertTrue(line.contains("\"total_bytes\":20971520,"), line);
        assertTrue(line.endsWith("\"files_milliseconds\":[1000,4000]}"), line);
    }

    static Stream<Arguments> wrongArguments() {
        return Stream.of(
                Arguments.of(List.of("write", "folder", "2"), "3 were given"),
                Arguments.of(List.of("append", "folder", "2", "10"), "append; allowed: write"),
                Arguments.of(List.of("read", "", "2", "10"), "path of the folder is empty"),
                Arguments.of(List.of("read", "folder", "0", "10"), "the number of files is 0"),
                Arguments.of(List.of("read", "folder", "2", "0"), "bytes of each file is 0"));
    }

    @ParameterizedTest
    @MethodSource("wrongArguments")
    void wrongArgumentsAreSaidBeforeSparkStarts(List<String> arguments, String expected)
            throws IOException {
        assertRefused((given, to) -> Dfsio.run(given, out, to), arguments, expected);
        assertEquals("", printed());
    }
}
