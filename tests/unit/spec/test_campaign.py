import re
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from boardcluster.analysis.stopping import aims_of
from boardcluster.campaign.plan import expand, workload_facts
from boardcluster.errors import SpecError
from boardcluster.factors import FACTORS, Factor
from boardcluster.records import (
    CachePolicy,
    CampaignSpec,
    Checksum,
    Engine,
    MasterPlacement,
    Matrix,
    OnLoss,
    Policy,
)
from boardcluster.services.profile import profile_names
from boardcluster.services.settings import check_setting
from boardcluster.spec.campaign import WorkloadFacts, load_campaign, mix_engines
from boardcluster.spec.checks import mix_jobs

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted(set((ROOT / "examples").glob("*.toml")) - {ROOT / "examples" / "boards.toml"})
PROFILES = ("default", "upstream", "paper-2026", "paper-2021")
BOTH = (Engine.MAPREDUCE, Engine.SPARK)


def _facts(
    *engines: Engine,
    size: bool = True,
    optional: bool = False,
    text: bool = False,
    **parameters: Callable[[str], bool],
) -> WorkloadFacts:
    return WorkloadFacts(
        engines=engines,
        parameters={name: (f"words for {name}", rule) for name, rule in parameters.items()},
        takes_size=size,
        size_is_optional=optional,
        takes_text=text,
    )


WORKLOADS = {
    "wordcount": _facts(*BOTH, text=True),
    "grep": _facts(*BOTH, text=True, pattern=lambda text: "(" not in text),
    "pi": _facts(*BOTH, size=False, maps=str.isdecimal, samples=str.isdecimal),
    "hpl": _facts(Engine.MPI, optional=True, nb=str.isdecimal),
    "netpipe": _facts(Engine.MPI, size=False),
}

GOOD = """\
[campaign]
name = "quick"
seed = 7
timeout = "30 min"
cache = "drop"
trim = true
cool_down = "5 s"
cool_below_celsius = 60
cool_wait = 90.5
repeat_tainted = 3
[[matrix]]
workload = ["wordcount", "grep"]
engine = ["mapreduce", "spark"]
size = ["64 MB", "1 GB"]
profile = "default"
workers = [1, 2, 4]
replication = [1, 2]
checksum = ["crc32c", "null"]
master = ["declared", "combined"]
repetitions = 5
warm_ups = 1
input = "text.txt"
[matrix.parameters.grep]
pattern = ["ATL", "ORD"]

[[matrix]]
workload = "grep x3 + pi"
size = 1_000_000
concurrency = [4, 1]

[[matrix]]
workload = ["hpl", "netpipe"]
parameters.hpl.nb = 32
"""


def _load(folder: Path, text: str) -> CampaignSpec:
    path = folder / "campaign.toml"
    path.write_text(text, encoding="utf-8")
    return load_campaign(path, workloads=WORKLOADS, profiles=PROFILES)


def _problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        _load(folder, text)
    lines = caught.value.message.split("\n")
    assert all(line.startswith(f"{folder}/campaign.toml:") for line in lines)
    return [line.removeprefix(f"{folder}/campaign.toml:") for line in lines]


def _change(old: str, new: str, text: str = GOOD) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)


def test_a_good_file_becomes_a_spec(tmp_path: Path) -> None:
    assert _load(tmp_path, GOOD) == CampaignSpec(
        name="quick",
        seed=7,
        policy=Policy(
            timeout_seconds=1800.0,
            cache=CachePolicy.DROP,
            trim=True,
            cool_down_seconds=5.0,
            cool_below_celsius=60.0,
            cool_wait_seconds=90.5,
            repeat_tainted=3,
            on_loss=OnLoss.RESTART,
        ),
        matrices=(
            Matrix(
                workloads=("wordcount", "grep"),
                engines=BOTH,
                sizes_bytes=(64_000_000, 10**9),
                profiles=("default",),
                levels={
                    "workers": (1, 2, 4),
                    "replication": (1, 2),
                    "checksum": (Checksum.CRC32C, Checksum.NULL),
                    "master": (MasterPlacement.DECLARED, MasterPlacement.COMBINED),
                },
                repetitions=5,
                warm_ups=1,
                input=str(tmp_path / "text.txt"),
                parameters={"grep.pattern": ("ATL", "ORD")},
            ),
            Matrix(
                workloads=("grep+grep+grep+pi",),
                sizes_bytes=(1_000_000,),
                levels={"concurrency": (4, 1)},
                repetitions=3,
            ),
            Matrix(
                workloads=("hpl", "netpipe"),
                sizes_bytes=(),
                repetitions=3,
                parameters={"hpl.nb": ("32",)},
            ),
        ),
    )


def test_what_is_left_out_takes_the_defaults(tmp_path: Path) -> None:
    spec = _load(tmp_path, '[campaign]\nname = "A-1"\n[[matrix]]\nworkload = "pi"\n')
    expected = Matrix(workloads=("pi",), sizes_bytes=(), repetitions=3)
    assert spec == CampaignSpec(
        name="A-1",
        seed=None,
        policy=Policy(repeat_tainted=1, on_loss=OnLoss.RESTART),
        matrices=(expected,),
    )


def test_the_campaigns_numbers_hold_where_a_matrix_has_none(tmp_path: Path) -> None:
    spec = _load(tmp_path, _change("seed = 7", "repetitions = 9\nwarm_ups = 2"))
    runs = [(matrix.repetitions, matrix.warm_ups) for matrix in spec.matrices]
    assert runs == [(5, 1), (9, 2), (9, 2)]
    spec = _load(tmp_path, _change("warm_ups = 1", "warm_ups = 0"))
    assert [matrix.warm_ups for matrix in spec.matrices] == [0, 0, 0]


def test_an_absolute_input_stays_and_a_relative_one_starts_at_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = _load(tmp_path, _change('"text.txt"', '"/data/text.txt"'))
    assert spec.matrices[0].input == "/data/text.txt"
    (tmp_path / "campaign.toml").write_text(_change('"text.txt"', '"sub/text.txt"'))
    monkeypatch.chdir(tmp_path)
    spec = load_campaign(Path("campaign.toml"), workloads=WORKLOADS, profiles=PROFILES)
    assert spec.matrices[0].input == str(tmp_path / "sub" / "text.txt")


# Old text, new text, the one line expected after the file's name; "..." stands for anything.
SINGLE_MISTAKES = {
    "name": (
        '"quick"',
        '"quick run"',
        (
            '2: campaign.name: "quick run" is not a valid name; allowed: letters, digits '
            '... at most 40 characters; did you mean "quick-run"?'
        ),
    ),
    "name that climbs": ('"quick"', '"../x"', '2: campaign.name: "../x" ... did you mean "x"?'),
    "name of 41": ('"quick"', f'"{"a" * 41}"', "2: campaign.name: ..."),
    "name of another type": ('"quick"', "3", "2: campaign.name: 3 is not a valid name; ..."),
    "no name": ('name = "quick"\n', "", "1: campaign.name: missing; allowed: letters, ..."),
    "seed": ("seed = 7", "seed = -1", "3: campaign.seed: -1 is not allowed; allowed: a whole ..."),
    "seed too large": ("seed = 7", f"seed = {2**63}", "3: campaign.seed: ..."),
    "timeout": (
        '"30 min"',
        '"30 minutes"',
        (
            '4: campaign.timeout: "30 minutes" is not a duration; allowed: a number and s, min, h, '
            'e.g. "30 min"; a number alone is seconds'
        ),
    ),
    "timeout of nothing": (
        '"30 min"',
        '"0 s"',
        '4: campaign.timeout: "0 s" is too short; allowed: ...; from 1 s to 720 h',
    ),
    "endless timeout": ('"30 min"', "inf", "4: campaign.timeout: a huge number is not ..."),
    "timeout too long": ('"30 min"', '"721 h"', '4: campaign.timeout: "721 h" is too long; ...'),
    "timeout as truth": ('"30 min"', "true", "4: campaign.timeout: true is not a duration; ..."),
    "cache": (
        '"drop"',
        '"drops"',
        (
            '5: campaign.cache: "drops" is not a cache policy; allowed: drop, keep; did you mean '
            '"drop"?'
        ),
    ),
    "on_loss": (
        '"drop"',
        '"drop"\non_loss = "restrat"',
        (
            '6: campaign.on_loss: "restrat" is not a way to go on; allowed: restart, stop, '
            'wait, without; did you mean "restart"?'
        ),
    ),
    "loss_wait": (
        '"drop"',
        '"drop"\nloss_wait = "2 days"',
        '6: campaign.loss_wait: "2 days" is not a duration; ...',
    ),
    "trim": ("trim = true", "trim = 1", "6: campaign.trim: 1 is not allowed; allowed: true, false"),
    "heat": (
        "celsius = 60",
        "celsius = nan",
        "8: campaign.cool_below_celsius: nan is not allowed; allowed: a number from 0 to 120; ...",
    ),
    "unknown key": (
        "seed = 7",
        "sead = 7",
        ('3: campaign.sead: unknown key; allowed: name, seed, starts, ...; did you mean "seed"?'),
    ),
    "unknown key in a matrix": (
        "workers = [1, 2, 4]",
        "worker = 4",
        ('16: matrix[0].worker: unknown key; allowed: ...; did you mean "workers"?'),
    ),
    "workload": (
        '"grep"]',
        '"gerp"]',
        (
            '12: matrix[0].workload[1]: "gerp" is not a workload; allowed: grep, hpl, netpipe, pi, '
            'wordcount; did you mean "grep"?'
        ),
    ),
    "workload in a mix": (
        '"grep x3 + pi"',
        '"grep x3 + pie"',
        '27: matrix[1].workload: "pie" is not a workload; allowed: ...; did you mean "pi"?',
    ),
    "no jobs": (
        '"grep x3 + pi"',
        '"grep x0"',
        (
            '27: matrix[1].workload: "grep x0" is not a workload or a mix; allowed: one workload, '
            'as "grep", or a mix, as "grep+wordcount" or "grep x4", of at most 16 jobs'
        ),
    ),
    "too many jobs": (
        '"grep x3 + pi"',
        '"grep x16 + pi"',
        '27: matrix[1].workload: "grep x16 + pi" has too many jobs; ...',
    ),
    "half a mix": ('"grep x3 + pi"', '"grep+"', '27: matrix[1].workload: "grep+" is not a ...'),
    "workload of another type": (
        '["hpl", "netpipe"]',
        '["hpl", 3]',
        "32: matrix[2].workload[1]: 3 is not a workload; allowed: ...",
    ),
    "a mix without a common engine": (
        '["hpl", "netpipe"]',
        '["hpl", "hpl+pi"]',
        '32: matrix[2].workload[1]: the jobs of "hpl+pi" have no engine in common; allowed: ...',
    ),
    "engine": (
        '["mapreduce", "spark"]',
        '["mapreduce", "sparc"]',
        (
            '13: matrix[0].engine[1]: "sparc" is not an engine; '
            "allowed: galera, gluster, http, mapreduce, mpi, spark; "
            'did you mean "spark"?'
        ),
    ),
    "engine that no workload has": (
        '["mapreduce", "spark"]',
        '["mapreduce", "mpi"]',
        '13: matrix[0].engine[1]: no workload here runs on "mpi"; allowed: mapreduce, spark',
    ),
    "engine of others only": (
        '["hpl", "netpipe"]',
        '["hpl", "pi"]\nengine = "spark"',
        (
            '32: matrix[2].workload[0]: "hpl" runs on none of the engines listed here; allowed: a '
            "matrix with mpi"
        ),
    ),
    "size": ('"1 GB"]', '"1 Gb"]', '14: matrix[0].size[1]: "1 Gb" is not a size; allowed: ...'),
    "size of nothing": ('"1 GB"]', "0]", "14: matrix[0].size[1]: 0 is too small; allowed: ..."),
    "size too large": ('"1 GB"]', '"1001 TB"]', '14: ... "1001 TB" is too large; ...'),
    "size as truth": ("size = 1_000_000", "size = true", "28: matrix[1].size: true is not a ..."),
    "missing size": (
        "size = 1_000_000\n",
        "",
        '26: matrix[1].size: missing, but "grep" needs an input size; allowed: a number and B, ...',
    ),
    "size that nobody takes": (
        '["hpl", "netpipe"]\nparameters.hpl.nb = 32',
        '"netpipe"\nsize = "1 GB"',
        "33: matrix[2].size: no workload here has an input size; allowed: nothing; leave it out",
    ),
    "input that nobody reads": (
        "parameters.hpl.nb = 32",
        'input = "x"',
        "33: matrix[2].input: no workload here reads text; allowed: nothing; leave it out",
    ),
    "empty input": ('"text.txt"', '""', '22: matrix[0].input: "" is not allowed; allowed: the ...'),
    "profile": (
        'profile = "default"',
        'profile = ["default", "paper2026"]',
        (
            '15: matrix[0].profile[1]: "paper2026" is not a profile; allowed: ...; did you mean '
            '"paper-2026"?'
        ),
    ),
    "no workers": ("[1, 2, 4]", "[1, 0]", "16: matrix[0].workers[1]: 0 is not allowed; ..."),
    "many workers": ("[1, 2, 4]", "65", "16: matrix[0].workers: 65 is not allowed; allowed: ..."),
    "empty list": (
        "[1, 2, 4]",
        "[]",
        (
            "16: matrix[0].workers: an empty array is not allowed; allowed: one or more whole "
            "numbers from 1 to 64"
        ),
    ),
    "same number twice": (
        "[1, 2, 4]",
        "[1, 2, 1]",
        (
            "16: matrix[0].workers[2]: the same as matrix[0].workers[0] in line 16; allowed: "
            "each value once"
        ),
    ),
    "same size twice": (
        '"1 GB"]',
        "64_000_000]",
        "14: matrix[0].size[1]: the same as matrix[0].size[0] in line 14; allowed: each value once",
    ),
    "same mix twice": (
        '"grep x3 + pi"',
        '["grep x4", "grep+grep x3"]',
        "27: matrix[1].workload[1]: the same as matrix[1].workload[0] in line 27; ...",
    ),
    "same parameter twice": (
        "parameters.hpl.nb = 32",
        'parameters.hpl.nb = [\n32,\n"32"]',
        (
            "35: matrix[2].parameters.hpl.nb[1]: the same as matrix[2].parameters.hpl.nb[0] in "
            "line 34; ..."
        ),
    ),
    "concurrency": (
        "[4, 1]",
        "[5, 1]",
        (
            '29: matrix[1].concurrency[0]: 5 jobs at once, but "grep+grep+grep+pi" has 4; allowed: '
            "1 to 4"
        ),
    ),
    "concurrency without a mix": (
        "parameters.hpl.nb = 32",
        "concurrency = 2",
        "33: matrix[2].concurrency: 2 jobs at once, but there is no mix here; allowed: 1, or ...",
    ),
    "replication": ("[1, 2]", "[1, 513]", "17: matrix[0].replication[1]: 513 is not allowed; ..."),
    "checksum": (
        '"null"]',
        '"none"]',
        '18: matrix[0].checksum[1]: "none" is not a checksum type; allowed: crc32c, null...',
    ),
    "master": (
        '"combined"]',
        '"combine"]',
        (
            '19: matrix[0].master[1]: "combine" is not a master placement; allowed: combined, '
            'declared, separate; did you mean "combined"?'
        ),
    ),
    "repetitions": (
        "repetitions = 5",
        "repetitions = 0",
        "20: matrix[0].repetitions: 0 is not allowed; allowed: a whole number from 1 to 1000",
    ),
    "warm-ups": ("warm_ups = 1", "warm_ups = -1", "21: matrix[0].warm_ups: -1 is not allowed; ..."),
    "parameter": (
        'pattern = ["ATL", "ORD"]',
        'patern = "ATL"',
        (
            '24: matrix[0].parameters.grep.patern: "grep" has no such parameter; allowed: pattern; '
            'did you mean "pattern"?'
        ),
    ),
    "parameter value": (
        '"ORD"]',
        '"(("]',
        '24: matrix[0].parameters.grep.pattern[1]: "((" is not allowed; allowed: words for pattern',
    ),
    "parameter as truth": (
        '["ATL", "ORD"]',
        "true",
        "24: matrix[0].parameters.grep.pattern: true is not allowed; allowed: words for pattern",
    ),
    "no parameter value": (
        '["ATL", "ORD"]',
        "[]",
        "24: matrix[0].parameters.grep.pattern: an empty array is not allowed; allowed: one or ...",
    ),
    "parameter of a workload that is elsewhere": (
        "[matrix.parameters.grep]",
        "[matrix.parameters.pi]",
        (
            '23: matrix[0].parameters.pi: "pi" is not a workload of this matrix; allowed: grep, '
            "wordcount"
        ),
    ),
    "parameters that are no table": (
        "parameters.hpl.nb = 32",
        "parameters.hpl = 32",
        "33: matrix[2].parameters.hpl: 32 is not allowed; allowed: tables [matrix...",
    ),
}


@pytest.mark.parametrize("name", SINGLE_MISTAKES)
def test_one_mistake_gives_one_line_that_says_it_all(tmp_path: Path, name: str) -> None:
    old, new, expected = SINGLE_MISTAKES[name]
    (line,) = _problems(tmp_path, _change(old, new))
    assert re.fullmatch(re.escape(expected).replace(re.escape("..."), ".*"), line), line


def test_every_problem_is_listed_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = GOOD
    for old, new in (
        ('"quick"', '"q!"'),
        ('"spark"]', '"mpi"]'),
        ('"1 GB"]', '"1 Gb"]'),
        ("[1, 2, 4]", "[1, 1]"),
        ('"grep x3 + pi"', '"nothing"'),
        ("[4, 1]", "[]"),
        ('["hpl", "netpipe"]', '["hpl", "hpl"]'),
    ):
        text = _change(old, new, text)
    assert [line.split(": ")[:2] for line in _problems(tmp_path, text)] == [
        ["2", "campaign.name"],
        ["13", "matrix[0].engine[1]"],
        ["14", "matrix[0].size[1]"],
        ["16", "matrix[0].workers[1]"],
        ["27", "matrix[1].workload"],
        ["29", "matrix[1].concurrency"],
        ["32", "matrix[2].workload[1]"],
    ]


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("# nothing yet\n", ["campaign: missing", "matrix: missing"]),
        ('campaign = 3\nmatrix = "x"\n', ["campaign: 3 is not", 'matrix: "x" is not']),
        ('matrix = [3]\ncampaign.name = "a"\n', ["matrix[0]: 3 is not allowed"]),
        ('matrix = []\ncampaign.name = "a"\n', ["matrix: an empty array is not allowed"]),
        ('matrix = [{}]\ncampaign.name = "a"\n', ["matrix[0].workload: missing; allowed: one or"]),
        ('[campaign]\nname = "a"\n[matrix]\nworkload = "pi"\n', ["matrix: a table is not allowed"]),
    ],
)
def test_tables_that_are_missing_or_no_tables(tmp_path: Path, text: str, places: list[str]) -> None:
    lines = _problems(tmp_path, text)
    assert len(lines) == len(places)
    for line, place in zip(lines, places, strict=True):
        assert line.partition(": ")[2].startswith(place), line


def test_a_missing_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="no such file") as caught:
        load_campaign(tmp_path / "no.toml", workloads=WORKLOADS, profiles=PROFILES)
    assert "examples" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "jobs"),
    [
        ("grep", ("grep",)),
        ("grep x2", ("grep", "grep")),
        ("grep x 2", ("grep", "grep")),
        ("pi+grep x2+pi", ("pi", "grep", "grep", "pi")),
        (" pi + grep ", ("pi", "grep")),
        ("x2", ("x2",)),
        ("grep x16", ("grep",) * 16),
    ],
)
def test_mixes_are_read_in_order(text: str, jobs: tuple[str, ...]) -> None:
    assert mix_jobs(text) == jobs


@pytest.mark.parametrize("text", ["", "+", "grep x", "grep 4", "grep x-1", "a b", "grep x17"])
def test_what_is_no_mix_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"allowed: one workload, .* at most 16 jobs"):
        mix_jobs(text)


def test_a_mix_runs_on_the_engines_that_all_its_jobs_have() -> None:
    workloads = {**WORKLOADS, "sparky": _facts(Engine.SPARK)}
    assert mix_engines("grep", workloads) == BOTH
    assert mix_engines("grep+sparky+pi", workloads) == (Engine.SPARK,)
    assert mix_engines("grep+hpl", workloads) == ()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_are_valid_and_can_be_planned(path: Path) -> None:
    facts = workload_facts()
    spec = load_campaign(
        path, workloads=facts, profiles=profile_names(), check_setting=check_setting
    )
    assert spec.name == path.stem
    trials = expand(
        replace(spec, seed=1),
        campaign_id="c",
        workloads=facts,
        cluster_profile="default",
        cluster_workers=8,
    )
    assert len(trials) >= 15
    if path.stem in ("quick", "services"):  # services need programs that not everyone installs
        run = {(trial.workload, trial.engine) for trial in trials if "+" not in trial.workload}
        assert run == {
            (name, engine)
            for name, fact in facts.items()
            for engine in fact.engines
            if (engine.on_yarn or engine is Engine.MPI) == (path.stem == "quick")
        }


def test_there_is_an_example_for_every_paper() -> None:
    names = {path.stem for path in EXAMPLES}
    assert {"quick", "paper-2016-hpl", "paper-2021", "paper-2026"} <= names


def test_the_example_of_the_reference_is_valid(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "reference" / "campaign-toml.md").read_text()
    blocks = re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    spec = _load(tmp_path, blocks[0])
    assert [matrix.workloads for matrix in spec.matrices] == [
        ("wordcount", "grep"),
        ("wordcount+grep+grep",),
    ]


def _documented(title: str) -> dict[str, str]:
    """Each key of a table of the reference with its default."""
    text = (ROOT / "docs" / "reference" / "campaign-toml.md").read_text()
    part = text[text.index(f"\n## {title}\n") + 1 :].split("\n## ")[0]
    return dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", part, re.MULTILINE))


def test_the_reference_has_every_key(tmp_path: Path) -> None:
    text = '[campaign]\nname = "a"\nzzz = 1\n[[matrix]]\nworkload = "pi"\nzzz = 1\n'
    text += '[[comparison]]\nof = "engine"\nlevels = ["spark", "mapreduce"]\nzzz = 1\n'
    titles = ("[campaign]", "[[matrix]]", "[[comparison]]")
    for title, line in zip(titles, _problems(tmp_path, text), strict=True):
        assert line.partition("allowed: ")[2].split(", ") == list(_documented(title))


def test_the_defaults_of_the_reference_are_the_real_ones(tmp_path: Path) -> None:
    table = '[[matrix]]\nworkload = "pi"\n'
    written = {key: text.strip("`") for key, text in _documented("[campaign]").items()}
    assert written.pop("name") == "needed"
    assert written.pop("seed") == "a new one each time"
    assert written.pop("until") == "none"
    assert written.pop("at_most") == "ten times the minimum"
    plain = ("true", "false", *map(str, range(10)))
    rows = [f"{key} = {text if text in plain else repr(text)}" for key, text in written.items()]
    head = '[campaign]\nname = "a"\n'
    assert _load(tmp_path, head + "\n".join(rows) + "\n" + table) == _load(tmp_path, head + table)


SETTINGS = """\
[campaign]
name = "a"
[[matrix]]
workload = "pi"
profile = ["default", "mine.toml"]
[matrix.settings]
"dfs.blocksize" = ["32 MiB", "64 MiB"]
"mapreduce.map.output.compress" = true
"""


def _with_settings(folder: Path, text: str) -> CampaignSpec:
    path = folder / "campaign.toml"
    path.write_text(text)
    return load_campaign(path, workloads=WORKLOADS, profiles=PROFILES, check_setting=check_setting)


def test_settings_and_profiles_of_ones_own_are_levels(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("")
    [row] = _with_settings(tmp_path, SETTINGS).matrices
    assert row.profiles == ("default", str(tmp_path / "mine.toml"))
    assert row.settings == {
        "dfs.blocksize": ("33554432", "67108864"),
        "mapreduce.map.output.compress": ("true",),
    }


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"dfs.blocksize"', '"dfs.block.size"', '7: .*no engine has .* mean "dfs.blocksize"'),
        ('"dfs.blocksize"', "dfs.blocksize", "7: .*a table is not a value; allowed: the whole key"),
        ('"64 MiB"', '"32.0 MiB"', "7: .*is here twice; allowed: each value once"),
        ('["32 MiB", "64 MiB"]', "[]", "7: .*an empty array is not allowed"),
        ('["32 MiB", "64 MiB"]', '["32 MiB", "large"]', r"7: .*\[1\]: .large. is not a value of"),
        ('"dfs.blocksize"', '"dfs.replication"', "7: .*`replication` in a"),
        ("mine.toml", "other.toml", "5: .*there is no file .*other.toml"),
    ],
)
def test_wrong_settings_are_named_with_their_line(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    (tmp_path / "mine.toml").write_text("")
    with pytest.raises(SpecError, match=words):
        _with_settings(tmp_path, _change(old, new, SETTINGS))


BLOCK_SIZE = Factor(
    name="block_size_bytes",
    key="block_size",
    label="block size",
    meaning="size of HDFS blocks",
    left_out="the profile's",
    allowed="1 MiB to 1 GiB",
    kind=int,
    default=0,
    unit="bytes",
    least=1 << 20,
    most=1 << 30,
)
PLAIN = tuple(factor for factor in (*FACTORS, BLOCK_SIZE) if factor.is_plain)


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module that reads campaign files, as it is where the table has one row more."""
    monkeypatch.setattr("boardcluster.factors.FACTORS", (*FACTORS, BLOCK_SIZE))
    found = find_spec("boardcluster.spec.campaign")
    assert found
    assert found.loader
    module = module_from_spec(found)
    found.loader.exec_module(module)
    return module


def load_levels(reader: ModuleType, folder: Path, factor: Factor, listed: str) -> dict[str, Any]:
    file = folder / "campaign.toml"
    head = '[campaign]\nname = "new"\n[[matrix]]\nworkload = "grep x2"\nsize = "1 GB"\n'
    file.write_text(f"{head}{factor.file_key} = [{listed}]\n")
    spec = reader.load_campaign(file, workloads=WORKLOADS, profiles=PROFILES)
    return dict(spec.matrices[0].levels)


@pytest.mark.parametrize("factor", PLAIN, ids=lambda factor: factor.name)
def test_levels_of_every_plain_factor_are_read_as_a_person_writes_them(
    reader: ModuleType, tmp_path: Path, factor: Factor
) -> None:
    levels: tuple[Any, ...]
    kind: Any = factor.kind
    if factor.unit == "bytes":
        listed, levels = '"32 MiB", "64 MB"', (32 << 20, 64 * 10**6)
    elif kind is int:
        levels = (factor.least, factor.least + 1)
        listed = ", ".join(map(str, levels))
    else:
        levels = tuple(kind)[:2]
        listed = ", ".join(f'"{level}"' for level in levels)
    assert load_levels(reader, tmp_path, factor, listed) == {factor.name: levels}


@pytest.mark.parametrize(
    ("listed", "words"),
    [
        ('"1 KiB"', '"1 KiB" is too small; allowed: .*, from 1 MiB to 1 GiB'),
        ('"2 GiB"', '"2 GiB" is too large; allowed: .*, from 1 MiB to 1 GiB'),
        ("0", "0 is too small"),
        ('"32 Mb"', '"32 Mb" is not a size'),
        ("1.5", "1.5 is not a size; allowed: .*, from 1 MiB to 1 GiB"),
        ("", "one or more sizes; each .*, from 1 MiB to 1 GiB"),
    ],
)
def test_a_wrong_level_in_bytes_is_refused_in_words_of_sizes(
    reader: ModuleType, tmp_path: Path, listed: str, words: str
) -> None:
    with pytest.raises(SpecError, match=rf"matrix\[0\]\.block_size.*{words}"):
        load_levels(reader, tmp_path, BLOCK_SIZE, listed)


# Starts, precision and declared comparisons

DECLARED = """\
[campaign]
name = "a"
starts = 3
until = "3 %"
[[matrix]]
workload = ["grep", "wordcount"]
engine = ["mapreduce", "spark"]
size = ["1 GB", "2 GB"]
profile = ["default", "mine.toml"]
workers = [1, 2, 4]
[matrix.settings]
"dfs.blocksize" = ["32 MiB", "64 MiB"]
[[comparison]]
of = "engine"
levels = ["mapreduce", "spark"]
where = { workload = "grep", size = ["1 GB"], "dfs.blocksize" = "32 MiB" }
[[comparison]]
of = "dfs.blocksize"
levels = ["32 MiB", "64 MiB"]
[[comparison]]
of = "profile"
levels = ["default", "mine.toml"]
[[comparison]]
of = "workers"
levels = [1, 4]
"""


def test_comparisons_are_declared_as_trials_have_their_levels(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("")
    spec = _with_settings(tmp_path, DECLARED)
    assert (spec.starts, spec.precision, spec.repetitions_max) == (3, 0.03, 90)
    assert [(row.factor, row.levels) for row in spec.comparisons] == [
        ("engine", ("mapreduce", "spark")),
        ("dfs.blocksize", ("33554432", "67108864")),
        ("profile", ("default", str(tmp_path / "mine.toml"))),
        ("workers", (1, 4)),
    ]
    assert spec.comparisons[0].where == {
        "workload": ("grep",),
        "size_bytes": (10**9,),
        "dfs.blocksize": ("33554432",),
    }
    trials = expand(
        replace(spec, seed=1),
        campaign_id="c",
        workloads=WORKLOADS,
        cluster_profile="default",
        cluster_workers=4,
    )
    counts = [len(aims_of([row], trials)) for row in spec.comparisons]
    assert counts == [2 * 3, 2 * 2 * 2 * 2 * 3, 2 * 2 * 2 * 3 * 2, 2 * 2 * 2 * 2 * 2]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            'of = "engine"',
            'of = "engin"',
            '14: comparison[0].of: "engin" cannot be compared; ... did you mean "engine"?',
        ),
        ('of = "engine"', 'of = "workload"', '14: comparison[0].of: "workload" cannot be .'),
        (
            '["mapreduce", "spark"]\nwhere',
            '["mapreduce"]\nwhere',
            "15: comparison[0].levels: only one; allowed: two or more levels, the base first",
        ),
        (
            '["mapreduce", "spark"]\nwhere',
            '["mapreduce", "mpi"]\nwhere',
            '15: comparison[0].levels[1]: no cell of this campaign has engine "mpi"; allowed: map.',
        ),
        ('["mapreduce", "spark"]\nwhere', '["spark", "spark"]\nwhere', "15: comparison[0].levels"),
        ('["mapreduce", "spark"]\nwhere', '["spark", "flink"]\nwhere', "15: comparison[0].levels"),
        ('workload = "grep", size', 'worklod = "grep", size', "16: comparison[0].where.worklod: ."),
        ('workload = "grep", size', 'engine = "spark", size', "16: comparison[0].where.engine: ."),
        (
            'size = ["1 GB"],',
            'size = ["3 GB"],',
            '16: comparison[0].where.size[0]: no cell of .. has size "3 GB"; allowed: 1 GB, 2 GB',
        ),
        ('= "32 MiB" }', '= "16 MiB" }', '16: comparison[0].where."dfs.blocksize"'),
        ("levels = [1, 4]", "levels = [1, 3]", "25: comparison[3].levels[1]: no cell of this ."),
        ('until = "3 %"', 'until = "3"', '4: campaign.until: "3" is not valid; allowed: a per.'),
        ('until = "3 %"', "until = 3", "4: campaign.until: 3 is not valid; allowed: a percent."),
        ('until = "3 %"', 'until = "60 %"', '4: campaign.until: "60 %" is not valid; allowed: .'),
        ('until = "3 %"', "at_most = 50", "4: campaign.at_most: it has no effect without until"),
        (
            'until = "3 %"',
            'until = "3 %"\nat_most = 8',
            "5: campaign.at_most: 8 runs, but starts .",
        ),
        ("starts = 3", "starts = 0", "3: campaign.starts: 0 is not allowed; allowed: a whole n."),
    ],
)
def test_a_wrong_declaration_is_said_with_its_line(
    old: str, new: str, words: str, tmp_path: Path
) -> None:
    (tmp_path / "mine.toml").write_text("")
    assert old in DECLARED
    with pytest.raises(SpecError) as caught:
        _with_settings(tmp_path, DECLARED.replace(old, new, 1))
    start, _, end = words.partition(".. ")
    lines = [
        line.removeprefix(f"{tmp_path / 'campaign.toml'}:")
        for line in caught.value.message.splitlines()
    ]
    assert len(lines) == 1
    assert lines[0].startswith(start.rstrip("."))
    assert end in lines[0]
