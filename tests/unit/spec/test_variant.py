"""A cluster in another form: which nodes take part, where the master runs, where data lies."""

from collections.abc import Callable

import pytest

from boardcluster.errors import UsageError
from boardcluster.records import ClusterSpec, MasterPlacement, Role
from boardcluster.spec.variant import ClusterVariant, apply_variant, storage_name, variant_words

MakeSpec = Callable[..., ClusterSpec]
DECLARED, SEPARATE, COMBINED = MasterPlacement


def form(
    workers: int, master: MasterPlacement = DECLARED, *, profile: str = "default"
) -> ClusterVariant:
    return ClusterVariant(profile=profile, workers=workers, master=master)


def shape(spec: ClusterSpec) -> list[tuple[str, str]]:
    return [(node.name, "".join(sorted(role[0] for role in node.roles))) for node in spec.nodes]


def test_the_declared_form_changes_nothing(make_spec: MakeSpec) -> None:
    for spec in (make_spec(), make_spec(combined=True)):
        same = form(len(spec.workers))
        assert apply_variant(spec, same) == spec
        assert storage_name(spec, same) == "data"
        assert variant_words(spec, same) == ""


def test_fewer_workers_are_the_first_ones(make_spec: MakeSpec) -> None:
    applied = apply_variant(make_spec(), form(2))

    assert shape(applied) == [("master", "m"), ("worker1", "w"), ("worker2", "w")]
    assert applied.name == "demo"


def test_the_profile_is_the_forms(make_spec: MakeSpec) -> None:
    assert apply_variant(make_spec(), form(4, profile="upstream")).profile == "upstream"


def test_a_combined_master_is_the_first_worker(make_spec: MakeSpec) -> None:
    applied = apply_variant(make_spec(), form(2, COMBINED))

    assert shape(applied) == [("worker1", "mw"), ("worker2", "w")]
    assert applied.master.name == "worker1"
    assert len(applied.workers) == 2


def test_a_combined_master_that_is_declared_so_stays(make_spec: MakeSpec) -> None:
    spec = make_spec(combined=True)

    assert shape(apply_variant(spec, form(2))) == [("master", "mw"), ("worker1", "w")]
    assert apply_variant(spec, form(2, COMBINED)) == apply_variant(spec, form(2))


def test_a_master_that_becomes_separate_is_no_worker_any_more(make_spec: MakeSpec) -> None:
    applied = apply_variant(make_spec(combined=True), form(3, SEPARATE))

    assert shape(applied) == [
        ("master", "m"),
        ("worker1", "w"),
        ("worker2", "w"),
        ("worker3", "w"),
    ]


def test_a_master_that_is_separate_already_stays(make_spec: MakeSpec) -> None:
    assert apply_variant(make_spec(), form(4, SEPARATE)) == make_spec()


@pytest.mark.parametrize(
    ("combined", "placement", "most"),
    [
        (False, DECLARED, 4),
        (False, SEPARATE, 4),
        (False, COMBINED, 4),
        (True, DECLARED, 4),
        (True, COMBINED, 4),
        (True, SEPARATE, 3),  # of four workers, one is the master's own node then
    ],
)
def test_no_more_workers_than_there_are(
    combined: bool, placement: MasterPlacement, most: int, make_spec: MakeSpec
) -> None:
    spec = make_spec(combined=combined)

    for workers in range(1, most + 1):
        applied = apply_variant(spec, form(workers, placement))
        assert len(applied.workers) == workers
        assert sum(Role.MASTER in node.roles for node in applied.nodes) == 1
    for workers in (0, most + 1):
        with pytest.raises(UsageError, match=f"has {most} workers for that") as caught:
            apply_variant(spec, form(workers, placement))
        assert "cluster.toml" in caught.value.hint


def test_a_single_worker_is_one(make_spec: MakeSpec) -> None:
    with pytest.raises(UsageError, match=r"^1 worker with the master .* has 0 workers for that"):
        apply_variant(make_spec(combined=True, workers=1), form(1, SEPARATE))


def test_each_set_of_data_nodes_has_its_own_storage(make_spec: MakeSpec) -> None:
    spec = make_spec()
    places = [
        storage_name(spec, form(workers, placement))
        for placement in (SEPARATE, COMBINED)
        for workers in (1, 2, 3, 4)
    ]

    assert places == [
        "data-1w",
        "data-2w",
        "data-3w",
        "data",
        "data-1w-combined",
        "data-2w-combined",
        "data-3w-combined",
        "data-4w-combined",
    ]


def test_storage_does_not_depend_on_the_profile(make_spec: MakeSpec) -> None:
    spec = make_spec()

    assert storage_name(spec, form(4, profile="upstream")) == "data"
    assert storage_name(spec, form(2, profile="upstream")) == storage_name(spec, form(2))


def test_a_declared_combined_master_has_storage_of_its_own_when_separate(
    make_spec: MakeSpec,
) -> None:
    spec = make_spec(combined=True)

    assert storage_name(spec, form(3, SEPARATE)) == "data-3w"
    assert storage_name(spec, form(3)) == "data-3w-combined"


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (form(2), "2 of 4 workers"),
        (form(4, profile="upstream"), "profile upstream"),
        (form(4, COMBINED), "the master on a worker"),
        (
            form(1, COMBINED, profile="upstream"),
            "1 of 4 workers, profile upstream, the master on a worker",
        ),
        (form(4, SEPARATE), ""),
    ],
)
def test_a_form_in_words(wanted: ClusterVariant, words: str, make_spec: MakeSpec) -> None:
    assert variant_words(make_spec(), wanted) == words


def test_a_separate_form_of_a_combined_cluster_in_words(make_spec: MakeSpec) -> None:
    words = variant_words(make_spec(combined=True), form(3, SEPARATE))

    assert words == "3 of 4 workers, the master on a node of its own"
