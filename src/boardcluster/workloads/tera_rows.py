"""The rows of TeraGen and their checksum, computed here from the published algorithm.

Nothing is shared with the engines: whatever they write is compared with this account.

A row has 100 bytes. With R the row's 128-bit random number and N its number:

    bytes    content
    0-9      the first ten bytes of R, which are the key
    10-11    00 11
    12-43    N as 32 upper-case hexadecimal digits
    44-47    88 99 AA BB
    48-95    hexadecimal digits 20 to 31 of R, each four times
    96-99    CC DD EE FF

R is a linear congruential generator modulo 2^128: row N has the (N + 1)-th number after 0. The
checksum of a set of rows is the sum of the CRC-32 of each, whatever their order.
Source: Chris Nyberg's gensort 1.1 (ordinal.com), "binary" records; Apache Hadoop 3.4.2,
``org.apache.hadoop.examples.terasort``: GenSort, Random16, TeraValidate.

CRC-32 is affine over the bits of messages of one length: the CRC of a row is the CRC of an empty
row, XOR one table entry per varying byte. This makes the checksum of 10^7 rows a matter of a second
or two, so no further processes are needed. The tables themselves come from zlib.
"""

from __future__ import annotations

import zlib
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["KEY_BYTES", "ROW_BYTES", "checksum_of_rows", "checksum_text", "rows"]

ROW_BYTES = 100
KEY_BYTES = 10

_Words: TypeAlias = NDArray[np.uint64]

_MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645
_INCREMENT = 0x4A696D47726179524950202020202001
_MODULUS = 1 << 128
_LOW_64 = (1 << 64) - 1
_LOW_32 = np.uint64(0xFFFFFFFF)
_SHIFT_32 = np.uint64(32)

_BLOCK_ROWS = 1 << 15
"""Rows per step: the intermediate arrays of a step stay in a processor's cache."""

_DIGITS = np.frombuffer(b"0123456789ABCDEF", dtype=np.uint8)
_NUMBER_AT = 12
_REPEATED_AT = 48
_NUMBER_BYTES = 16
_FIXED = {10: bytes([0x00, 0x11]), 44: b"\x88\x99\xaa\xbb", 96: b"\xcc\xdd\xee\xff"}


def rows(first: int, count: int) -> NDArray[np.uint8]:
    """Return consecutive rows as an array of ``count`` times 100 bytes.

    Args:
        first: number of the first row, from 0; below 2^128.
        count: how many; all of them are in memory at once.
    """
    table = np.zeros((count, ROW_BYTES), dtype=np.uint8)
    for place, text in _FIXED.items():
        table[:, place : place + len(text)] = np.frombuffer(text, dtype=np.uint8)
    random = _bytes_of(*_random_numbers(first, count))
    table[:, :KEY_BYTES] = random[:, :KEY_BYTES]
    number = _bytes_of(*_row_numbers(first, count))
    table[:, _NUMBER_AT : _NUMBER_AT + 32] = _hexadecimal(number)
    table[:, _REPEATED_AT:96] = np.repeat(_hexadecimal(random[:, KEY_BYTES:]), 4, axis=1)
    return table


def checksum_of_rows(count: int) -> int:
    """Return the checksum of the rows 0 to ``count`` - 1: the sum of their CRC-32, modulo 2^128."""
    total = 0
    by_random, by_number = _tables()
    high, low = _random_numbers(0, min(count, _BLOCK_ROWS))
    multiplier, increment = _leap(_BLOCK_ROWS)
    for first in range(0, count, _BLOCK_ROWS):
        size = min(_BLOCK_ROWS, count - first)
        crc = np.full(size, zlib.crc32(_row_with(0, b"")), dtype=np.uint32)
        for place, column in enumerate(_bytes_of(high[:size], low[:size]).T):
            crc ^= by_random[place][column]
        for place, column in enumerate(_bytes_of(*_row_numbers(first, size)).T):
            crc ^= by_number[place][column]
        total += int(crc.sum(dtype=np.uint64))
        high, low = _affine(high, low, multiplier, increment)
    return total % _MODULUS


def checksum_text(checksum: int) -> str:
    """Return a checksum as TeraValidate prints it: hexadecimal, without leading zeros."""
    return f"{checksum:x}"


def _leap(steps: int) -> tuple[int, int]:
    """Return multiplier and increment of that many steps of the generator at once."""
    multiplier, increment = 1, 0
    one_multiplier, one_increment = _MULTIPLIER, _INCREMENT
    while steps:
        if steps & 1:
            increment = (increment * one_multiplier + one_increment) % _MODULUS
            multiplier = multiplier * one_multiplier % _MODULUS
        one_increment = one_increment * (one_multiplier + 1) % _MODULUS
        one_multiplier = one_multiplier * one_multiplier % _MODULUS
        steps >>= 1
    return multiplier, increment


def _random_numbers(first: int, count: int) -> tuple[_Words, _Words]:
    """Return the random numbers of consecutive rows, upper and lower halves."""
    start = _leap(first + 1)[1]  # the generator starts from 0
    high = np.array([start >> 64], dtype=np.uint64)
    low = np.array([start & _LOW_64], dtype=np.uint64)
    while len(low) < count:  # as many again, that many steps further on
        more_high, more_low = _affine(high, low, *_leap(len(low)))
        high = np.concatenate([high, more_high])
        low = np.concatenate([low, more_low])
    return high[:count], low[:count]


def _row_numbers(first: int, count: int) -> tuple[_Words, _Words]:
    """Return the numbers of consecutive rows, upper and lower halves."""
    low = np.arange(count, dtype=np.uint64) + np.uint64(first & _LOW_64)
    high = np.full(count, first >> 64, dtype=np.uint64)
    high += low < np.uint64(first & _LOW_64)  # those that wrapped around
    return high, low


def _affine(high: _Words, low: _Words, multiplier: int, increment: int) -> tuple[_Words, _Words]:
    """Return ``x * multiplier + increment`` modulo 2^128 of numbers given by their halves."""
    m_high, m_low = np.uint64(multiplier >> 64), np.uint64(multiplier & _LOW_64)
    product_high, product_low = _product(low, multiplier & _LOW_64)
    product_high += low * m_high + high * m_low
    result_low = product_low + np.uint64(increment & _LOW_64)
    result_high = product_high + np.uint64(increment >> 64) + (result_low < product_low)
    return result_high, result_low


def _product(words: _Words, factor: int) -> tuple[_Words, _Words]:
    """Return the 128 bits of 64-bit products, by the halves of the factors."""
    f_high, f_low = np.uint64(factor >> 32), np.uint64(factor & 0xFFFFFFFF)
    w_high, w_low = words >> _SHIFT_32, words & _LOW_32
    lowest = w_low * f_low
    middle = w_high * f_low + (lowest >> _SHIFT_32)
    other = w_low * f_high + (middle & _LOW_32)
    return w_high * f_high + (middle >> _SHIFT_32) + (other >> _SHIFT_32), words * np.uint64(factor)


def _bytes_of(high: _Words, low: _Words) -> NDArray[np.uint8]:
    """Return 128-bit numbers as rows of 16 bytes, most significant first."""
    pairs = np.stack([high, low], axis=1).astype(">u8")
    return pairs.view(np.uint8).reshape(len(low), _NUMBER_BYTES)


def _hexadecimal(numbers: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return rows of bytes as rows of upper-case digits."""
    nibbles = np.stack([numbers >> 4, numbers & 15], axis=2)
    return _DIGITS[nibbles].reshape(len(numbers), 2 * numbers.shape[1])


def _row_with(place: int, text: bytes) -> bytes:
    """Return a row with its fixed bytes, a text at one place, and zero everywhere else."""
    row = bytearray(ROW_BYTES)
    for fixed_place, fixed in _FIXED.items():
        row[fixed_place : fixed_place + len(fixed)] = fixed
    row[place : place + len(text)] = text
    return bytes(row)


def _table(place: int, texts: list[bytes]) -> NDArray[np.uint32]:
    """Return what each of 256 texts at one place changes in a row's CRC."""
    empty = zlib.crc32(_row_with(0, b""))
    return np.array([zlib.crc32(_row_with(place, text)) ^ empty for text in texts], dtype=np.uint32)


@cache
def _tables() -> tuple[list[NDArray[np.uint32]], list[NDArray[np.uint32]]]:
    """Return the tables of the bytes of the random number, and of the row's number."""
    digits = [f"{value:02X}".encode() for value in range(256)]
    repeated = [bytes([pair[0]] * 4 + [pair[1]] * 4) for pair in digits]
    values = [bytes([value]) for value in range(256)]
    by_random = [_table(place, values) for place in range(KEY_BYTES)]
    by_random += [_table(_REPEATED_AT + 8 * place, repeated) for place in range(6)]
    by_number = [_table(_NUMBER_AT + 2 * place, digits) for place in range(_NUMBER_BYTES)]
    return by_random, by_number
