"""Public pseudo-random numbers: a counter run through a mixing function. They protect nothing and are the same in every process.

Reference records are drawn with them. Drawing is post-processing of a paid release, so it needs no secret, and it makes a release a function of its
noisy statistics alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dpexplain.core.arrays import Vector

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))


@dataclass(slots=True)
class Uniforms:
    """An endless stream of numbers in (0, 1): SplitMix64 (Steele, Lea & Flood 2014) of 1, 2, 3, …"""

    _next: int = field(default=1)

    def take(self, count: int) -> Vector:
        with np.errstate(over="ignore"):  # arithmetic modulo 2⁶⁴ is what is meant
            state = np.arange(self._next, self._next + count, dtype=np.uint64) * _STEP
            for shift, factor in _MIX:
                state = (state ^ (state >> shift)) * factor
        self._next += count
        mixed = state ^ (state >> np.uint64(31))
        return ((mixed >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
