package io.boardcluster.jobs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

class WordCountTest extends LocalSpark {

    private static final String TEXT =
            String.join(
                    "\n",
                    "the quick brown fox",
                    "",
                    "the\tlazy\t\tdog\fthe\u000bfox  the ",
                    " \t\f",
                    "Größe größe 日本語 \ud83d\ude80 日本語 no\u00a0break",
                    "2013,1,1,517,UA,1545,N14228,EWR,IAH",
                    "windows\r",
                    "last line without an end");

    private int run(Path input, Path output) throws IOException {
        return WordCount.run(new String[] {input.toString(), output.toString()}, errors);
    }

    private static Map<String, Long> countIndependently(String text) {
        Map<String, Long> counts = new TreeMap<>();
        for (String word : text.split("[ \t\n\r\f]+")) {
            if (!word.isEmpty()) {
                counts.merge(word, 1L, Long::sum);
            }
        }
        return counts;
    }

    /** Reads the parts as MapReduce's text output; malformed UTF-8 and a word twice are errors. */
    private static Map<String, Long> read(Path output) throws IOException {
        Map<String, Long> counts = new TreeMap<>();
        for (Path part : parts(output)) {
            for (String line : Files.readString(part).lines().toList()) {
                String[] fields = line.split("\t", -1);
                assertEquals(2, fields.length, line);
                assertNull(counts.put(fields[0], Long.valueOf(fields[1])), line);
            }
        }
        return counts;
    }

    @Test
    void countsEqualAnIndependentCount() throws IOException {
        Path input = Files.writeString(folder.resolve("input.txt"), TEXT);
        Path output = folder.resolve("output");

        assertEquals(0, run(input, output));

        Map<String, Long> counts = read(output);
        assertEquals(countIndependently(TEXT), counts);
        assertEquals(3, counts.get("the"));
        assertEquals(1, counts.get("the\u000bfox"));
        assertTrue(Files.exists(output.resolve("_SUCCESS")));
    }

    @Test
    void oneWordIsOneLineOfWordTabCount() throws IOException {
        Path input = Files.writeString(folder.resolve("input.txt"), "Größe\nGröße Größe\n");
        Path output = folder.resolve("output");

        assertEquals(0, run(input, output));

        assertEquals("Größe\t3\n", new String(whole(output), StandardCharsets.UTF_8));
    }

    @Test
    void moreWordsThanATableHoldsAreCountedToo() throws IOException {
        StringBuilder text = new StringBuilder();
        for (int number = 0; number < 300_000; number++) {
            text.append("word").append(number % 180_000).append(number % 7 == 0 ? '\n' : ' ');
        }
        Path input = Files.writeString(folder.resolve("input.txt"), text);
        Path output = folder.resolve("output");

        assertEquals(0, run(input, output));

        Map<String, Long> counts = read(output);
        assertEquals(180_000, counts.size());
        assertEquals(countIndependently(text.toString()), counts);
    }

    @Test
    void longWordsAndWordsOfLettersOfManyBytesAreKept() throws IOException {
        String huge = "x".repeat(3_000_000);
        String text = huge + " a " + huge + "y " + "語".repeat(500_000) + " a\n";
        Path input = Files.writeString(folder.resolve("input.txt"), text);
        Path output = folder.resolve("output");

        assertEquals(0, run(input, output));

        assertEquals(countIndependently(text), read(output));
    }

    @Test
    void malformedBytesAreReplacedAsJavasDecoderDoes() throws IOException {
        byte[] text = {'a', (byte) 0xC3, ' ', 'b', (byte) 0xE6, (byte) 0x97, '\n', (byte) 0xFF};
        Path input = Files.write(folder.resolve("input.txt"), text);
        Path output = folder.resolve("output");

        assertEquals(0, run(input, output));

        assertEquals(countIndependently(new String(text, StandardCharsets.UTF_8)), read(output));
    }

    @Test
    void compressedFilesAndPatternsAreRead() throws IOException {
        Path input = folder.resolve("a.txt.gz");
        try (OutputStream out = new GZIPOutputStream(Files.newOutputStream(input))) {
            out.write("one two\ntwo\n".getBytes(StandardCharsets.UTF_8));
        }
        Files.writeString(folder.resolve("b.txt"), "two");
        Files.writeString(folder.resolve("c.log"), "other");
        Path output = folder.resolve("output");

        assertEquals(0, run(folder.resolve("?.txt*"), output));

        assertEquals(Map.of("one", 1L, "two", 3L), read(output));
    }

    @Test
    void wordsAreCountedAcrossTheFilesOfAFolder() throws IOException {
        Path input = Files.createDirectory(folder.resolve("input"));
        String first = "common left\n".repeat(700);
        String second = "right common\n".repeat(800);
        Files.writeString(input.resolve("a.txt"), first);
        Files.writeString(input.resolve("b.txt"), second);
        Path output = folder.resolve("output");

        assertEquals(0, run(input, output));

        assertEquals(Map.of("common", 1500L, "left", 700L, "right", 800L), read(output));
    }

    @Test
    void anEmptyInputGivesAnEmptyOutput() throws IOException {
        Path input = Files.createFile(folder.resolve("input.txt"));
        Path output = folder.resolve("output");

        assertEquals(0, run(input, output));

        assertEquals(Map.of(), read(output));
        assertTrue(Files.exists(output.resolve("_SUCCESS")));
    }

    @Test
    void aMissingInputIsNamedAndTheContextStopped() throws IOException {
        assertEquals(1, run(folder.resolve("missing.txt"), folder.resolve("output")));
        assertTrue(said().matches("WordCount: \\S*/missing.txt does not exist\n"), said());

        // A JVM holds one Spark context: this run fails if the one before was not stopped.
        Path input = Files.writeString(folder.resolve("input.txt"), "word");
        assertEquals(0, run(input, folder.resolve("output")));
    }

    @Test
    void afterAFailureTheContextIsStopped() throws IOException {
        Path input = Files.write(folder.resolve("input.gz"), new byte[] {1, 2, 3});
        assertThrows(Exception.class, () -> run(input, folder.resolve("output")));

        Path right = Files.writeString(folder.resolve("input.txt"), "word");
        assertEquals(0, run(right, folder.resolve("other")));
    }

    @Test
    void anExistingOutputIsRefusedAndLeftAlone() throws IOException {
        Path input = Files.writeString(folder.resolve("input.txt"), "word");
        Path output = Files.createDirectory(folder.resolve("output"));
        Path kept = Files.writeString(output.resolve("kept.txt"), "kept");

        Exception failure = assertThrows(Exception.class, () -> run(input, output));

        assertTrue(failure.getMessage().contains("already exists"), failure.getMessage());
        assertEquals("kept", Files.readString(kept));
        try (Stream<Path> files = Files.list(output)) {
            assertEquals(List.of(kept), files.toList());
        }
    }

    static Stream<Arguments> wrongArguments() {
        return Stream.of(
                Arguments.of(List.of(), "0 were given"),
                Arguments.of(List.of("in"), "1 were given"),
                Arguments.of(List.of("in", "out", "more"), "3 were given"),
                Arguments.of(List.of("", "out"), "empty"),
                Arguments.of(List.of("in", " "), "empty"));
    }

    @ParameterizedTest
    @MethodSource("wrongArguments")
    void wrongArgumentsAreSaidBeforeSparkStarts(List<String> arguments, String expected)
            throws IOException {
        assertRefused(WordCount::run, arguments, expected);
    }
}
