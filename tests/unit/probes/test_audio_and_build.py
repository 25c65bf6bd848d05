"""The sound that is encoded, its encoders, and what is built."""

from __future__ import annotations

import errno
import hashlib
import shutil
import wave
from pathlib import Path
from typing import Any

import pytest

from boardcluster.errors import CapacityError, ProbeOutputError
from boardcluster.probes import audio, build
from boardcluster.probes.base import NodeTool, Site
from boardcluster.probes.waveform import write_wave
from boardcluster.records import ProbeMode
from boardcluster.remote.local import LocalRemote


def site(folder: Path, **more: Any) -> Site:
    remote = LocalRemote("pi1")
    return Site(
        node="pi1",
        remote=remote,
        admin=remote,
        cores=2,
        memory_bytes=1 << 30,
        folder=str(folder),
        address="127.0.0.1",
        mode=ProbeMode.QUICK,
        tell=lambda _: None,
        **more,
    )


def test_the_sound_is_always_the_same(tmp_path: Path) -> None:
    write_wave(tmp_path / "a.wav", seconds=audio.QUICK_AUDIO_SECONDS)
    with wave.open(str(tmp_path / "a.wav")) as stream:
        frames = stream.readframes(stream.getnframes())
    assert hashlib.sha256(frames).hexdigest() == (
        "13f56113f48337736bae65efcba8903f2000a8704f2bf282f2295b851beafbbf"
    )


def test_the_sound_is_stereo_of_that_length(tmp_path: Path) -> None:
    write_wave(tmp_path / "a.wav", seconds=2)
    with wave.open(str(tmp_path / "a.wav")) as stream:
        assert stream.getparams()[:4] == (2, 2, 44_100, 88_200)
        data = stream.readframes(88_200)
    left, right = data[0::4] + data[1::4], data[2::4] + data[3::4]
    assert left != right
    assert len(set(data)) == 256


def test_the_figures_are_the_mean_and_the_ratio() -> None:
    seconds, ratio = audio.figures_of("lame", (1.0, 3.0), audio_seconds=20)
    assert (seconds.name, seconds.value) == ("audio_encode_seconds", 2.0)
    assert (ratio.name, ratio.value) == ("audio_encode_times_real_time", 10.0)
    assert seconds.conditions == {"encoder": "lame", "audio": "20s", "repeats": "2"}


def test_the_options_are_those_of_the_papers_profiles() -> None:
    assert [encoder.argv for encoder in audio.ENCODERS] == [
        ["lame", "--quiet", "-h", "audio.wav", "out.mp3"],
        ["flac", "--totally-silent", "--best", "-f", "audio.wav", "-o", "out.flac"],
        ["opusenc", "--quiet", "audio.wav", "out.opus"],
        ["wavpack", "-q", "-y", "-hhx2", "audio.wav", "-o", "out.wv"],
    ]


@pytest.mark.skipif(
    not all(shutil.which(encoder.tool.program) for encoder in audio.ENCODERS),
    reason="an encoder is missing here",
)
def test_every_encoder_encodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audio, "QUICK_AUDIO_SECONDS", 2)
    figures = audio.PROBE.measure(site(tmp_path))
    assert [figure.conditions["encoder"] for figure in figures[::2]] == [
        *("lame", "flac", "opusenc", "wavpack"),
    ]
    assert all(figure.value > 0 for figure in figures)


def test_an_encoder_that_writes_nothing_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lame = audio.ENCODERS[0]
    idle = audio.Encoder(
        tool=NodeTool(program="touch", package="coreutils"),
        before=(),
        output=lame.output,
        repeats=1,
    )
    monkeypatch.setattr(audio, "QUICK_AUDIO_SECONDS", 2)
    monkeypatch.setattr(audio, "ENCODERS", (idle,))
    with pytest.raises(ProbeOutputError, match="touch wrote 0 bytes for 2 s of sound"):
        audio.PROBE.measure(site(tmp_path))


def test_a_full_disk_of_the_driver_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, *, seconds: int) -> None:
        del path, seconds
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(audio, "write_wave", full)
    with pytest.raises(CapacityError, match=r"disk became full while writing .*audio\.wav"):
        audio.PROBE.measure(site(tmp_path))


def test_what_is_built_in_each_mode() -> None:
    quick, paper = (build.package_of(mode) for mode in (ProbeMode.QUICK, ProbeMode.PAPER))
    assert (quick.name, quick.repeats) == ("Lua 5.1.5", 1)
    assert (paper.name, paper.repeats) == ("Redis 6.2.14", 3)
    own = ["MALLOC=libc", "USE_SYSTEMD=no", "BUILD_TLS=no"]
    assert quick.argv(4) == ["make", "lua", "-j4", *own]
    assert paper.argv(4) == ["make", "-j4", *own]


@pytest.mark.parametrize("words", ["", "Lua 5.4.6  Copyright", "bash: not found", "lua 5.1.5 "])
def test_what_was_built_must_be_what_was_asked_for(words: str) -> None:
    package = build.package_of(ProbeMode.QUICK)
    build.check_version("Lua 5.1.5  Copyright (C) 1994-2012 Lua.org, PUC-Rio\n", package)
    with pytest.raises(ProbeOutputError, match=r"built as Lua 5\.1\.5 says"):
        build.check_version(words, package)


def test_the_source_is_the_drivers_and_pinned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[object, ...]] = []

    class EnoughError(Exception):
        pass

    def fetch(requirement: str, **named: object) -> Path:
        asked.append((requirement, named["sha256"], named["folder"], named["only_source"]))
        raise EnoughError

    monkeypatch.setattr(build, "fetch_from_pypi", fetch)
    with pytest.raises(EnoughError):
        build.PROBE.measure(site(tmp_path, settings={"cache": "/cache"}))
    assert asked == [(build.SOURCE, build.SOURCE_SHA256, Path("/cache/pypi"), True)]
