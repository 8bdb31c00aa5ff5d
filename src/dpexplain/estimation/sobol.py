"""Sobol' sequences without loading scipy.stats, which takes longer than all the rest of a small release.

Direction numbers are those of Joe and Kuo (2008) that SciPy is installed with; where its file is not found, SciPy computes the points.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpexplain.core.arrays import Matrix

_BITS = 30
_FILE = "_sobol_direction_numbers.npz"

Integers = NDArray[np.int64]


def sobol_points(dimensions: int, points: int) -> Matrix:
    """The first `points` of the unscrambled sequence in [0, 1); (points, dimensions)."""
    numbers = _direction_numbers()
    if numbers is None:
        return np.asarray(scipy.stats.qmc.Sobol(dimensions, scramble=False).random(points))
    return _points(_directions(dimensions, *numbers), points)


def _points(directions: Integers, points: int) -> Matrix:
    """Each point differs from the one before it by the direction of the lowest zero bit of its number (Gray code)."""
    found = np.zeros((points, len(directions)), dtype=np.int64)
    filled = 1
    while filled < points:  # point i < 2ᵏ, with the order reversed, and direction k give point 2ᵏ + i
        more = min(filled, points - filled)
        found[filled : filled + more] = found[filled - 1 :: -1][:more] ^ directions[:, filled.bit_length() - 1]
        filled += more
    return found / 2.0**_BITS


def _directions(dimensions: int, polynomials: Integers, starts: Integers) -> Integers:
    """(dimensions, bits) by Bratley and Fox's recurrence over each dimension's primitive polynomial."""
    found = np.zeros((dimensions, _BITS), dtype=np.int64)
    found[0] = 1
    for d in range(1, dimensions):
        polynomial = int(polynomials[d])
        degree = polynomial.bit_length() - 1
        row = [int(value) for value in starts[d, :degree]]
        for j in range(degree, _BITS):
            new = row[j - degree]
            for k in range(1, degree + 1):
                if polynomial >> (degree - k) & 1:
                    new ^= row[j - k] << k
            row.append(new)
        found[d] = row[:_BITS]
    return found << np.arange(_BITS - 1, -1, -1)


@lru_cache(maxsize=1)
def _direction_numbers() -> tuple[Integers, Integers] | None:
    """(polynomials, first numbers) of every dimension; None where SciPy does not have them as a file."""
    spec: Any = find_spec("scipy")
    try:
        with np.load(Path(spec.origin).parent / "stats" / _FILE) as stored:
            return stored["poly"].astype(np.int64), stored["vinit"].astype(np.int64)
    except (OSError, KeyError, ValueError, AttributeError):
        return None
