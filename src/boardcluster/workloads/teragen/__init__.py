"""TeraGen: writes rows of random data into HDFS; it reads nothing.

MapReduce runs Hadoop's stock example; Spark runs the same generator in ``jvm/``, and must write the
same rows. It loads storage and the replication of HDFS and has almost no intermediate data.
Source: Lee and Park 2026, section "TeraGen and TeraSort", Table 12; Lee, Oh and Park 2021, section
V-B.
"""
