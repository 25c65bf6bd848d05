package io.boardcluster.jobs;

/** An argument on the command line is wrong; the message says which and what is allowed. */
final class UsageException extends Exception {

    private static final long serialVersionUID = 1L;

    UsageException(String message) {
        super(message);
    }
}
