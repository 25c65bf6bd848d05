"""The sound that is encoded: always the same bytes, made of whole numbers only."""

from __future__ import annotations

import wave
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing

__all__ = ["RATE_HERTZ", "write_wave"]

RATE_HERTZ = 44_100
_CHANNELS = 2
_SAMPLE_BYTES = 2
_SEED = 2022
_NOTES_MILLIHERTZ = (110_000, 146_832, 174_614, 220_000, 261_626, 329_628, 440_000, 523_251)
_NOTE_SAMPLES = RATE_HERTZ // 4
_PEAK = 32_767

Samples = numpy.typing.NDArray[np.int64]


def _triangle(phase: Samples) -> Samples:
    """Return a triangle wave of -16384 to 16384 from a phase in millionths of a period."""
    turned = phase % 1_000_000
    return np.asarray(np.abs(turned * 65_536 // 1_000_000 - 32_768) - 16_384, dtype=np.int64)


def _channel(place: Samples, *, first: int, noise: Samples) -> Samples:
    """One channel: a melody with overtones that fades within each note, a bass, and hiss."""
    note = place // _NOTE_SAMPLES
    notes = np.array(_NOTES_MILLIHERTZ, dtype=np.int64)
    pitch = notes[(note * 5 + first) % len(notes)]
    phase = place * pitch * 10 // 441  # 1,000 / 44,100: thousandths of hertz to millionths
    fade = _NOTE_SAMPLES - place % _NOTE_SAMPLES
    voice = (_triangle(phase) + _triangle(phase * 3) // 3 + _triangle(phase * 5) // 7) * fade
    bass = _triangle(place * notes[0] * 5 // 441)
    mixed = voice // (_NOTE_SAMPLES * 2) + bass // 4 + noise
    return np.asarray(np.clip(mixed, -_PEAK, _PEAK), dtype=np.int64)


def _samples(seconds: int) -> Iterator[bytes]:
    """Yield 16-bit samples, channels in turn, second by second.

    A minute at once would take 300 MB of memory. ``random_raw`` is the same in every numpy.
    """
    source = np.random.PCG64(_SEED)
    for second in range(seconds):
        place = np.arange(second * RATE_HERTZ, (second + 1) * RATE_HERTZ, dtype=np.int64)
        raw = source.random_raw(RATE_HERTZ * _CHANNELS)
        noise = (raw >> np.uint64(53)).astype(np.int64) - 1024
        parts = [
            _channel(place, first=3 * channel, noise=noise[channel::_CHANNELS])
            for channel in range(_CHANNELS)
        ]
        yield np.stack(parts, axis=1).astype("<i2").tobytes()


def write_wave(path: Path, *, seconds: int) -> None:
    """Write so many seconds of sound, stereo, 16 bits, 44.1 kHz.

    Raises:
        OSError: the file cannot be written.
    """
    with wave.open(str(path), "wb") as stream:
        stream.setnchannels(_CHANNELS)
        stream.setsampwidth(_SAMPLE_BYTES)
        stream.setframerate(RATE_HERTZ)
        for samples in _samples(seconds):
            stream.writeframes(samples)
