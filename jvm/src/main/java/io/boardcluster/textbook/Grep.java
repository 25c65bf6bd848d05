package io.boardcluster.textbook;

import java.util.regex.Pattern;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;

/** A filter over lines whose result is saved. */
public final class Grep {

    private Grep() {}

    /**
     * Saves the lines in which an expression is found.
     *
     * @param args input, output, regular expression
     */
    public static void main(String[] args) {
        Pattern pattern = Pattern.compile(args[2]);
        try (JavaSparkContext context = new JavaSparkContext(new SparkConf())) {
            context.textFile(args[0])
                    .filter(line -> pattern.matcher(line).find())
                    .saveAsTextFile(args[1]);
        }
    }
}
