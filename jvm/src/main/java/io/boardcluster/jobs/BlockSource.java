package io.boardcluster.jobs;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Iterator;
import java.util.NoSuchElementException;
import org.apache.hadoop.io.NullWritable;
import scala.Tuple2;

/**
 * Blocks of output for {@link RawOutputFormat}, one at a time in the same memory. Spark writes each
 * pair before it asks for the next.
 */
abstract class BlockSource implements Iterator<Tuple2<NullWritable, Block>> {

    private final Block block;
    private final Tuple2<NullWritable, Block> pair;
    private boolean filled;

    BlockSource(int capacity) {
        block = new Block(capacity);
        pair = new Tuple2<>(NullWritable.get(), block);
    }

    /** Puts the next bytes into an empty block; leaves it empty when nothing is left. */
    abstract void fill(Block empty) throws IOException;

    @Override
    public final boolean hasNext() {
        if (!filled) {
            block.length = 0;
            try {
                fill(block);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
            filled = block.length > 0;
        }
        return filled;
    }

    @Override
    public final Tuple2<NullWritable, Block> next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        filled = false;
        return pair;
    }
}
