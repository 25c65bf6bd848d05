package io.boardcluster.jobs;

import java.io.IOException;
import java.io.PrintStream;
import java.util.regex.Pattern;
import org.apache.spark.api.java.JavaSparkContext;

/**
 * Saves the lines of a text in which a regular expression is found.
 *
 * <p>Input is UTF-8 text: a file, a folder or a pattern, as Hadoop's text input format takes it.
 * Output is a folder of UTF-8 text files with the matching lines in the order of the input;
 * malformed bytes in them are replaced as Java's decoder does. The expression is one of {@link Pattern},
 * searched for anywhere in the line.
 *
 * <p>Source: Lee and Park 2026, where Grep is a filter over lines whose result is saved.
 */
public final class Grep {

    private Grep() {}

    /**
     * Runs the job; ends the JVM with status 2 after wrong arguments.
     *
     * @param args path of the input, output folder, which must not exist, regular expression
     * @throws IOException if the input cannot be listed
     */
    public static void main(String[] args) throws IOException {
        Launch.exit(run(args, System.err));
    }

    static int run(String[] args, PrintStream errors) throws IOException {
        return Launch.run(Grep.class, "<input> <output> <regex>", errors, () -> parse(args));
    }

    private static Launch.Job parse(String[] args) throws UsageException {
        Arguments given = new Arguments(args, 3, 3);
        String input = given.path(0, "input");
        String output = given.path(1, "output");
        String regex = given.regex(2);
        return context -> filter(context, input, output, regex);
    }

    private static void filter(
            JavaSparkContext context, String input, String output, String regex)
            throws IOException {
        RawOutputFormat.save(
                TextInput.open(context, input, TextInput.bytes(context, input))
                        .mapPartitionsToPair(lines -> new MatchingLines(lines, regex)),
                output,
                context.hadoopConfiguration());
    }
}
