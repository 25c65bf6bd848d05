package io.boardcluster.jobs;

import java.io.IOException;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.VLongWritable;
import org.apache.hadoop.mapreduce.Mapper;

/**
 * A map that counts in a table of bounded size and sends its content on whenever it is full, so
 * that what repeats within the table is sent once.
 */
abstract class TableMapper extends Mapper<LongWritable, Text, Text, VLongWritable> {

    private final WordTable table = new WordTable();
    private final Block bytes = new Block(1 << 12);
    private final Text key = new Text();
    private final VLongWritable count = new VLongWritable();

    /** Counts what is to be counted in a line. */
    abstract void count(Text line, WordTable into);

    @Override
    protected final void map(LongWritable offset, Text line, Context context)
            throws IOException, InterruptedException {
        count(line, table);
        if (table.isFull()) {
            send(context);
        }
    }

    @Override
    protected final void cleanup(Context context) throws IOException, InterruptedException {
        send(context);
    }

    private void send(Context context) throws IOException, InterruptedException {
        for (int word = 0; word < table.size(); word++) {
            bytes.length = 0;
            table.appendTo(bytes, word);
            key.set(bytes.bytes, 0, bytes.length);
            count.set(table.count(word));
            context.write(key, count);
        }
        table.clear();
    }
}
