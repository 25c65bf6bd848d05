package io.boardcluster.jobs;

import java.util.Iterator;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import scala.Tuple2;

/** The lines in which an expression is found, packed into blocks. */
final class MatchingLines extends BlockSource {

    private static final int ENOUGH = 1 << 17;

    private final Iterator<Tuple2<LongWritable, Text>> lines;
    private final LineMatcher matcher;

    MatchingLines(Iterator<Tuple2<LongWritable, Text>> lines, String regex) {
        super(2 * ENOUGH);
        this.lines = lines;
        matcher = new LineMatcher(regex);
    }

    @Override
    void fill(Block empty) {
        while (empty.length < ENOUGH && lines.hasNext()) {
            Text line = lines.next()._2();
            if (!matcher.isIn(line)) {
                continue;
            }
            if (Lines.isAscii(line)) {
                empty.append(line.getBytes(), 0, line.getLength());
            } else {
                byte[] repaired = Lines.wellFormed(line);
                empty.append(repaired, 0, repaired.length);
            }
            empty.append((byte) '\n');
        }
    }
}
