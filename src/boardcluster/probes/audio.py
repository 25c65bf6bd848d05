"""Encode the same sound with four encoders, and time each."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from boardcluster.errors import ProbeOutputError
from boardcluster.fetch.cache import writing
from boardcluster.probes.base import NodeTool, Probe, Site, figures_from
from boardcluster.probes.timing import time_program
from boardcluster.probes.waveform import write_wave
from boardcluster.records import ProbeFigure, ProbeMode

__all__ = ["ENCODERS", "PROBE", "Encoder", "figures_of"]

QUICK_AUDIO_SECONDS = 20
PAPER_AUDIO_SECONDS = 180
_PAPER_REPEATS = 3
_LIMIT_SECONDS = 1800.0
_INPUT = "audio.wav"


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoder:
    """A program that encodes."""

    tool: NodeTool
    """The program."""
    before: tuple[str, ...]
    """Words before the input file."""
    output: tuple[str, ...]
    """The output file, named as that program wants it."""
    repeats: int
    """How often it runs in quick mode: the faster the oftener."""

    @property
    def argv(self) -> list[str]:
        """The command line."""
        return [self.tool.program, *self.before, _INPUT, *self.output]


ENCODERS = (
    Encoder(
        tool=NodeTool(program="lame", package="lame"),
        before=("--quiet", "-h"),
        output=("out.mp3",),
        repeats=2,
    ),
    Encoder(
        tool=NodeTool(program="flac", package="flac"),
        before=("--totally-silent", "--best", "-f"),
        output=("-o", "out.flac"),
        repeats=5,
    ),
    Encoder(
        tool=NodeTool(program="opusenc", package="opus-tools"),
        before=("--quiet",),
        output=("out.opus",),
        repeats=3,
    ),
    Encoder(
        tool=NodeTool(program="wavpack", package="wavpack"),
        before=("-q", "-y", "-hhx2"),
        output=("-o", "out.wv"),
        repeats=2,
    ),
)
"""With the options of the test profiles that Gamess and Hernandez 2022, Fig. 21 runs."""


def figures_of(
    encoder: str, took_seconds: tuple[float, ...], *, audio_seconds: int
) -> list[ProbeFigure]:
    """Return what the times of one encoder say: the mean, and how much faster than the sound."""
    mean = fmean(took_seconds)
    conditions = {
        "encoder": encoder,
        "audio": f"{audio_seconds}s",
        "repeats": str(len(took_seconds)),
    }
    values = {
        "audio_encode_seconds": mean,
        "audio_encode_times_real_time": audio_seconds / mean,
    }
    return figures_from(values, conditions)


def _measure(site: Site) -> tuple[ProbeFigure, ...]:
    paper = site.mode is ProbeMode.PAPER
    audio_seconds = PAPER_AUDIO_SECONDS if paper else QUICK_AUDIO_SECONDS
    with tempfile.TemporaryDirectory(prefix="boardcluster-audio-") as folder:
        path = Path(folder) / _INPUT
        with writing(path):
            write_wave(path, seconds=audio_seconds)
        site.remote.put(path, f"{site.folder}/{_INPUT}")
    figures: list[ProbeFigure] = []
    for encoder in ENCODERS:
        name = encoder.tool.program
        site.tell(f"encoding {audio_seconds} s of sound with {name}")
        took = tuple(
            time_program(
                site.remote, encoder.argv, folder=site.folder, timeout_seconds=_LIMIT_SECONDS
            )
            for _ in range(_PAPER_REPEATS if paper else encoder.repeats)
        )
        output = f"{site.folder}/{encoder.output[-1]}"
        size = site.remote.run(["stat", "-c", "%s", output]).text.strip()
        if not size.isdecimal() or int(size) < audio_seconds * 1000:
            raise ProbeOutputError(f"{name} wrote {size} bytes for {audio_seconds} s of sound")
        figures.extend(figures_of(name, took, audio_seconds=audio_seconds))
    return tuple(figures)


PROBE = Probe(
    name="audio",
    area="cpu",
    summary="seconds to encode a sound as MP3, FLAC, Opus and WavPack",
    matches=("Gamess and Hernandez 2022, Fig. 22, a similar test: it encodes another sound",),
    tools=tuple(encoder.tool for encoder in ENCODERS),
    measure=_measure,
    quick_seconds=8,
    paper_seconds=120,
)
