"""TestDFSIO: how fast files are written to HDFS and read back.

MapReduce runs ``TestDFSIO`` of Hadoop's own tests, Spark a job of ours with the same files and the
same definitions. Each file is one task. Page caches are dropped before the reading half.
Source: Lee, Oh and Park 2021, section V-C, Tables 16 and 17, which also shows what reading from the
page cache does to the figures; Lee and Park 2026, section "TestDFSIO", Tables 18 and 19.
"""
