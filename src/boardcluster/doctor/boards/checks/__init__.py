"""One file per check of boards, each with a ``CHECK`` of the file's name."""
