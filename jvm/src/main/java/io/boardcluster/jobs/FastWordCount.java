package io.boardcluster.jobs;

import java.io.IOException;
import java.io.PrintStream;
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
 * Word count on MapReduce whose words stay bytes and are counted within each map. Words, input and
 * form of the output are those of {@link WordCount}; within a part, words are in byte order.
 */
public final class FastWordCount {

    private FastWordCount() {}

    /**
     * Runs the job; ends the JVM with status 2 after wrong arguments, and 1 if the job failed.
     *
     * @param args path of the input, path of the output folder, which must not exist
     * @throws IOException if the job cannot be submitted
     */
    public static void main(String[] args) throws IOException {
        Launch.exit(run(new Configuration(), args, System.err));
    }

    static int run(Configuration settings, String[] args, PrintStream errors) throws IOException {
        return Submission.run(
                FastWordCount.class, "<input> <output>", errors, settings, from -> job(from, args));
    }

    private static Job job(Configuration settings, String[] args)
            throws UsageException, IOException {
        Arguments given = new Arguments(args, 2, 2);
        Job job = Job.getInstance(settings);
        FileInputFormat.setInputPaths(job, given.path(0, "input"));
        FileOutputFormat.setOutputPath(job, new Path(given.path(1, "output")));
        job.setMapperClass(Words.class);
        job.setReducerClass(Sums.class);
        job.setMapOutputKeyClass(Text.class);
        job.setMapOutputValueClass(VLongWritable.class);
        job.setOutputKeyClass(Text.class);
        job.setOutputValueClass(LongWritable.class);
        return job;
    }

    /** Counts the words of lines. */
    static final class Words extends TableMapper {

        /** Hadoop makes one by reflection. */
        Words() {}

        @Override
        void count(Text line, WordTable into) {
            Lines.addWords(line, into);
        }
    }

    /** Adds up the counts of a word. */
    static final class Sums extends Reducer<Text, VLongWritable, Text, LongWritable> {

        private final LongWritable sum = new LongWritable();

        /** Hadoop makes one by reflection. */
        Sums() {}

        @Override
        protected void reduce(Text word, Iterable<VLongWritable> counts, Context context)
                throws IOException, InterruptedException {
            sum.set(total(counts));
            context.write(word, sum);
        }
    }

    static long total(Iterable<VLongWritable> counts) {
        long total = 0;
        for (VLongWritable count : counts) {
            total += count.get();
        }
        return total;
    }
}
