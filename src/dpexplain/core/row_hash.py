"""A public hash of each encoded row: what decides its shard and the order of its Shapley walk. `proofs/registration.md`.

A position changes when another row is removed; a hash of the row's own content does not. It hides nothing and needs no secret: it only has to be a
function of the row alone, spread evenly. Equal rows have equal hashes; where rows are to be spread evenly, equal ones are also counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpexplain.core.arrays import Matrix

Hashes: TypeAlias = NDArray[np.uint64]
"""One number below 2⁶⁴ for each row."""

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))
_SHARD = 3  # a purpose of hashes
_ENTRIES = 1 << 20  # that are looked at together


def hash_rows(rows: Any, purpose: int) -> Hashes:
    """A hash of each row's entries as float32; different purposes give unrelated hashes.

    Entries are multiplied by fixed odd numbers, one for each column, and added modulo 2⁶⁴ (multilinear hashing), then mixed.
    """
    width = rows.shape[1]
    factors = mix(np.arange(1, width + 1, dtype=np.uint64) + (np.uint64(purpose) << np.uint64(32))) | np.uint64(1)
    found, step = np.empty(len(rows), dtype=np.uint64), max(_ENTRIES // max(width, 1), 1)
    for start in range(0, len(rows), step):
        single = np.asarray(rows[start : start + step], dtype=np.float32) + np.float32(0)  # -0 becomes 0
        bits = np.ascontiguousarray(single).view(np.uint32).astype(np.uint64)
        bits ^= bits >> np.uint64(17)  # the low bits of most entries are zero: factors would shift them out
        found[start : start + step] = mix(bits @ factors + np.uint64(purpose))
    return found


def shard_keys(chunks: Callable[[], Iterator[Matrix]]) -> Hashes:
    """A number for each row that decides its shard: a hash of its entries, and of how many rows with equal entries and label come before it.

    Among equal rows only the count matters: when one of them is removed, the last key goes, and it does not matter whose it was. So the rows of
    each shard, without their order, are the same as before but for one row in one shard. Labels are not hashed: on another machine a model may
    answer with other last bits, and the row is to stay where it is paid for. `chunks` yields all rows in order, each followed by its label, each time.
    """
    hashes = np.concatenate([np.empty(0, dtype=np.uint64), *(hash_rows(chunk[:, :-1], _SHARD) for chunk in chunks())])
    ordered = np.sort(hashes)
    suspects = np.isin(hashes, ordered[1:][ordered[1:] == ordered[:-1]])  # rows that may equal another: their content is compared
    seen, start = dict[bytes, int](), 0
    for chunk in chunks() if suspects.any() else ():
        for i in np.flatnonzero(suspects[start : start + len(chunk)]):
            content = (chunk[i] + 0.0).tobytes()
            rank = seen[content] = seen.get(content, -1) + 1
            hashes[start + i] += np.uint64(rank)
        start += len(chunk)
    return mix(hashes)


def uniforms(hashes: Hashes, columns: int) -> Matrix:
    """(rows, columns) numbers in (0, 1) for each hash: SplitMix64 started there."""
    with np.errstate(over="ignore"):  # arithmetic modulo 2⁶⁴ is what is meant
        states = hashes[:, None] + np.arange(1, columns + 1, dtype=np.uint64) * _STEP
    return ((mix(states) >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def mix(state: Hashes) -> Hashes:
    """SplitMix64's mixing function (Steele, Lea & Flood 2014), a bijection."""
    with np.errstate(over="ignore"):
        state = state * _STEP
        for shift, factor in _MIX:
            state = (state ^ (state >> shift)) * factor
    return np.asarray(state ^ (state >> np.uint64(31)))
