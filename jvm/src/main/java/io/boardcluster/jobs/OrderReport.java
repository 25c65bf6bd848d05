package io.boardcluster.jobs;

import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import scala.Tuple2;

/**
 * Puts what the parts of all files said into one report.
 *
 * <p>Stock {@code teravalidate} reduces over names: a file's first and last key, the checksum and
 * the errors are all under a name of their own and reported in the order of these names as bytes.
 * The same names and the same order are used here. Records out of order come by file and, within
 * one, from its end to its beginning: that is what the stock job's sort makes of a few in one file.
 * Where there are many or in several files, the stock order is not defined.
 */
final class OrderReport extends BlockSource {

    private static final String CHECKSUM = "checksum";
    private static final String ERROR = "error";

    private final Iterator<Tuple2<String, String[]>> said;
    private final Iterator<Map.Entry<String, String>> ends;
    private final TreeMap<String, String> betweenParts = new TreeMap<>();
    private Tuple2<String, String[]> misorder;
    private BigInteger sum = BigInteger.ZERO;
    private boolean inErrors;
    private String lastName;
    private String lastKey;

    /**
     * @param said all pairs of {@link OrderCheck}, sorted by their keys
     */
    OrderReport(Iterator<Tuple2<String, String[]>> said) {
        super(1 << 16);
        this.said = said;
        List<Tuple2<String, String[]>> parts = new ArrayList<>();
        advance();
        while (misorder != null && misorder._1().startsWith(OrderCheck.SUMMARY)) {
            parts.add(misorder);
            advance();
        }
        ends = join(parts).entrySet().iterator();
    }

    private void advance() {
        misorder = said.hasNext() ? said.next() : null;
    }

    /** Joins the parts of files; their keys sort the parts of one file by place. */
    private Map<String, String> join(List<Tuple2<String, String[]>> parts) {
        Map<String, String> named =
                new TreeMap<>(
                        Comparator.comparing(
                                (String name) -> name.getBytes(StandardCharsets.UTF_8),
                                Arrays::compareUnsigned));
        for (Tuple2<String, String[]> part : parts) {
            String[] words = part._2();
            String file = words[0];
            String first = words[1];
            String last = words[2];
            sum = sum.add(new BigInteger(words[3], 16));
            named.putIfAbsent(file + ":begin", first);
            String before = named.put(file + ":end", last);
            if (before != null && first.compareTo(before) < 0) {
                String place = part._1().substring(part._1().length() - 20);
                String key = OrderCheck.misorderKey(file, Long.parseLong(place));
                betweenParts.put(key, OrderCheck.misorder(file, before, first));
            }
        }
        if (!parts.isEmpty()) {
            named.put(CHECKSUM, sum.toString(16));
            named.put(ERROR, "");
        }
        return named;
    }

    @Override
    void fill(Block empty) {
        while (empty.length == 0) {
            if (inErrors) {
                inErrors = writeError(empty);
            } else if (ends.hasNext()) {
                Map.Entry<String, String> end = ends.next();
                take(end.getKey(), end.getValue(), empty);
            } else {
                return;
            }
        }
    }

    private void take(String name, String value, Block target) {
        if (name.equals(ERROR)) {
            inErrors = true;
        } else if (name.equals(CHECKSUM)) {
            write(target, CHECKSUM, value);
        } else {
            // Equal lengths: their order as text is that of the bytes.
            if (lastKey != null && value.compareTo(lastKey) < 0) {
                String files = "\n  file " + lastName + " key " + lastKey;
                files += "\n  file " + name + " key " + value;
                write(target, ERROR, "bad key partitioning:" + files);
            }
            lastName = name;
            lastKey = value;
        }
    }

    /** {@return whether there was a record out of order} */
    private boolean writeError(Block target) {
        Map.Entry<String, String> between = betweenParts.firstEntry();
        if (between != null
                && (misorder == null || between.getKey().compareTo(misorder._1()) < 0)) {
            write(target, ERROR, between.getValue());
            betweenParts.pollFirstEntry();
        } else if (misorder != null) {
            write(target, ERROR, misorder._2()[0]);
            advance();
        } else {
            return false;
        }
        return true;
    }

    private static void write(Block target, String key, String value) {
        byte[] line = (key + '\t' + value + '\n').getBytes(StandardCharsets.UTF_8);
        target.append(line, 0, line.length);
    }
}
