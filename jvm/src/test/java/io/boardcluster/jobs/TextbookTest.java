package io.boardcluster.jobs;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The textbook jobs yield what ours yield: the proofs of the workloads hold for both. */
class TextbookTest extends LocalSpark {

    private Path text() throws IOException {
        String lines = "one two\ttwo\n\n  three\fthree three\nGröße no\u00a0break\n2013,1,EWR\n";
        return Files.writeString(folder.resolve("text"), lines);
    }

    private static List<String> lines(Path output) throws IOException {
        return new String(whole(output), StandardCharsets.UTF_8).lines().sorted().toList();
    }

    private String[] paths(Path input, String output, String... more) {
        String[] all = Arrays.copyOf(new String[] {input.toString(), to(output)}, 2 + more.length);
        System.arraycopy(more, 0, all, 2, more.length);
        return all;
    }

    private String to(String output) {
        return folder.resolve(output).toString();
    }

    @Test
    void wordsAreCountedAlike() throws IOException {
        Path input = text();
        io.boardcluster.textbook.WordCount.main(paths(input, "textbook"));
        assertEquals(0, WordCount.run(paths(input, "ours"), errors), this::said);

        assertEquals(lines(folder.resolve("ours")), lines(folder.resolve("textbook")));
    }

    @Test
    void linesAreFoundAlike() throws IOException {
        io.boardcluster.textbook.Grep.main(paths(text(), "textbook", "E.R"));

        assertEquals(List.of("2013,1,EWR"), lines(folder.resolve("textbook")));
    }

    @Test
    void rowsAreMadeAndSortedAlike() throws Exception {
        io.boardcluster.textbook.TeraGen.main(new String[] {"5001", to("rows")});
        byte[] rows = Stock.rows(0, 5_001, folder);
        assertArrayEquals(rows, whole(folder.resolve("rows")));

        io.boardcluster.textbook.TeraSort.main(paths(folder.resolve("rows"), "textbook", "3"));
        assertEquals(0, TeraSort.run(paths(folder.resolve("rows"), "ours"), errors), this::said);

        assertEquals(3, parts(folder.resolve("textbook")).size());
        assertArrayEquals(whole(folder.resolve("ours")), whole(folder.resolve("textbook")));
    }

    @Test
    void theCountOfPiIsPrintedAsOursIs() {
        PrintStream before = System.out;
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
        try {
            io.boardcluster.textbook.Pi.main(new String[] {"2", "5000", "1"});
        } finally {
            System.setOut(before);
        }
        String said = printed.toString(StandardCharsets.UTF_8);
        assertTrue(said.matches("(?s)inside 7[0-9]{3} of 10000\nEstimated value of Pi is 3[.].*"), said);
    }
}
