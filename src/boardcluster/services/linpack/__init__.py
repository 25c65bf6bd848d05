"""HPL and a DGEMM with one OpenBLAS, built from Debian's sources and packages.

Debian packages HPL only inside its HPC Challenge suite, ``hpcc``, which runs seven other tests
first and takes whatever BLAS the node has. Here the same sources become a program of their own.
``bundle.py`` says what is fetched and built, and where it is kept.
"""

from boardcluster.services.linpack.bundle import (
    BUILD_TOOLS,
    DgemmRates,
    Linpack,
    have_linpack,
    is_built,
    read_dgemm,
)

__all__ = ["BUILD_TOOLS", "DgemmRates", "Linpack", "have_linpack", "is_built", "read_dgemm"]
