"""One file per check, found by its name; each holds a ``CHECK``. A new check is a new file."""
