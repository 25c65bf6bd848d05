"""TeraValidate: reads sorted rows and reports every fault in their order, and their checksum.

MapReduce runs Hadoop's stock example; Spark runs the same check of ``jvm/``. Its input has two
planted faults, so that each measured run also proves that the validator finds faults. It loads
reading and processors and writes next to nothing.
Source: Lee and Park 2026, section "TeraGen and TeraSort"; Lee, Oh and Park 2021, section V-B (both
name it as the third part of the benchmark and print no times for it).
"""
