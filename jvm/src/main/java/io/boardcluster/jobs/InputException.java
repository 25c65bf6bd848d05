package io.boardcluster.jobs;

import java.io.IOException;

/** The input is not what the job works on; the message names the file. */
final class InputException extends IOException {

    private static final long serialVersionUID = 1L;

    InputException(String message) {
        super(message);
    }
}
