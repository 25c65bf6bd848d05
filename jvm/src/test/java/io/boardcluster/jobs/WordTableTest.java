package io.boardcluster.jobs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class WordTableTest {

    private static Map<String, Long> content(WordTable table) {
        Map<String, Long> counts = new HashMap<>();
        for (int word = 0; word < table.size(); word++) {
            Block text = new Block(4);
            table.appendTo(text, word);
            assertEquals(table.length(word), text.length);
            String key = new String(text.bytes, 0, text.length, StandardCharsets.ISO_8859_1);
            assertEquals(null, counts.put(key, table.count(word)), key);
        }
        return counts;
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 5, 9, 40, 700_000})
    void countsEqualThoseOfAMap(int longest) {
        Random random = new Random(longest);
        WordTable table = new WordTable();
        Map<String, Long> expected = new HashMap<>();
        int words = longest > 1000 ? 40 : 60_000;
        for (int round = 0; round < 2; round++) {
            for (int number = 0; number < words; number++) {
                byte[] word = new byte[3 + longest];
                int length = 1 + random.nextInt(longest);
                for (int at = 0; at < word.length; at++) {
                    word[at] = (byte) ('a' + random.nextInt(3));
                }
                String key = new String(word, 3, length, StandardCharsets.ISO_8859_1);
                table.add(word, 3, length, number % 4 + 1L);
                expected.merge(key, number % 4 + 1L, Long::sum);
            }
            assertEquals(expected, content(table));
            assertEquals(expected.keySet().stream().mapToLong(String::length).sum(), table.bytes());
            table.clear();
            expected.clear();
            assertEquals(0, table.size());
            assertEquals(0, table.bytes());
        }
    }

    @Test
    void aWordBiggerThanAChunkIsKeptWhole() {
        byte[] huge = new byte[(1 << 20) + 17];
        WordTable table = new WordTable();
        table.add(new byte[] {1}, 0, 1, 1);
        table.add(huge, 0, huge.length, 2);
        table.add(new byte[] {2}, 0, 1, 3);
        table.add(huge, 0, huge.length, 4);

        assertEquals(3, table.size());
        assertEquals(6, table.count(1));
        assertEquals(huge.length, table.length(1));
        assertEquals(3, table.count(2));
    }

    @Test
    void hashesOfSimilarWordsDifferInTheirHighAndLowBits() {
        Set<Integer> high = new HashSet<>();
        Set<Integer> low = new HashSet<>();
        for (int number = 0; number < 10_000; number++) {
            byte[] word = ("word" + number).getBytes(StandardCharsets.US_ASCII);
            int hash = WordTable.hash(word, 0, word.length);
            high.add(hash >>> 16);
            low.add(hash & 0xFFFF);
        }
        // 10,000 throws into 65,536 places hit about 9,274 of them.
        assertTrue(high.size() > 9_000, "high: " + high.size());
        assertTrue(low.size() > 9_000, "low: " + low.size());
    }
}
