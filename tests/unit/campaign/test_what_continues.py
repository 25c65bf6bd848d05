"""By what a campaign is continued."""

import pytest
from tests.builders import make_campaign


@pytest.mark.parametrize(
    ("name", "resumable"),
    [
        ("night", True),
        ("tune-cache", True),
        ("", False),
        ("tune-wordcount-spark", False),
        ("watch-night", False),
        ("bisect-night-1", False),
        ("bisect-0a1b2c3d-1-2", False),
    ],
)
def test_what_run_began_is_resumed_by_run(name: str, *, resumable: bool) -> None:
    assert make_campaign(name=name).is_resumable == resumable
