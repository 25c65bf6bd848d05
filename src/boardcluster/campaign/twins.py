"""A cluster of emulated boards from a file: the file becomes the ``cluster.toml`` of a home."""

from __future__ import annotations

from pathlib import Path

from boardcluster.cluster.folders import home_folder
from boardcluster.errors import ClusterError, SpecError, UsageError
from boardcluster.fetch.cache import make_folder, writing
from boardcluster.records import ClusterSpec
from boardcluster.services import operation
from boardcluster.services.declaration import read_spec
from boardcluster.services.pair import pair_ids
from boardcluster.services.profile import profile_names
from boardcluster.spec.meters import FILE_ENDINGS
from boardcluster.spec.template import render_cluster
from boardcluster.store.files import IMPORTED_NAME
from boardcluster.telemetry.meters.registry import meter_facts

__all__ = ["place_twin", "read_twin", "refuse_imported", "twin_home"]


def read_twin(file: Path) -> ClusterSpec:
    """Read a file of emulated boards.

    Raises:
        SpecError: it is missing or wrong.
        UsageError: its nodes have no boards.
    """
    spec = read_spec(file, meter_kinds=meter_facts())
    if spec.twin is None:
        raise UsageError(
            f"{file}: no node has a `board`, so this is not a twin of boards",
            hint="give each [[node]] a `board`, see `boardcluster catalog boards`; or bring a "
            "plain cluster up without --twin",
        )
    return spec


def twin_home(home: Path | None, spec: ClusterSpec) -> Path:
    """Return the state folder of a twin: ``--home``, or one that is named like the cluster."""
    return home_folder(home, spec.name)


def refuse_imported(folder: Path) -> None:
    """Refuse the state folder of imported results: others' runs would pass for those of a twin.

    Raises:
        ClusterError: a bundle was imported into it.
    """
    if (folder / IMPORTED_NAME).exists():
        raise ClusterError(
            f"{folder} holds imported results, which were not measured on this twin",
            hint="move that folder away, or choose another one with --home (of `experiment`: "
            "--home-root)",
        )


def place_twin(spec: ClusterSpec, file: Path, folder: Path) -> None:
    """Put the file of a twin in its home; a home that has it already stays as it is.

    Raises:
        SpecError: what is in the home cannot be read.
        ClusterError: the cluster is up from another file, or the home is that of a plain cluster or
            of imported results.
        HostError: it cannot be written.
    """
    refuse_imported(folder)
    target = folder / "cluster.toml"
    text = _self_contained(spec, file)
    if target.exists():
        if target.read_text(encoding="utf-8") == text:
            return
        there, is_whole = _read_placed(target)
        if is_whole and there == spec:  # as a former version wrote it
            return
        if there.twin is None:
            raise ClusterError(
                f"{target} describes a different cluster, not one of emulated boards",
                hint="choose another state folder with --home, or another name in [cluster]",
            )
        if operation.found_up(folder):
            raise ClusterError(
                f"the cluster in {folder} is up from another version of {file}",
                hint=f"run `boardcluster down --home {folder}` first",
            )
    make_folder(folder)
    with writing(target):
        target.write_text(text, encoding="utf-8")


def _read_placed(target: Path) -> tuple[ClusterSpec, bool]:
    """Return what a home's file declares, and whether its boards are still as it says.

    The user's own files that it names may have been edited, renamed or moved since it was written.

    Raises:
        SpecError: it cannot be read for another reason.
    """
    try:
        return read_spec(target, meter_kinds=meter_facts()), True
    except SpecError as error:
        try:
            return read_spec(target, with_parts=False), False
        except SpecError:
            raise error from None


def _self_contained(spec: ClusterSpec, file: Path) -> str:
    """Return the file's text; one that names others by their path gets whole paths."""
    twins = [node.twin for node in spec.nodes if node.twin is not None]
    names = [name for row in twins for name in (row.board, row.medium, row.supply, row.cooling)]
    names += [spec.profile, *(key for meter in spec.meters for key in meter.options)]
    if any(name.endswith((".toml", *FILE_ENDINGS)) for name in names):
        return render_cluster(spec, engine_pairs=pair_ids(), profiles=profile_names())
    return file.read_text(encoding="utf-8")
