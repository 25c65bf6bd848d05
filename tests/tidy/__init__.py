"""Rules of the project that a machine can check: source, docs, files, imports."""
