"""Which phases are submissions, and which the engine's own: by their names."""

from boardcluster.analysis.phases import engine_phases, submissions

ALONE = {"sort": (0.0, 9.0), "sort/map": (1.0, 5.0), "sort/reduce after the last map": (5.0, 8.0)}
MIX = {
    "1-grep/search": (0.0, 4.0),
    "1-grep/search/stage 0: collect at a/b.py:3": (1.0, 2.0),
    "2-sort/sort": (4.0, 9.0),
    "2-sort/sort/map": (5.0, 6.0),
    "2-sort/sort/map/again": (5.5, 6.0),
}


def test_a_submission_lies_in_no_other_phase() -> None:
    assert submissions(ALONE) == {"sort": (0.0, 9.0)}
    assert submissions(MIX) == {"1-grep/search": (0.0, 4.0), "2-sort/sort": (4.0, 9.0)}
    assert submissions({}) == {}


def test_phases_of_the_engine_have_its_own_names() -> None:
    assert engine_phases(ALONE, "sort") == {
        "map": (1.0, 5.0),
        "reduce after the last map": (5.0, 8.0),
    }
    assert engine_phases(MIX, "1-grep/search") == {"stage 0: collect at a/b.py:3": (1.0, 2.0)}
    assert set(engine_phases(MIX, "2-sort/sort")) == {"map", "map/again"}
    assert engine_phases(MIX, "2-sort") == {}


def test_a_name_that_only_begins_like_another_is_no_part_of_it() -> None:
    assert set(submissions({"write": (0.0, 1.0), "write back": (1.0, 2.0)})) == {
        "write",
        "write back",
    }
