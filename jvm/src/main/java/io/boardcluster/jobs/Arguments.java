package io.boardcluster.jobs;

import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;

/** The arguments of a job, judged one by one. */
final class Arguments {

    private final String[] values;

    /**
     * @param values as the JVM got them
     * @param least how many must be given
     * @param most how many may be given
     */
    Arguments(String[] values, int least, int most) throws UsageException {
        if (values.length < least || values.length > most) {
            String needed = least == most ? "" + least : least + " to " + most;
            throw new UsageException(
                    needed + " arguments are needed, " + values.length + " were given");
        }
        this.values = values.clone();
    }

    boolean has(int index) {
        return index < values.length;
    }

    String path(int index, String name) throws UsageException {
        if (values[index].isBlank()) {
            throw new UsageException("the path of the " + name + " is empty");
        }
        return values[index];
    }

    String text(int index) {
        return values[index];
    }

    /** {@return a regular expression as {@link Pattern} takes it} */
    String regex(int index) throws UsageException {
        String regex = values[index];
        try {
            Pattern.compile(regex);
        } catch (PatternSyntaxException error) {
            throw new UsageException(
                    "no regular expression: " + regex + " (" + error.getDescription() + ")");
        }
        return regex;
    }

    /** {@return a whole number from {@code least} up to {@code most}} */
    long number(int index, String name, long least, long most) throws UsageException {
        long value;
        try {
            value = Long.parseLong(values[index]);
        } catch (NumberFormatException error) {
            throw new UsageException(name + " is no whole number: " + values[index]);
        }
        if (value < least || value > most) {
            throw new UsageException(
                    name + " is " + value + "; allowed: " + least + " to " + most);
        }
        return value;
    }

    /** {@return a number of things, at least one} */
    int count(int index, String name) throws UsageException {
        return (int) number(index, name, 1, 1_000_000);
    }
}
