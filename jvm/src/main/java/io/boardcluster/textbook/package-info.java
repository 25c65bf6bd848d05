/**
 * The same jobs written the textbook way: one object per record, Spark's own operations, nothing
 * tuned. They take the arguments of their namesakes in {@code io.boardcluster.jobs} and are what
 * {@code variant = "textbook"} runs, since the papers' programs are of this kind: {@code
 * WordCount} and {@code Grep} as in HiBench and in Apache Spark's examples, {@code TeraGen} and
 * {@code TeraSort} as in ehiggs/spark-terasort, {@code Pi} as {@code SparkPi}. {@code
 * TeraValidate} and {@code Dfsio} are for {@code benchmarks/jobs.py} alone.
 */
package io.boardcluster.textbook;
