package io.boardcluster.jobs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.hadoop.io.Text;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

class GrepTest extends LocalSpark {

    private static final List<String> LINES =
            List.of(
                    "2013,1,1,517,UA,1545,N14228,EWR,IAH",
                    "2013,1,1,533,UA,1714,N24211,LGA,IAH",
                    "",
                    "  leading and trailing  ",
                    "Größe 日本語 \ud83d\ude80 EWR",
                    "größe",
                    "a.b",
                    "axb",
                    "ab",
                    "aab EWR",
                    "tab\there");

    private int grep(Path input, Path output, String regex) throws IOException {
        return Grep.run(new String[] {input.toString(), output.toString(), regex}, errors);
    }

    private static List<String> expected(String regex) {
        return LINES.stream().filter(line -> Pattern.compile(regex).matcher(line).find()).toList();
    }

    private static List<String> read(Path output) throws IOException {
        return new String(whole(output), StandardCharsets.UTF_8).lines().toList();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "EWR", "a.b", "a\\.b", "^a", "b$", "aab", "(?i)GRÖSSE|größe", "Größe",
                "^$", "",
                "\\bUA\\b.*IAH", "[^,]+,LGA", "日.語", "\\d{4}", " ", "(a)\\1", "zzz",
                "ab?", "aa*b", "ax{0}b", "aab+ E", "2013(,1)+", "N1[0-9]*,EWR", "EWR|LGA", "z|\t"
            })
    void theLinesAreThoseInWhichJavaFindsTheExpression(String regex) throws IOException {
        Path input = Files.writeString(folder.resolve("input.txt"), String.join("\n", LINES));
        Path output = folder.resolve("output");

        assertEquals(0, grep(input, output, regex), this::said);

        assertEquals(expected(regex), read(output));
    }

    @ParameterizedTest
    @CsvSource({
        "EWR, EWR", "N1[0-9]*, N1", "ab?c, a", "ab*, a", "ab{0}, a", "ab+, ab", "a?, ''", "^a, ''",
        "ab|cd, ''", "x(?i)ab, x", "ab\\d, ab", "größe, gr", "'', ''"
    })
    void whatEveryMatchBeginsWith(String regex, String beginning) {
        assertEquals(beginning, LineMatcher.beginningOf(regex));
    }

    @Test
    void linesOfManySplitsAndBlocksKeepTheirOrder() throws IOException {
        StringBuilder text = new StringBuilder();
        StringBuilder wanted = new StringBuilder();
        for (int number = 0; number < 400_000; number++) {
            String line = "line number " + number + (number % 3 == 0 ? " fizz\n" : "\n");
            text.append(line);
            if (number % 3 == 0) {
                wanted.append(line);
            }
        }
        Path input = Files.writeString(folder.resolve("input.txt"), text);
        Path output = folder.resolve("output");

        assertEquals(0, grep(input, output, "fizz"));

        assertTrue(parts(output).size() > 1);
        assertEquals(wanted.toString(), new String(whole(output), StandardCharsets.UTF_8));
    }

    @ParameterizedTest
    @ValueSource(strings = {"ok", "ok|never"})
    void malformedBytesAreReplacedAsJavasDecoderDoes(String regex) throws IOException {
        byte[] text = {'o', 'k', (byte) 0xC3, '\n', (byte) 0xFF, 'n', 'o', '\n'};
        Path input = Files.write(folder.resolve("input.txt"), text);
        Path output = folder.resolve("output");

        assertEquals(0, grep(input, output, regex));

        assertEquals(List.of("ok\ufffd"), read(output));
    }

    @Test
    void aLiteralIsFoundAtEveryPlace() {
        byte[] text = "abcabd".getBytes(StandardCharsets.US_ASCII);
        for (String part : List.of("a", "d", "abd", "cab", "abcabd", "bca")) {
            assertTrue(contains(text, 6, part), part);
        }
        for (String other : List.of("abe", "abcabda", "x", "dd")) {
            assertFalse(contains(text, 6, other), other);
        }
        assertFalse(contains(text, 5, "d"), "beyond the length");
    }

    private static boolean contains(byte[] text, int length, String wanted) {
        Text line = new Text();
        line.set(text, 0, length);
        return new LineMatcher(wanted).isIn(line);
    }

    @Test
    void aMissingInputIsNamed() throws IOException {
        assertEquals(1, grep(folder.resolve("missing"), folder.resolve("output"), "a"));
        assertTrue(said().matches("Grep: \\S*/missing does not exist\n"), said());
    }

    static Stream<Arguments> wrongArguments() {
        return Stream.of(
                Arguments.of(List.of("in", "out"), "2 were given"),
                Arguments.of(List.of("in", "out", "a", "b"), "4 were given"),
                Arguments.of(List.of("", "out", "a"), "path of the input is empty"),
                Arguments.of(List.of("in", "out", "(a"), "(a (Unclosed group)"));
    }

    @ParameterizedTest
    @MethodSource("wrongArguments")
    void wrongArgumentsAreSaidBeforeSparkStarts(List<String> arguments, String expected)
            throws IOException {
        assertRefused(Grep::run, arguments, expected);
    }
}
