"""Rules of the source that ruff and mypy do not check."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "boardcluster"
MODULES = sorted(PACKAGE.rglob("*.py"))
FUNCTION_LINES_MAX = 70
CLI_LINES_MAX = 200
CLI_OPTIONS_MAX = 12

# Programs that are run, not imported: nobody takes a name from them.
PROGRAMS = {
    *("__main__.py", "remote/node_agent.py", "remote/nodefacts.py", "telemetry/agent.py"),
    "telemetry/relay.py",
    "cluster/limits/core_watcher.py",
}
MAY_START_PROGRAMS = {
    *("remote/gate.py", "remote/node_agent.py", "remote/nodefacts.py"),
    "services/http/faulting.py",  # runs on nodes
    *(f"services/galera/{name}.py" for name in ("auditing", "checking", "driving")),
    "services/gluster/faulting.py",
    "services/provision/node/system.py",
}

MAY_START_PROCESSES = {"report/parallel_map.py"}
"""At the edge: the same pure work on many things (docs/decisions/0025-analysis-and-report.md)."""

MAY_BE_ASYNCHRONOUS = {"web/app.py"}
"""What serves many listeners at once (docs/decisions/0045-dashboard.md)."""

UNITS = {"seconds", "bytes", "watts", "joules", "celsius", "hertz", "mib", "ticks", "ns"}
DURATION = re.compile(r"(^|_)(timeout|duration|delay|elapsed|grace|patience|deadline)$")


def place(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=str(path))


def functions(module: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def top_level_names(module: ast.Module) -> set[str]:
    names: set[str] = set()
    body = [*module.body]
    for node in module.body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            body += node.body  # loaded when they are used, by the module's __getattr__
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names.update(target.id for target in targets if isinstance(target, ast.Name))
    return names


def declared(module: ast.Module) -> list[str] | None:
    for node in module.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [str(name) for name in ast.literal_eval(node.value)]
    return None


def called(node: ast.Call) -> str:
    return ast.unparse(node.func)


def imported(module: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


def test_the_package_is_there() -> None:
    assert len(MODULES) > 50


@pytest.mark.parametrize("path", MODULES, ids=place)
def test_public_names_stand_in_all_and_exist(path: Path) -> None:
    module = tree(path)
    names = declared(module)
    if names is None:
        assert place(path) in PROGRAMS or len(module.body) <= 1, "no __all__"
        return
    missing = set(names) - top_level_names(module)
    assert not missing, f"in __all__ but not there: {missing}"
    own = {
        node.name
        for node in module.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    }
    unlisted = own - set(names)
    assert not unlisted, f"public by name, but not in __all__: {unlisted}"


def test_rooms_take_from_each_other_only_what_is_public() -> None:
    public = {}
    for path in MODULES:
        dotted = ".".join(("boardcluster", *path.relative_to(PACKAGE).with_suffix("").parts))
        public[dotted.removesuffix(".__init__")] = set(declared(tree(path)) or ())
    taken = [
        f"{place(path)}: {node.module}.{alias.name}"
        for path in MODULES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ImportFrom) and node.module in public
        for alias in node.names
        if alias.name not in public[node.module] and f"{node.module}.{alias.name}" not in public
    ]
    assert [row for row in taken if not row.endswith(".__version__")] == []


@pytest.mark.parametrize("path", sorted((PACKAGE / "cli").glob("*.py")), ids=place)
def test_the_command_line_is_thin(path: Path) -> None:
    """It parses, calls and prints: what takes more room belongs into another room."""
    assert len(path.read_text().splitlines()) <= CLI_LINES_MAX
    many = {
        node.name: options
        for node in functions(tree(path))
        if (options := ast.unparse(node.args).count("Option")) > CLI_OPTIONS_MAX
    }
    assert not many, f"more than {CLI_OPTIONS_MAX} options, where an object would do: {many}"


@pytest.mark.parametrize("path", MODULES, ids=place)
def test_functions_are_short(path: Path) -> None:
    long = {
        node.name: (node.end_lineno or 0) - node.lineno + 1
        for node in functions(tree(path))
        if (node.end_lineno or 0) - node.lineno + 1 > FUNCTION_LINES_MAX
    }
    assert not long, f"more than {FUNCTION_LINES_MAX} lines: {long}"


@pytest.mark.parametrize("path", MODULES, ids=place)
def test_programs_are_started_in_one_place_and_without_a_shell(path: Path) -> None:
    module = tree(path)
    if place(path) not in MAY_START_PROGRAMS:
        assert "subprocess" not in imported(module), "use boardcluster.remote.gate"
    allowed = {"multiprocessing"} if place(path) in MAY_START_PROCESSES else set()
    allowed |= {"asyncio"} if place(path) in MAY_BE_ASYNCHRONOUS else set()
    refused = {"asyncio", "multiprocessing", "pty"} - allowed
    assert not imported(module) & refused, "see DESIGN, decision 8"
    for node in ast.walk(module):
        if isinstance(node, ast.Call):
            assert not re.fullmatch(r"os\.(system|popen|exec\w+|spawn\w+|fork\w*)", called(node))
            assert "shell" not in {word.arg for word in node.keywords}


@pytest.mark.parametrize("path", MODULES, ids=place)
def test_only_the_command_line_prints(path: Path) -> None:
    if place(path).startswith("cli/"):
        return
    calls = [called(node) for node in ast.walk(tree(path)) if isinstance(node, ast.Call)]
    assert "print" not in calls


@pytest.mark.parametrize("path", MODULES, ids=place)
def test_no_module_is_a_drawer_for_everything(path: Path) -> None:
    parts = {part.removesuffix(".py") for part in path.relative_to(PACKAGE).parts}
    assert not parts & {"util", "utils", "helper", "helpers", "common", "misc"}


def quantities(module: ast.Module) -> Iterator[tuple[str, str]]:
    """Every field, argument and variable that has a type: its name and the type in words."""
    for node in ast.walk(module):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, ast.unparse(node.annotation)
        elif isinstance(node, ast.arg) and node.annotation is not None:
            yield node.arg, ast.unparse(node.annotation)


@pytest.mark.parametrize("path", MODULES, ids=place)
def test_units_stand_last_in_names(path: Path) -> None:
    for name, kind in quantities(tree(path)):
        words = name.strip("_").lower().split("_")
        assert len(words) == 1 or words[0] not in UNITS or "per" in words, f"{name}: unit first"
        # The names of options are what a person types.
        if not place(path).startswith("cli/") and re.search(r"\b(int|float)\b", kind):
            assert not DURATION.search(name), f"{name}: {kind} needs a unit, such as _seconds"


def test_each_class_name_is_used_once() -> None:
    """So that a name in a message, a page or a search means one thing."""
    places: dict[str, list[str]] = {}
    for path in MODULES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(f"{place(path)}:{node.lineno}")
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


@pytest.mark.parametrize("path", MODULES, ids=place)
def test_docstrings_say_the_thing_themselves(path: Path) -> None:
    """One that begins with "See" only sends its reader elsewhere."""
    sent_away = [
        f"{node.value.value.splitlines()[0]} (line {node.lineno})"
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        and node.value.value.lstrip().startswith("See ")
    ]
    assert not sent_away


CHECKS = sorted((PACKAGE / "doctor" / "checks").glob("[!_]*.py"))


@pytest.mark.parametrize("path", CHECKS, ids=lambda path: path.stem)
def test_each_check_of_the_doctor_has_a_test(path: Path) -> None:
    """One that always says that all is well would else be found by nobody."""
    tests = "".join(each.read_text() for each in ROOT.glob("tests/unit/doctor/test_*.py"))
    names = (path.stem, *re.findall(r'name_on_boards="(\w+)"', path.read_text()))
    assert [name for name in names if f'"{name}"' not in tests] == []
