"""Public pseudo-random numbers: a counter run through a mixing function. They protect nothing and are the same in every process.

Reference records are drawn with them. Drawing is post-processing of a paid release, so it needs no secret, and it makes a release a function of its
noisy statistics alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpexplain.core.arrays import Vector

_STEP = np.uint64(0x9E3779B97F4A7C15)
_TOGETHER = 1 << 14  # numbers that are mixed at a time: they stay in the processor's cache
_MIX = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))


@dataclass(slots=True)
class Uniforms:
    """An endless stream of numbers in (0, 1): SplitMix64 (Steele, Lea & Flood 2014) of 1, 2, 3, …"""

    _next: int = field(default=1)

    def take(self, count: int) -> Vector:
        out, spare = np.empty(count), np.empty(min(count, _TOGETHER), dtype=np.uint64)
        for start in range(0, count, _TOGETHER):
            part = out[start : start + _TOGETHER]
            _mix(self._next + start, part, spare[: len(part)])
        self._next += count
        return out


def _mix(first: int, out: Vector, spare: NDArray[np.uint64]) -> None:
    """The numbers from position `first` on."""
    with np.errstate(over="ignore"):  # arithmetic modulo 2⁶⁴ is what is meant
        state = np.arange(first, first + len(out), dtype=np.uint64)
        state *= _STEP
        for shift, factor in _MIX:
            np.right_shift(state, shift, out=spare)
            state ^= spare
            state *= factor
    np.right_shift(state, np.uint64(31), out=spare)
    state ^= spare
    state >>= np.uint64(12)
    out[:] = state
    out += 0.5
    out *= 2.0**-52
