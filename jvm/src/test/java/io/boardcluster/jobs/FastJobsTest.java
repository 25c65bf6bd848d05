package io.boardcluster.jobs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The fast MapReduce jobs write what Hadoop's own examples write. */
class FastJobsTest {

    private static final String TEXT =
            String.join(
                    "\n",
                    "the quick brown fox the",
                    "",
                    "the\tlazy\t\tdog\fthe\u000bfox  the ",
                    "Größe größe 日本語 \ud83d\ude80 日本語 no\u00a0break",
                    "2013,1,1,517,UA,1545,N14228,EWR,IAH",
                    "2013,1,1,533,UA,1714,N24211,LGA,IAH EWR EWREWR",
                    "last line without an end");

    @TempDir Path folder;

    private final ByteArrayOutputStream said = new ByteArrayOutputStream();
    private final PrintStream errors = new PrintStream(said, true, StandardCharsets.UTF_8);

    private Configuration local() {
        return Stock.local(folder);
    }

    private static List<String> lines(Path output) throws IOException {
        assertTrue(Files.exists(output.resolve("_SUCCESS")));
        try (Stream<Path> files = Files.list(output)) {
            Path part =
                    files.filter(file -> file.getFileName().toString().startsWith("part-"))
                            .reduce((one, other) -> other)
                            .orElseThrow();
            return Files.readAllLines(part);
        }
    }

    @Test
    void wordsAreCountedAsTheStockExampleCountsThem() throws Exception {
        Path input = Files.writeString(folder.resolve("input.txt"), TEXT);
        Path stock = folder.resolve("stock");
        Path fast = folder.resolve("fast");
        Stock.wordCount(local(), input, stock);

        String[] arguments = {input.toString(), fast.toString()};
        assertEquals(0, FastWordCount.run(local(), arguments, errors));

        assertEquals(lines(stock), lines(fast));
        assertTrue(lines(fast).contains("the\t4"), lines(fast).toString());
    }

    @Test
    void aTableThatIsFullIsSentOnAndAddedUpAgain() throws Exception {
        StringBuilder text = new StringBuilder();
        for (int round = 0; round < 2; round++) {
            for (int word = 0; word < 150_000; word++) {
                text.append(word).append(' ');
            }
            text.append('\n');
        }
        Path input = Files.writeString(folder.resolve("input.txt"), text);
        Path fast = folder.resolve("fast");

        String[] arguments = {input.toString(), fast.toString()};
        assertEquals(0, FastWordCount.run(local(), arguments, errors));

        List<String> found = lines(fast);
        assertEquals(150_000, found.size());
        assertTrue(found.stream().allMatch(line -> line.endsWith("\t2")));
    }

    @ParameterizedTest
    @ValueSource(strings = {"EWR", "EW", "[A-Z]{3}", "\\bUA\\b", "日.語", "zzz", "x*", "(?i)größe"})
    void matchesAreCountedAsTheStockExampleCountsThem(String regex) throws Exception {
        Path input = Files.writeString(folder.resolve("input.txt"), TEXT);
        Path stock = folder.resolve("stock");
        Path fast = folder.resolve("fast");
        Stock.run(Stock.grep(), folder, input.toString(), stock.toString(), regex);

        String[] arguments = {input.toString(), fast.toString(), regex};
        assertEquals(0, FastGrep.run(local(), arguments, errors));

        assertEquals(lines(stock).stream().sorted().toList(), lines(fast).stream().sorted().toList());
        List<Long> counts =
                lines(fast).stream().map(line -> Long.valueOf(line.split("\t")[0])).toList();
        assertEquals(counts.stream().sorted((one, other) -> Long.compare(other, one)).toList(), counts);
    }

    @Test
    void wrongArgumentsAreSaidBeforeAnythingIsSubmitted() throws IOException {
        assertEquals(2, FastGrep.run(local(), new String[] {"in", "out", "("}, errors));
        assertEquals(2, FastWordCount.run(local(), new String[] {"in"}, errors));
        String words = said.toString(StandardCharsets.UTF_8);
        assertTrue(words.contains("FastGrep: no regular expression: ("), words);
        assertTrue(words.contains("FastWordCount: 2 arguments are needed, 1 were given"), words);
    }
}
