"""What an error of a board was about."""

from __future__ import annotations

from boardcluster.errors import BoardclusterError, LoginError

__all__ = ["refused_by_sudo"]


def refused_by_sudo(error: BoardclusterError) -> bool:
    """Whether the login worked and only sudo refused."""
    return isinstance(error, LoginError) and "sudo" in error.message
