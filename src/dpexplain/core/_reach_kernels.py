"""The compiled loop behind `Reach.at`: a descent asks for it at most of its steps. `Reach.at_by_arrays` is the same by NumPy."""

from __future__ import annotations

import numpy as np

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.compiling import compile_kernel
from dpexplain.core.layout import Indices


@compile_kernel
def _sorted_gains(
    phi: Vector, sign: float, columns: Indices, starts: Indices, own: Vector, kinds: Indices, scale: float
) -> Vector:  # pragma: no cover
    """What each unit of the codes gains in φ·u, the least first. `kinds` of blocks: 0 where z has no category, 1 where it has, 2 if paired."""
    units, count = np.empty(2 * len(starts)), 0
    for b in range(len(starts)):
        last = starts[b + 1] if b + 1 < len(starts) else len(columns)
        leaving, largest = 0.0, -np.inf
        for j in range(starts[b], last):
            gain = sign * phi[columns[j]] * scale
            leaving -= gain * own[j]
            largest = max(largest, gain)
        whole = largest + leaving
        first = max(leaving, whole / 2) if kinds[b] == 2 else leaving if kinds[b] == 1 else whole
        units[count] = first
        count += 1
        if kinds[b] == 2:
            units[count] = whole - first
            count += 1
    _sort(units[:count])
    return units[:count]


@compile_kernel
def _sort(units: Vector) -> None:  # pragma: no cover
    """Shell's sort, in place: `np.sort` takes two seconds to compile."""
    gap = 1
    while 3 * gap < len(units):
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, len(units)):
            unit, j = units[i], i
            while j >= gap and units[j - gap] > unit:
                units[j] = units[j - gap]
                j -= gap
            units[j] = unit
        gap //= 3


@compile_kernel
def largest_pull(
    phi: Vector,
    offset: float,
    codes: tuple[Indices, Indices, Vector, Indices, float],
    numbers: tuple[Indices, Vector, Vector, Vector],
    pulls: Matrix,
) -> float:  # pragma: no cover
    """max over ±φ, units j and cells of pulls[j, cell] · (C_j + N(s⁺) + 1 ± c)."""
    columns, starts, own, kinds, scale = codes
    places, at, widths, edges = numbers
    best = -np.inf
    for sign in (1.0, -1.0):
        gains = _sorted_gains(phi, sign, columns, starts, own, kinds, scale)
        most, square = 0.0, 0.0
        for i in range(len(places)):
            slope = sign * phi[places[i]]
            most += max(-slope * at[i], slope * (widths[i] - at[i]))
            square += slope * slope
        length, total = np.sqrt(square), 1.0 + sign * offset
        for j in range(pulls.shape[0]):
            if j > 0:
                total += gains[len(gains) - j]
            for cell in range(pulls.shape[1]):
                best = max(best, pulls[j, cell] * (total + min(length * edges[cell + 1], most)))
    return best
