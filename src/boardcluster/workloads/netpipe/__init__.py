"""NetPIPE: latency and throughput between each pair of workers, over TCP or over MPI.

Messages of growing size go back and forth between two nodes. Over MPI it shows what Open MPI adds.
Source: Baun 2016, section "Network performance", Fig. 3; Snell, Mikler and Gustafson 1996, NetPIPE.
"""
