from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.builders import make_cluster, make_dataset, make_node

from boardcluster.errors import StoreError
from boardcluster.records import (
    Fingerprint,
    Measurement,
    Role,
    Security,
    Trial,
)
from boardcluster.store import from_json, to_json

CLUSTER = make_cluster(make_node("both", Role.WORKER, Role.MASTER))


def test_every_kind_of_record_survives_the_way_through_text(
    fingerprint: Fingerprint, trials: tuple[Trial, ...], measurement: Measurement
) -> None:
    dataset = make_dataset(Path("/data/x"), name="naïve \udcff")
    unverified = replace(measurement, verification=None, duration_seconds=3.0)
    submitted = replace(trials[0], arguments=("--x", 'quote " and \n'))
    for record in (CLUSTER, dataset, fingerprint, submitted, measurement, unverified):
        text = json.dumps(to_json(record))
        assert from_json(type(record), json.loads(text)) == record


def test_sets_are_written_in_the_same_order_every_time() -> None:
    assert to_json(frozenset({Role.WORKER, Role.MASTER})) == ["master", "worker"]


def test_containers_of_records_become_lists(trials: tuple[Trial, ...]) -> None:
    data = to_json(trials[:2])
    assert isinstance(data, list)
    assert len(data) == 2


def test_a_missing_field_with_a_default_takes_it(measurement: Measurement) -> None:
    data = to_json(measurement)
    assert isinstance(data, dict)
    del data["application_id"]
    assert from_json(Measurement, data).application_id == ""


def test_boards_are_described_line_by_line(fingerprint: Fingerprint) -> None:
    boards = replace(
        fingerprint,
        emulated=False,
        security=Security.INSECURE_LAB,
        hardware=("pi0: Raspberry Pi 5", "pi1: Raspberry Pi 4"),
    )
    data = json.loads(json.dumps(to_json(boards)))
    assert data["security"] == "insecure-lab"
    assert from_json(Fingerprint, data) == boards


def test_a_fingerprint_of_before_there_were_boards_is_of_emulated_nodes(
    fingerprint: Fingerprint,
) -> None:
    data = to_json(fingerprint)
    assert isinstance(data, dict)
    del data["security"], data["hardware"]
    found = from_json(Fingerprint, data)
    assert (found.security, found.hardware) == (Security.EMULATED, ())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"exit_status": True},
            r"Measurement\.exit_status: it should be a valid integer, not 'True'",
        ),
        ({"duration_seconds": "3"}, r"Measurement\.duration_seconds: it should be a valid number"),
        ({"counters": {"a": 1.5}}, r"Measurement\.counters\.a: it should be a valid integer"),
        (
            {"verification": {"method": "x"}},
            r"Measurement\.verification\.records: the field is missing",
        ),
        ({"figures": {"a": "1"}}, r"Measurement\.figures\.a: it should be a valid number, not '1'"),
        (
            {"intermediate_bytes": 1.5},
            r"Measurement\.intermediate_bytes: it should be a valid integer",
        ),
        ({"remarks": [1]}, r"Measurement\.remarks\.0: it should be a valid string, not '1'"),
        ({"surprise": 1}, r"Measurement\.surprise: the field is unknown"),
    ],
)
def test_wrong_data_is_refused_by_name(
    measurement: Measurement, change: dict[str, object], message: str
) -> None:
    data = to_json(measurement)
    assert isinstance(data, dict)
    with pytest.raises(StoreError, match=message):
        from_json(Measurement, {**data, **change})  # type: ignore[dict-item]


def test_an_unknown_enumeration_value_names_the_allowed_ones(trials: tuple[Trial, ...]) -> None:
    data = to_json(trials[0])
    assert isinstance(data, dict)
    with pytest.raises(
        StoreError,
        match=r"Trial\.engine: it should be 'mapreduce', 'spark', 'mpi', 'http', 'galera' "
        "or 'gluster', not 'flink'",
    ):
        from_json(Trial, {**data, "engine": "flink"})


def test_a_value_without_json_form_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="no JSON form for bytes"):
        to_json({"a": b"bytes"})


@pytest.mark.parametrize(("emulated", "kind"), [(True, "emulated"), (False, "boards")])
def test_results_from_before_kinds_were_recorded_say_theirs(
    emulated: bool, kind: str, fingerprint: Fingerprint
) -> None:
    old = replace(fingerprint, emulated=emulated, kind="")
    assert old.kind == kind
    assert bool(old.mark) is emulated


def test_a_result_of_a_kind_that_is_not_known_here_says_so(fingerprint: Fingerprint) -> None:
    strange = replace(fingerprint, emulated=False, kind="cloud")
    assert strange.mark == strange.noun == "nodes of the kind cloud"
