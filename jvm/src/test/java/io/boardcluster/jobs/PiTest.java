package io.boardcluster.jobs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/** The counts were made by a Python program from the description of the generator. */
class PiTest extends LocalSpark {

    private int pi(String... arguments) throws IOException {
        return Pi.run(arguments, out, errors);
    }

    @ParameterizedTest
    @CsvSource({"0, 1, 0, 1", "0, 10000, 1, 7840", "1, 10000, 1, 7841", "3, 10000, -7, 7819"})
    void aPartitionCountsWhatItsGeneratorSays(int partition, long samples, long seed, long count) {
        assertEquals(count, Pi.inside(partition, samples, seed));
    }

    @Test
    void theResultIsTwoLines() throws IOException {
        assertEquals(0, pi("3", "10000", "1"), this::said);

        assertEquals(
                "inside 23583 of 30000\nEstimated value of Pi is 3.14440000000000000000\n",
                printed());
    }

    @ParameterizedTest
    @CsvSource({
        "1, 3, 1.33333333333333333333",
        "2, 3, 2.66666666666666666667",
        "0, 7, 0.00000000000000000000", // a zero keeps its decimals
        "9000000000000000000, 9000000000000000000, 4.00000000000000000000"
    })
    void theEstimateHasTwentyDecimals(long inside, long total, String expected) {
        assertEquals(expected, Pi.estimate(inside, total).toPlainString());
    }

    @Test
    void manySamplesComeNearPi() {
        double share = Pi.inside(0, 2_000_000, 42) / 2e6;
        // Five standard deviations of a share of 2,000,000 samples.
        assertTrue(Math.abs(share - Math.PI / 4) < 0.0015, "" + share);
    }

    static Stream<Arguments> wrongArguments() {
        return Stream.of(
                Arguments.of(List.of("2", "10"), "2 were given"),
                Arguments.of(List.of("0", "10", "1"), "the number of partitions is 0"),
                Arguments.of(List.of("2", "0", "1"), "samples of each partition is 0"),
                Arguments.of(List.of("2", "9223372036854775807", "1"), "allowed: 1 to 46116860"),
                Arguments.of(List.of("2", "10", "x"), "the seed is no whole number: x"));
    }

    @ParameterizedTest
    @MethodSource("wrongArguments")
    void wrongArgumentsAreSaidBeforeSparkStarts(List<String> arguments, String expected)
            throws IOException {
        assertRefused((given, to) -> Pi.run(given, out, to), arguments, expected);
        assertEquals("", printed());
    }
}
