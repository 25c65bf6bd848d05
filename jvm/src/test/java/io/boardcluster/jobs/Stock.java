package io.boardcluster.jobs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.examples.terasort.GenSort;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.InputFormat;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/** The jobs of Hadoop's own examples, run within this JVM. */
final class Stock {

    private Stock() {}

    /** {@return rows as the stock generator makes them} */
    static byte[] rows(long first, int count, Path folder) throws Exception {
        Path file = Files.createTempFile(folder, "rows", "");
        GenSort.main(new String[] {"-b" + first, "" + count, file.toString()});
        byte[] rows = Files.readAllBytes(file);
        assertEquals(100 * count, rows.length);
        return rows;
    }

    /** {@return first row and end of the ranges that the stock generator gives its tasks} */
    static List<long[]> ranges(long rows, int maps) throws Exception {
        String format = "org.apache.hadoop.examples.terasort.TeraGen$RangeInputFormat";
        Constructor<?> made = Class.forName(format).getDeclaredConstructor();
        made.setAccessible(true);
        Configuration settings = new Configuration();
        settings.setLong("mapreduce.terasort.num-rows", rows);
        settings.setInt("mapreduce.job.maps", maps);
        List<long[]> ranges = new ArrayList<>();
        for (InputSplit split :
                ((InputFormat<?, ?>) made.newInstance()).getSplits(Job.getInstance(settings))) {
            long first = number(split, "firstRow");
            ranges.add(new long[] {first, first + number(split, "rowCount")});
        }
        return ranges;
    }

    private static long number(Object from, String name) throws ReflectiveOperationException {
        Field field = from.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.getLong(from);
    }

    /** {@return settings of jobs in this JVM that write nowhere else: two users share /tmp} */
    static Configuration local(Path folder) {
        Configuration settings = new Configuration();
        settings.set("fs.defaultFS", "file:///");
        settings.set("mapreduce.framework.name", "local");
        settings.set("hadoop.tmp.dir", folder.resolve("hadoop").toString());
        settings.set(
                "mapreduce.jobtracker.staging.root.dir", folder.resolve("staging").toString());
        return settings;
    }

    static void run(Tool job, Path folder, String... arguments) throws Exception {
        assertEquals(
                0, ToolRunner.run(local(folder), job, arguments), Arrays.toString(arguments));
    }

    /** {@return the stock search, whose constructor is private} */
    static Tool grep() throws ReflectiveOperationException {
        Constructor<?> made =
                Class.forName("org.apache.hadoop.examples.Grep").getDeclaredConstructor();
        made.setAccessible(true);
        return (Tool) made.newInstance();
    }

    /** Counts words with the stock mapper and reducer, whose main ends the JVM. */
    static void wordCount(Configuration settings, Path input, Path output) throws Exception {
        Job job = Job.getInstance(settings);
        FileInputFormat.setInputPaths(job, input.toString());
        FileOutputFormat.setOutputPath(job, new org.apache.hadoop.fs.Path(output.toString()));
        job.setMapperClass(org.apache.hadoop.examples.WordCount.TokenizerMapper.class);
        job.setReducerClass(org.apache.hadoop.examples.WordCount.IntSumReducer.class);
        job.setOutputKeyClass(Text.class);
        job.setOutputValueClass(IntWritable.class);
        assertTrue(job.waitForCompletion(false));
    }

    /** Writes bytes as a file of a folder that is made if there is none. */
    static void put(Path folder, String name, byte[] bytes) throws IOException {
        Files.createDirectories(folder);
        Files.write(folder.resolve(name), bytes);
    }
}
