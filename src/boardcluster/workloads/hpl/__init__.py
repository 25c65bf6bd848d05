"""HPL: solves a dense system of linear equations on all workers; the benchmark of the TOP500 list.

Measures floating-point operations per second. Open MPI runs HPL as it is inside the HPC Challenge
suite (``hpcc``), or an ``xhpl`` of the user's own.
Source: Baun 2016, section "Analyzing the clusters' performance with the HPL", Eq. 2 and Table 7;
A. Petitet et al., HPL 2.0.
"""
