package io.boardcluster.jobs;

import java.io.IOException;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.VLongWritable;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.Reducer;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;

/**
 * Counts the texts that a regular expression matches, in one MapReduce job: matched as bytes, counted
 * within each map, sorted in the memory of one reduce. The output is that of Hadoop's own example,
 * which takes two jobs: {@code count<TAB>text}, the largest count first.
 */
public final class FastGrep {

    /** Most memory of distinct texts; the smallest heap of a task is 307 MB. */
    static final long TEXTS_BYTES = 64L << 20;

    /** What a text takes beside its bytes: two objects, an array, a place in a list. */
    private static final int ENTRY_BYTES = 100;

    private static final String REGEX = "boardcluster.grep.regex";

    private FastGrep() {}

    /**
     * Runs the job; ends the JVM with status 2 after wrong arguments, and 1 if the job failed.
     *
     * @param args path of the input, output folder, which must not exist, regular expression
     * @throws IOException if the job cannot be submitted
     */
    public static void main(String[] args) throws IOException {
        Launch.exit(run(new Configuration(), args, System.err));
    }

    static int run(Configuration settings, String[] args, PrintStream errors) throws IOException {
        return Submission.run(
                FastGrep.class,
                "<input> <output> <regex>",
                errors,
                settings,
                from -> job(from, args));
    }

    private static Job job(Configuration settings, String[] args)
            throws UsageException, IOException {
        Arguments given = new Arguments(args, 3, 3);
        Job job = Job.getInstance(settings);
        job.getConfiguration().set(REGEX, given.regex(2));
        FileInputFormat.setInputPaths(job, given.path(0, "input"));
        FileOutputFormat.setOutputPath(job, new Path(given.path(1, "output")));
        job.setMapperClass(Matches.class);
        job.setReducerClass(Sorted.class);
        job.setNumReduceTasks(1);
        job.setMapOutputKeyClass(Text.class);
        job.setMapOutputValueClass(VLongWritable.class);
        job.setOutputKeyClass(LongWritable.class);
        job.setOutputValueClass(Text.class);
        return job;
    }

    /** Counts the matches in lines. */
    static final class Matches extends TableMapper {

        private LineMatcher matcher;

        /** Hadoop makes one by reflection. */
        Matches() {}

        @Override
        protected void setup(Context context) {
            matcher = new LineMatcher(context.getConfiguration().get(REGEX));
        }

        @Override
        void count(Text line, WordTable into) {
            matcher.addMatches(line, into);
        }
    }

    /** Writes all texts in the order of their counts, once it has them. */
    static final class Sorted extends Reducer<Text, VLongWritable, LongWritable, Text> {

        private record Counted(long count, Text text) {}

        private final List<Counted> found = new ArrayList<>();
        private long bytes;

        /** Hadoop makes one by reflection. */
        Sorted() {}

        @Override
        protected void reduce(Text text, Iterable<VLongWritable> counts, Context context)
                throws IOException {
            bytes += text.getLength() + ENTRY_BYTES;
            if (bytes > TEXTS_BYTES) {
                throw new IOException(
                        "the expression matches so many distinct texts that one reduce cannot sort"
                                + " them in "
                                + (TEXTS_BYTES >> 20)
                                + " MiB of memory; run the stock form");
            }
            found.add(new Counted(FastWordCount.total(counts), new Text(text)));
        }

        @Override
        protected void cleanup(Context context) throws IOException, InterruptedException {
            found.sort(Comparator.comparingLong(Counted::count).reversed());
            LongWritable count = new LongWritable();
            for (Counted row : found) {
                count.set(row.count());
                context.write(count, row.text());
            }
        }
    }
}
