"""A replicated database under load: how many transactions, how fast, and through a fault.

Source: OLTP of sysbench (A. Kopytov), read-only, read-write and write-only, after TPC-C's idea of
short transactions; a ledger beside it proves that none that was committed is lost.
"""
