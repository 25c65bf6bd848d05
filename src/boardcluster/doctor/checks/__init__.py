"""One file per check, each with a ``CHECK``: a new check is a new file.

Its docstring says in one line what should hold, then lists the faults it finds with their fixes.
The page docs/reference/doctor.md is written from these files by tools/write_reference.py.
"""
