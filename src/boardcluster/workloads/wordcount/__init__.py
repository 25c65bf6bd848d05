"""WordCount: how often each word occurs in a text.

MapReduce runs Hadoop's stock example. Spark runs the classic form of ``jvm/``: split into words,
count within a task, shuffle by word, add up. The papers use it on flight data, where almost every
line is one distinct word, which is why its intermediate data is several times its input.
Source: Lee and Park 2026, section "WordCount"; Lee, Oh and Park 2021, section V-A.
"""
