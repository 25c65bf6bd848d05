package io.boardcluster.jobs;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

class TeraSortTest extends LocalSpark {

    private Path input;
    private Path output;

    private int sort(String... more) throws IOException {
        String[] paths = {input.toString(), output.toString()};
        return TeraSort.run(
                Stream.concat(Arrays.stream(paths), Arrays.stream(more)).toArray(String[]::new),
                errors);
    }

    private void prepare(byte[]... files) throws IOException {
        input = folder.resolve("input");
        output = folder.resolve("output");
        for (int number = 0; number < files.length; number++) {
            Stock.put(input, "part-m-0000" + number, files[number]);
        }
    }

    /** Every record of its own: sorted by all its bytes, equal keys have an order too. */
    private static byte[][] records(byte[] bytes) {
        byte[][] records = new byte[bytes.length / Records.LENGTH][];
        Arrays.setAll(
                records,
                number ->
                        Arrays.copyOfRange(
                                bytes, number * Records.LENGTH, (number + 1) * Records.LENGTH));
        return records;
    }

    private void assertSorted(byte[]... files) throws IOException {
        byte[] found = whole(output);
        byte[][] keys = records(found);
        for (int number = 1; number < keys.length; number++) {
            int order = Arrays.compareUnsigned(keys[number - 1], 0, 10, keys[number], 0, 10);
            assertTrue(order <= 0, "record " + number);
        }
        byte[][] expected =
                Arrays.stream(files)
                        .flatMap(file -> Arrays.stream(records(file)))
                        .toArray(byte[][]::new);
        Arrays.sort(expected, Arrays::compareUnsigned);
        Arrays.sort(keys, Arrays::compareUnsigned);
        assertArrayEquals(expected, keys);
    }

    private static byte[] randomKeys(int records, int distinct, long seed) {
        Random random = new Random(seed);
        byte[] bytes = new byte[records * Records.LENGTH];
        random.nextBytes(bytes);
        for (int record = 0; record < records; record++) {
            byte[] key = new byte[Records.KEY_LENGTH];
            // The first 8 bytes are often equal, so that the last 2 decide.
            new Random(random.nextInt(distinct)).nextBytes(key);
            Arrays.fill(key, 2, 8, (byte) 7);
            System.arraycopy(key, 0, bytes, record * Records.LENGTH, key.length);
        }
        return bytes;
    }

    @Test
    void generatedRowsAreSortedAcrossFiles() throws Exception {
        byte[] first = Stock.rows(0, 20_000, folder);
        byte[] second = Stock.rows(20_000, 7_001, folder);
        prepare(first, second, new byte[0]);

        assertEquals(0, sort("3"), this::said);

        assertEquals(List.of("part-r-00000", "part-r-00001", "part-r-00002"), names(output));
        for (Path part : parts(output)) {
            long records = Files.size(part) / Records.LENGTH;
            assertTrue(records > 8_000 && records < 10_000, part + ": " + records);
        }
        assertSorted(first, second);
    }

    @Test
    void splitsInTheMiddleOfARecordLoseNone() throws Exception {
        // Two splits of 4 MiB, which is no multiple of 100, and a short third.
        byte[] rows = Stock.rows(5, 90_000, folder);
        prepare(rows);

        assertEquals(0, sort(), this::said);

        assertEquals(2, parts(output).size());
        assertSorted(rows);
    }

    @ParameterizedTest
    @CsvSource({"1, 1", "1, 4", "3, 8", "300, 5"})
    void equalKeysAreKeptAndSpread(int distinct, int partitions) throws Exception {
        byte[] rows = randomKeys(12_000, distinct, 11);
        prepare(rows);

        assertEquals(0, sort("" + partitions), this::said);

        assertSorted(rows);
        for (Path part : parts(output)) {
            long fair = rows.length / partitions;
            assertTrue(Files.size(part) <= 2 * fair, part + ": " + Files.size(part));
        }
    }

    @Test
    void orderIsThatOfUnsignedBytes() throws Exception {
        byte[] rows = new byte[256 * Records.LENGTH];
        for (int record = 0; record < 256; record++) {
            rows[record * Records.LENGTH] = (byte) (record * 7);
            rows[record * Records.LENGTH + 9] = (byte) record;
        }
        prepare(rows);

        assertEquals(0, sort("2"), this::said);

        byte[] found = whole(output);
        for (int record = 0; record < 256; record++) {
            assertEquals((byte) record, found[record * Records.LENGTH]);
        }
    }

    @Test
    void nothingToSortGivesEmptyFiles() throws Exception {
        prepare(new byte[0]);

        assertEquals(0, sort(), this::said);

        assertEquals(0, whole(output).length);
    }

    @Test
    void onlyPartFilesAreRead() throws Exception {
        byte[] rows = Stock.rows(0, 10, folder);
        prepare(rows);
        Stock.put(input, "_SUCCESS", new byte[0]);
        Stock.put(input, "notes.txt", new byte[] {1});
        Files.createDirectory(input.resolve("part-of-something"));

        assertEquals(0, sort(), this::said);

        assertSorted(rows);
    }

    @Test
    void aFileOfOtherThanWholeRecordsIsNamed() throws Exception {
        prepare(Stock.rows(0, 10, folder), new byte[250]);

        assertEquals(1, sort());

        assertTrue(said().contains("part-m-00001 has 250 bytes, which is no multiple of"), said());
        assertEquals(1, said().lines().count());
        assertFalse(Files.exists(output));
    }

    @Test
    void anInputWithoutFilesIsSaid() throws Exception {
        prepare();

        assertEquals(1, sort());
        assertTrue(said().contains(input + " does not exist"), said());

        Files.createDirectory(input);
        assertEquals(1, sort());
        assertTrue(said().contains("no file whose name begins with part-"), said());
    }

    @ParameterizedTest
    @CsvSource({"0, 8, 8", "1, 2, 2", "1000000000, 8, 30", "33554432, 1, 1", "33554433, 1, 2"})
    void partitionsAreSmallAndEnough(long bytes, int cores, int expected) {
        assertEquals(expected, TeraSort.partitions(bytes, cores));
    }

    static Stream<Arguments> wrongArguments() {
        return Stream.of(
                Arguments.of(List.of("in"), "1 were given"),
                Arguments.of(List.of("in", "out", "2", "more"), "4 were given"),
                Arguments.of(List.of("", "out"), "path of the input is empty"),
                Arguments.of(List.of("in", ""), "path of the output is empty"),
                Arguments.of(List.of("in", "out", "0"), "allowed: 1 to 1000000"));
    }

    @ParameterizedTest
    @MethodSource("wrongArguments")
    void wrongArgumentsAreSaidBeforeSparkStarts(List<String> arguments, String expected)
            throws IOException {
        assertRefused(TeraSort::run, arguments, expected);
    }
}
