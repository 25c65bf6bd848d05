package io.boardcluster.jobs;

import static org.junit.jupiter.api.Assertions.assertAll;
import static org.junit.jupiter.api.Assertions.assertEquals;
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
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

/** What tests of whole jobs share: a Spark of two local threads, set up as spark-submit does it. */
abstract class LocalSpark {

    /** One for all: Spark goes on using the folder of its first context as long as the JVM lives. */
    private static final Path SCRATCH = Path.of("target", "spark-scratch").toAbsolutePath();

    @TempDir Path folder;

    private final Map<String, String> settings = new HashMap<>();
    private final ByteArrayOutputStream said = new ByteArrayOutputStream();
    private final ByteArrayOutputStream printed = new ByteArrayOutputStream();
    final PrintStream errors = new PrintStream(said, true, StandardCharsets.UTF_8);
    final PrintStream out = new PrintStream(printed, true, StandardCharsets.UTF_8);

    @BeforeEach
    void giveSettingsLikeSparkSubmit() {
        settings.put("spark.master", "local[2]");
        settings.put("spark.app.name", "test");
        settings.put("spark.driver.host", "127.0.0.1");
        settings.put("spark.driver.bindAddress", "127.0.0.1");
        settings.put("spark.ui.enabled", "false");
        settings.put("spark.local.dir", SCRATCH.toString());
        settings.forEach(System::setProperty);
    }

    @AfterEach
    void takeSettingsBack() {
        settings.keySet().forEach(System::clearProperty);
    }

    /** {@return what the job said on standard error} */
    final String said() {
        return said.toString(StandardCharsets.UTF_8);
    }

    /** {@return what the job printed on standard output} */
    final String printed() {
        return printed.toString(StandardCharsets.UTF_8);
    }

    /** {@return the names of an output's part files, in order, after checking that it is whole} */
    static List<Path> parts(Path output) throws IOException {
        assertTrue(Files.exists(output.resolve("_SUCCESS")), "_SUCCESS");
        try (Stream<Path> files = Files.list(output)) {
            List<Path> all =
                    files.filter(file -> !file.getFileName().toString().startsWith("."))
                            .filter(file -> !file.getFileName().toString().equals("_SUCCESS"))
                            .sorted()
                            .toList();
            for (Path file : all) {
                assertTrue(file.getFileName().toString().startsWith("part-"), all.toString());
            }
            return all;
        }
    }

    static List<String> names(Path output) throws IOException {
        return parts(output).stream().map(file -> file.getFileName().toString()).toList();
    }

    /** {@return all part files one after another} */
    static byte[] whole(Path output) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        for (Path part : parts(output)) {
            bytes.write(Files.readAllBytes(part));
        }
        return bytes.toByteArray();
    }

    /** A job that gets its arguments, and where to say errors. */
    @FunctionalInterface
    interface Run {
        int run(String[] args, PrintStream errors) throws IOException;
    }

    /** Wrong arguments give status 2 and a line that says what, before Spark starts. */
    final void assertRefused(Run job, List<String> arguments, String expected) throws IOException {
        // Without them a Spark that starts would throw instead of returning a status.
        settings.keySet().forEach(System::clearProperty);

        int status = job.run(arguments.toArray(String[]::new), errors);

        assertAll(
                () -> assertEquals(2, status),
                () -> assertTrue(said().lines().findFirst().orElse("").contains(expected), said()),
                () -> assertTrue(said().contains("usage: "), said()));
    }
}
