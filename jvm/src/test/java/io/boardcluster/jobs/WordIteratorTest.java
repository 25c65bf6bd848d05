package io.boardcluster.jobs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.ArrayList;
import java.util.List;
import java.util.NoSuchElementException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class WordIteratorTest {

    private static List<String> words(String line) {
        List<String> words = new ArrayList<>();
        new WordIterator(line).forEachRemaining(words::add);
        return words;
    }

    @ParameterizedTest
    @ValueSource(strings = {" ", "\t", "\n", "\r", "\f", "\r\n", " \t \f "})
    void delimitersSeparateAndAreDropped(String delimiter) {
        assertEquals(
                List.of("a", "b", "a"),
                words(delimiter + "a" + delimiter + "b" + delimiter + "a" + delimiter));
    }

    @ParameterizedTest
    @ValueSource(strings = {"\u000b", "\u00a0", "\u0085", "\u2028", "\u3000", "\0", ",", "\""})
    void otherCharactersBelongToTheWord(String character) {
        assertEquals(List.of("a" + character + "b"), words("a" + character + "b"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"", " ", "\t\f \r\n"})
    void blankLinesHaveNoWords(String line) {
        WordIterator words = new WordIterator(line);
        assertFalse(words.hasNext());
        assertThrows(NoSuchElementException.class, words::next);
    }

    @Test
    void wordsKeepTheirCaseAndCharacters() {
        assertEquals(
                List.of("Größe", "größe", "日本語", "\ud83d\ude80", "e\u0301"),
                words("Größe größe 日本語 \ud83d\ude80 e\u0301"));
    }

    @Test
    void askingWhetherAWordFollowsDoesNotConsumeIt() {
        WordIterator words = new WordIterator("one two");
        for (int times = 0; times < 3; times++) {
            words.hasNext();
        }
        assertEquals("one", words.next());
        assertEquals("two", words.next());
        assertFalse(words.hasNext());
    }
}
