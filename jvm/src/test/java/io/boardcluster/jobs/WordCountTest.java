package io.boardcluster.jobs;

import static org.junit.jupiter.api.Assertions.assertAll;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Runs the whole job on a Spark of two local threads, set up as spark-submit does it. */
class WordCountTest {

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

    /** One for the class: Spark goes on using the folder of its first context in a JVM. */
    @TempDir static Path scratch;

    @TempDir Path folder;

    private final Map<String, String> settings = new HashMap<>();

    @BeforeEach
    void giveSettingsLikeSparkSubmit() {
        settings.put("spark.master", "local[2]");
        settings.put("spark.app.name", "test");
        settings.put("spark.driver.host", "127.0.0.1");
        settings.put("spark.driver.bindAddress", "127.0.0.1");
        settings.put("spark.ui.enabled", "false");
        settings.put("spark.local.dir", scratch.toString());
        settings.forEach(System::setProperty);
    }

    @AfterEach
    void takeSettingsBack() {
        settings.keySet().forEach(System::clearProperty);
    }

    private static int run(Path input, Path output) {
        return WordCount.run(new String[] {input.toString(), output.toString()}, System.err);
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
        try (Stream<Path> parts = Files.list(output)) {
            for (Path part : parts.filter(WordCountTest::isPart).toList()) {
                for (String line : Files.readString(part).lines().toList()) {
                    String[] fields = line.split("\t", -1);
                    assertEquals(2, fields.length, line);
                    assertNull(counts.put(fields[0], Long.valueOf(fields[1])), line);
                }
            }
        }
        return counts;
    }

    private static boolean isPart(Path file) {
        return file.getFileName().toString().startsWith("part-");
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

        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (Stream<Path> parts = Files.list(output)) {
            for (Path part : parts.filter(WordCountTest::isPart).toList()) {
                bytes.write(Files.readAllBytes(part));
            }
        }
        assertEquals("Größe\t3\n", bytes.toString(StandardCharsets.UTF_8));
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
    void afterAFailureTheContextIsStopped() throws IOException {
        Path missing = folder.resolve("missing.txt");
        Exception failure =
                assertThrows(Exception.class, () -> run(missing, folder.resolve("output")));
        assertTrue(failure.getMessage().contains("missing.txt"), failure.getMessage());

        // A JVM holds one Spark context: this run fails if the one before was not stopped.
        Path input = Files.writeString(folder.resolve("input.txt"), "word");
        assertEquals(0, run(input, folder.resolve("output")));
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
    void wrongArgumentsAreSaidBeforeSparkStarts(List<String> arguments, String said) {
        // Without them a Spark that starts would throw instead of returning a status.
        settings.keySet().forEach(System::clearProperty);
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        PrintStream errors = new PrintStream(bytes, true, StandardCharsets.UTF_8);

        int status = WordCount.run(arguments.toArray(String[]::new), errors);

        String message = bytes.toString(StandardCharsets.UTF_8);
        assertAll(
                () -> assertEquals(2, status),
                () -> assertTrue(message.contains(said), message),
                () -> assertTrue(message.contains("<input> <output>"), message));
    }
}
