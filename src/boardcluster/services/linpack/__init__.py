"""HPL and a DGEMM with one OpenBLAS, built from Debian's sources and packages.

Debian packages HPL only inside its HPC Challenge suite, ``hpcc``, which runs seven other tests
first and takes whatever BLAS the node has. Here the same sources become a program of their own.
``bundle.py`` says what is fetched and built, and where it is kept.
"""

from boardcluster.services.linpack.bundle import DgemmRates, Linpack, have_linpack, read_dgemm

__all__ = ["DgemmRates", "Linpack", "have_linpack", "read_dgemm"]
