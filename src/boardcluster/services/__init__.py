"""HDFS, YARN, Spark and the JVM under them: install, configure, start, check, stop."""
