package io.boardcluster.jobs;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.apache.hadoop.util.Tool;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

class TeraGenTest extends LocalSpark {

    private int generate(String... arguments) throws IOException {
        return TeraGen.run(arguments, errors);
    }

    @ParameterizedTest
    @ValueSource(
            longs = {
                0, 1, 255, 0x7FFF_FFF0L, 0xFFFF_FFF0L, 10_000_000_000L, 0x0123_4567_89AB_CDEFL
            })
    void rowsEqualThoseOfTheStockGenerator(long first) throws Exception {
        int count = 300;
        RowGenerator generator = new RowGenerator(first);
        byte[] rows = new byte[count * Records.LENGTH];
        for (int row = 0; row < count; row++) {
            generator.write(rows, row * Records.LENGTH);
        }
        assertArrayEquals(Stock.rows(first, count, folder), rows);
    }

    @ParameterizedTest
    @CsvSource({"1000, 3", "1, 2", "0, 2", "23456, 7"})
    void filesHoldTheRowsOfTheirRanges(int rows, int partitions) throws Exception {
        Path output = folder.resolve("output");

        assertEquals(0, generate("" + rows, output.toString(), "" + partitions));

        List<long[]> ranges = Stock.ranges(rows, partitions);
        assertEquals(partitions, parts(output).size());
        for (int number = 0; number < partitions; number++) {
            Path part = output.resolve("part-m-0000" + number);
            long[] range = ranges.get(number);
            byte[] expected = Stock.rows(range[0], (int) (range[1] - range[0]), folder);
            assertArrayEquals(expected, Files.readAllBytes(part), part.toString());
        }
    }

    /** Within one JVM the stock job has one task. */
    @Test
    void theFolderEqualsThatOfTheStockJob() throws Exception {
        Path ours = folder.resolve("ours");
        Path stock = folder.resolve("stock");

        assertEquals(0, generate("2345", ours.toString(), "1"));

        Tool job = new org.apache.hadoop.examples.terasort.TeraGen();
        Stock.run(job, folder, "2345", stock.toString());
        assertEquals(names(stock), names(ours));
        assertArrayEquals(whole(stock), whole(ours));
    }

    @Test
    void withoutANumberThereIsAPartitionPerCore() throws Exception {
        Path output = folder.resolve("output");

        // More rows than a block of output has room for.
        assertEquals(0, generate("25000", output.toString()));

        assertEquals(List.of("part-m-00000", "part-m-00001"), names(output));
        assertArrayEquals(Stock.rows(0, 25000, folder), whole(output));
    }

    @ParameterizedTest
    @CsvSource({"10, 3", "7, 7", "5, 8", "10000000, 24", "9007199254740993, 5", "0, 4"})
    void rangesAreThoseOfTheStockJob(long rows, int partitions) throws Exception {
        List<long[]> stock = Stock.ranges(rows, partitions);
        List<TeraGen.Range> ranges = TeraGen.ranges(rows, partitions);
        long next = 0;
        for (int number = 0; number < partitions; number++) {
            TeraGen.Range range = ranges.get(number);
            assertEquals(next, range.first);
            next = range.end;
            // A double cannot hold the last of these numbers of rows: the stock job loses one.
            long end = number == partitions - 1 ? rows : stock.get(number)[1];
            assertEquals(end, range.end);
        }
        assertEquals(partitions, ranges.size());
    }

    @Test
    void anExistingOutputIsRefusedAndLeftAlone() throws IOException {
        Path output = Files.createDirectory(folder.resolve("output"));
        Path kept = Files.writeString(output.resolve("kept.txt"), "kept");

        Exception failure =
                assertThrows(Exception.class, () -> generate("10", output.toString()));

        assertTrue(failure.getMessage().contains("already exists"), failure.getMessage());
        assertEquals("kept", Files.readString(kept));
    }

    static Stream<Arguments> wrongArguments() {
        return Stream.of(
                Arguments.of(List.of("10"), "1 were given"),
                Arguments.of(List.of("10", "out", "2", "more"), "4 were given"),
                Arguments.of(List.of("ten", "out"), "no whole number: ten"),
                Arguments.of(List.of("-1", "out"), "is -1"),
                Arguments.of(List.of("92233720368547759", "out"), "to 92233720368547758"),
                Arguments.of(List.of("10", " "), "empty"),
                Arguments.of(List.of("10", "out", "0"), "the number of partitions is 0"),
                Arguments.of(List.of("10", "out", "1.5"), "no whole number: 1.5"));
    }

    @ParameterizedTest
    @MethodSource("wrongArguments")
    void wrongArgumentsAreSaidBeforeSparkStarts(List<String> arguments, String expected)
            throws IOException {
        assertRefused(TeraGen::run, arguments, expected);
    }
}
