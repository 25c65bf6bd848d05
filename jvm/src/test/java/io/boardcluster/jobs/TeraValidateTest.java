package io.boardcluster.jobs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Every report is compared with that of the stock job on the same files. */
class TeraValidateTest extends LocalSpark {

    private Path input;

    @BeforeEach
    void nameTheInput() {
        input = folder.resolve("input");
    }

    private String report() throws Exception {
        Path ours = folder.resolve("ours");
        Path stock = folder.resolve("stock");
        assertEquals(
                0,
                TeraValidate.run(new String[] {input.toString(), ours.toString()}, errors),
                this::said);
        Stock.run(
                new org.apache.hadoop.examples.terasort.TeraValidate(),
                folder,
                input.toString(),
                stock.toString());
        assertEquals(List.of("part-r-00000"), names(ours));
        String report = Files.readString(ours.resolve("part-r-00000"));
        assertEquals(Files.readString(stock.resolve("part-r-00000")), report);
        return report;
    }

    /** Rows with ascending keys. */
    private static byte[] ascending(int first, int count) {
        byte[] rows = new byte[count * Records.LENGTH];
        RowGenerator generator = new RowGenerator(first);
        for (int row = 0; row < count; row++) {
            int at = row * Records.LENGTH;
            generator.write(rows, at);
            setKey(rows, row, first + row);
        }
        return rows;
    }

    private static void setKey(byte[] rows, int row, int value) {
        int at = row * Records.LENGTH;
        Arrays.fill(rows, at, at + Records.KEY_LENGTH, (byte) 0xE0);
        for (int place = 0; place < 4; place++) {
            rows[at + place] = (byte) (value >>> (24 - 8 * place));
        }
    }

    @Test
    void orderedFilesGiveOnlyAChecksum() throws Exception {
        Stock.put(input, "part-r-00000", ascending(0, 3_000));
        Stock.put(input, "part-r-00001", new byte[0]);
        Stock.put(input, "part-r-00002", ascending(3_000, 20_000));
        Stock.put(input, "_partition.lst", new byte[] {1});

        String report = report();

        assertTrue(report.matches("checksum\t[0-9a-f]+\n"), report);
    }

    @Test
    void aRecordOutOfOrderIsSaidWithBothKeys() throws Exception {
        byte[] rows = ascending(0, 1_000);
        setKey(rows, 700, 5);
        Stock.put(input, "part-r-00000", rows);

        String report = report();

        assertTrue(
                report.contains(
                        "error\tmisorder in part-r-00000 between 00 00 02 bb e0 e0 e0 e0 e0 e0"
                                + " and 00 00 00 05 e0 e0 e0 e0 e0 e0\n"),
                report);
    }

    @Test
    void aFewRecordsOutOfOrderComeAsTheStockSortPutsThem() throws Exception {
        byte[] rows = ascending(10, 1_000);
        setKey(rows, 100, 5);
        setKey(rows, 300, 4);
        setKey(rows, 301, 3);
        Stock.put(input, "part-r-00000", rows);

        assertEquals(4, report().lines().count());
    }

    @Test
    void filesOutOfOrderAreSaid() throws Exception {
        Stock.put(input, "part-r-00000", ascending(500, 100));
        Stock.put(input, "part-r-00001", ascending(100, 100));
        Stock.put(input, "part-r-00002", ascending(599, 100));

        String report = report();

        String said = "error\tbad key partitioning:\n  file part-r-00000:end key";
        assertTrue(report.contains(said), report);
    }

    @Test
    void bothKindsOfErrorsCanOccurAtOnce() throws Exception {
        byte[] rows = ascending(0, 200);
        setKey(rows, 199, 1);
        Stock.put(input, "part-m-00000", rows);
        Stock.put(input, "part-m-00001", ascending(0, 1));

        String report = report();

        assertEquals(5, report.lines().count(), report);
    }

    @Test
    void namesAreReportedInTheirOrderAsBytes() throws Exception {
        byte[] rows = ascending(50, 20);
        setKey(rows, 10, 1);
        Stock.put(input, "Zero", ascending(100, 10));
        Stock.put(input, "a", ascending(90, 10));
        Stock.put(input, "d", rows);
        Stock.put(input, "f", ascending(0, 10));

        String report = report();

        assertTrue(report.startsWith("error\tbad key partitioning:\n  file Zero:end"), report);
    }

    @Test
    void aFileOfSeveralSplitsIsCheckedAcrossTheirEnds() throws Exception {
        // The second split of 4 MiB begins with record 41,944.
        byte[] rows = ascending(0, 60_000);
        setKey(rows, 41_000, 9);
        setKey(rows, 41_944, 7);
        setKey(rows, 50_000, 8);
        Stock.put(input, "part-r-00000", rows);

        String report = report();

        assertEquals(4, report.lines().count(), report);
        assertTrue(report.contains("00 00 a3 d7 e0 e0 e0 e0 e0 e0 and 00 00 00 07"), report);
    }

    @Test
    void noRecordsGiveAnEmptyReport() throws Exception {
        Stock.put(input, "part-r-00000", new byte[0]);

        assertEquals("", report());
    }

    @Test
    void aFileOfOtherThanWholeRecordsIsNamed() throws Exception {
        Stock.put(input, "part-r-00000", new byte[101]);
        Path output = folder.resolve("output");

        int status = TeraValidate.run(new String[] {input.toString(), output.toString()}, errors);

        assertEquals(1, status);
        assertTrue(said().contains("part-r-00000 has 101 bytes"), said());
    }

    static Stream<Arguments> wrongArguments() {
        return Stream.of(
                Arguments.of(List.of("in"), "1 were given"),
                Arguments.of(List.of("in", "out", "more"), "3 were given"),
                Arguments.of(List.of("in", ""), "path of the output is empty"));
    }

    @ParameterizedTest
    @MethodSource("wrongArguments")
    void wrongArgumentsAreSaidBeforeSparkStarts(List<String> arguments, String expected)
            throws IOException {
        assertRefused(TeraValidate::run, arguments, expected);
    }
}
