package io.boardcluster.textbook;

import java.util.Arrays;
import java.util.regex.Pattern;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;
import scala.Tuple2;

/**
 * As {@code JavaWordCount} of Apache Spark's examples and {@code ScalaWordCount} of HiBench, with
 * the result saved as text and with the words of {@link io.boardcluster.jobs.WordCount}.
 */
public final class WordCount {

    private static final Pattern BLANKS = Pattern.compile("[ \\t\\r\\f]+");

    private WordCount() {}

    /**
     * Counts words.
     *
     * @param args input, output
     */
    public static void main(String[] args) {
        try (JavaSparkContext context = new JavaSparkContext(new SparkConf())) {
            context.textFile(args[0])
                    .flatMap(line -> Arrays.asList(BLANKS.split(line)).iterator())
                    .filter(word -> !word.isEmpty())
                    .mapToPair(word -> new Tuple2<>(word, 1L))
                    .reduceByKey(Long::sum)
                    .map(pair -> pair._1() + '\t' + pair._2())
                    .saveAsTextFile(args[1]);
        }
    }
}
