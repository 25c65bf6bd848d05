"""``[settings]`` and a profile of one's own in ``cluster.toml``."""

from __future__ import annotations

from pathlib import Path

import pytest

from boardcluster.errors import SpecError
from boardcluster.records import ClusterSpec, MasterPlacement
from boardcluster.services.settings import check_setting
from boardcluster.spec.cluster import load_cluster
from boardcluster.spec.template import propose_cluster, render_cluster
from boardcluster.spec.variant import ClusterVariant, apply_variant, variant_words

PAIR = "hadoop-3.4.2-spark-4.1.4"
SPEC = propose_cluster(
    name="c",
    workers=2,
    host_cores=8,
    host_available_bytes=16 << 30,
    engines=PAIR,
    profile="default",
)
TABLE = """
[settings]
"dfs.blocksize" = "32 MiB"
"dfs.datanode.handler.count" = 7
"""


def load(path: Path, text: str) -> ClusterSpec:
    path.write_text(text)
    return load_cluster(
        path, engine_pairs=[PAIR], profiles=["default"], check_setting=check_setting
    )


def rendered(spec: ClusterSpec) -> str:
    return render_cluster(spec, engine_pairs=[PAIR], profiles=["default"])


def test_settings_are_read_and_written_again(tmp_path: Path) -> None:
    spec = load(tmp_path / "cluster.toml", rendered(SPEC) + TABLE)
    assert spec.settings == {"dfs.blocksize": "33554432", "dfs.datanode.handler.count": "7"}
    assert load(tmp_path / "running.toml", rendered(spec)) == spec


def test_a_profile_of_ones_own_begins_at_the_file_that_names_it(tmp_path: Path) -> None:
    text = rendered(SPEC).replace('profile = "default"', 'profile = "mine.toml"')
    with pytest.raises(SpecError, match=r"there is no file .*mine\.toml; allowed: default, or the"):
        load(tmp_path / "cluster.toml", text)
    (tmp_path / "mine.toml").write_text("")
    spec = load(tmp_path / "cluster.toml", text)
    assert spec.profile == str(tmp_path / "mine.toml")
    (tmp_path / "home").mkdir()
    assert load(tmp_path / "home" / "running.toml", rendered(spec)) == spec


def test_wrong_settings_are_named_with_their_line(tmp_path: Path) -> None:
    text = rendered(SPEC) + TABLE.replace("dfs.blocksize", "dfs.block.size") + "plain.key = 1\n"
    with pytest.raises(SpecError) as caught:
        load(tmp_path / "cluster.toml", text)
    first, second = caught.value.message.splitlines()
    line = text.splitlines().index('"dfs.block.size" = "32 MiB"') + 1
    assert f':{line}: settings."dfs.block.size": no engine has a property' in first
    assert first.endswith('did you mean "dfs.blocksize"?')
    assert f":{line + 2}: settings.plain: a table is not a value" in second


def test_a_form_has_settings_of_its_own_on_top_of_the_clusters(tmp_path: Path) -> None:
    spec = load(tmp_path / "cluster.toml", rendered(SPEC) + TABLE)
    settings = (("dfs.datanode.handler.count", "9"),)
    form = ClusterVariant(
        profile="default", workers=2, master=MasterPlacement.DECLARED, settings=settings
    )
    applied = apply_variant(spec, form)
    assert applied.settings == {"dfs.blocksize": "33554432", "dfs.datanode.handler.count": "9"}
    assert variant_words(spec, form) == "dfs.datanode.handler.count 9"
    same = ClusterVariant(
        profile="default",
        workers=2,
        master=MasterPlacement.DECLARED,
        settings=(("dfs.datanode.handler.count", "7"),),
    )
    assert (apply_variant(spec, same), variant_words(spec, same)) == (spec, "")
