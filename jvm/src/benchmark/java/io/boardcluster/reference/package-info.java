/**
 * The same jobs written the textbook way: one object per record, Spark's own operations, nothing
 * tuned. {@code benchmarks/jobs.py} measures the jobs of the project against them. They take the
 * same arguments and are no part of what is shipped.
 */
package io.boardcluster.reference;
