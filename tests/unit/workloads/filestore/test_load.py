"""What fio is asked to write, and what must be there in the end."""

import hashlib
import re

import pytest

from boardcluster.workloads.filestore.load import (
    CLASSES,
    PASSES,
    STEP_BYTES,
    block_files,
    expected_files,
    fio_jobs,
    total_bytes,
)
from boardcluster.workloads.filestore.tree import content, name_of


def test_every_file_holds_whole_blocks_and_together_they_are_the_size() -> None:
    size_bytes = 3 * STEP_BYTES + 5
    files = {each.name: block_files(each, size_bytes) for each in CLASSES}
    assert sum(sum(row.values()) for row in files.values()) == total_bytes(size_bytes)
    for each in CLASSES:
        assert all(size and size % each.block_bytes == 0 for size in files[each.name].values())


@pytest.mark.parametrize("number", range(4))
def test_reads_look_for_what_the_pass_before_wrote(number: int) -> None:
    def patterns(text: str) -> list[str]:
        return re.findall(r"verify_pattern=(0x[0-9a-f]{8}%o)", text)

    texts = [fio_jobs(each, size_bytes=STEP_BYTES, folder="/mount") for each in PASSES]

    assert patterns(texts[number]) == patterns(texts[number // 2 * 2])
    # So an old block in the place of a new one is found, and one of another file.
    every = patterns(texts[0]) + patterns(texts[2])
    assert len(set(every)) == 2 * len(CLASSES)
    assert ("end_fsync=1" in texts[number]) is PASSES[number].writes


def test_the_content_of_a_block_is_its_mark_and_its_place_again_and_again() -> None:
    """As fio 3.33 writes it: 0xMARK%o, eight bytes of the offset, lowest first."""
    mark = hashlib.sha256(b"4_kib second").digest()[:4]
    assert f"verify_pattern=0x{mark.hex()}%o" in fio_jobs(
        PASSES[2], size_bytes=STEP_BYTES, folder="/mount"
    )
    body = b"".join(
        ((mark + place.to_bytes(8, "little")) * 342)[:4096] for place in range(0, 2 << 20, 4096)
    )

    found = expected_files(size_bytes=STEP_BYTES, files=2, file_bytes=10)

    assert found["4_kib-3"] == (2 << 20, hashlib.sha256(body).hexdigest())
    small = hashlib.sha256(content(name_of(1), 10)).hexdigest()
    assert found["tree/0000/0000001"] == (10, small)
    assert len(found) == 12 + 2
