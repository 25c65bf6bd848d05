package io.boardcluster.jobs;

import java.util.Iterator;
import java.util.StringTokenizer;

/**
 * The words of one line, produced one at a time as they are asked for.
 *
 * <p>A word is a maximal run of characters other than space, tab, line feed, carriage return and
 * form feed. Every other character, the vertical tab and the no-break space among them, belongs to
 * a word. No word is empty.
 *
 * <p>Source: {@code org.apache.hadoop.examples.WordCount.TokenizerMapper} of Apache Hadoop, which
 * splits with {@link StringTokenizer} and its default delimiters; the same class is used here so
 * that both engines count the same words.
 */
public final class WordIterator implements Iterator<String> {

    private final StringTokenizer tokens;

    /**
     * Starts before the first word of a line.
     *
     * @param line the text to split, with or without its line end
     */
    public WordIterator(String line) {
        this.tokens = new StringTokenizer(line);
    }

    /** {@return whether another word follows} */
    @Override
    public boolean hasNext() {
        return tokens.hasMoreTokens();
    }

    /**
     * {@return the next word, never empty}
     *
     * @throws java.util.NoSuchElementException if no word follows
     */
    @Override
    public String next() {
        return tokens.nextToken();
    }
}
