package io.boardcluster.jobs;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.examples.terasort.GenSort;
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

    static void run(Tool job, int maps, Path folder, String... arguments) throws Exception {
        Configuration settings = new Configuration();
        settings.set("fs.defaultFS", "file:///");
        settings.set("mapreduce.framework.name", "local");
        settings.set("hadoop.tmp.dir", folder.resolve("hadoop").toString());
        settings.setInt("mapreduce.job.maps", maps);
        assertEquals(0, ToolRunner.run(settings, job, arguments), Arrays.toString(arguments));
    }

    /** Writes bytes as a file of a folder that is made if there is none. */
    static void put(Path folder, String name, byte[] bytes) throws IOException {
        Files.createDirectories(folder);
        Files.write(folder.resolve(name), bytes);
    }
}
