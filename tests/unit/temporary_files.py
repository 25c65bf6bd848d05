"""A node that sees no file of the driver but those it is lent, and those only while it is."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from boardcluster.remote.fake import FakeRemote


class TemporaryFilesRemote(FakeRemote):
    """Takes back what it lent, as a real node does."""

    @contextlib.contextmanager
    def temporary_upload(self, source: Path) -> Iterator[str]:
        with super().temporary_upload(source) as path:
            try:
                yield path
            finally:
                del self.files[path]
