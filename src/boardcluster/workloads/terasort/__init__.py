"""TeraSort: sorts the rows of TeraGen by their keys, over all files.

MapReduce runs Hadoop's stock example; Spark runs a range-partitioned sort of ``jvm/``. Every byte
is read, shuffled, spilled and written, so it loads storage, network and processors at once.
Source: Lee and Park 2026, section "TeraGen and TeraSort", Table 13; Lee, Oh and Park 2021, section
V-B, Tables 14 and 15.
"""
