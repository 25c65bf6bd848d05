"""boardcluster: a real Hadoop + Spark cluster from boards, or from one Linux machine."""

from importlib.metadata import version

__all__ = ["__version__"]

__version__ = version("boardcluster")
