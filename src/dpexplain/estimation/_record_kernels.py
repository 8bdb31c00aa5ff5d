"""Compiled loops behind `coded_rows.py`: passes over all records, in stretches that stay in cache.

`cells[j, r]` is record r's cell in joint code j, whose values start at `starts[j]` in a table of all codes; `numbers[j, r]` are its numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.compiling import compile_kernel, widest_registers

Joint = NDArray[np.uint16] | NDArray[np.uint32]  # unsigned: a signed index may count from the end, which takes longer
Cells = NDArray[np.int32]
Places = NDArray[np.uint32]
Index = NDArray[np.intp]
Floats = NDArray[np.float32]

_STRETCH = 1024
_ANY_ORDER = {"reassoc", "contract", "nsz"}  # sums may be taken in any order


def _look_up(
    cells: Joint, starts: Index, table: Vector, numbers: Floats, slopes: Vector, first: int, out: Vector
) -> None:  # pragma: no cover
    """out += the sum of each record's values in the table, and slopes · numbers; for the stretch of records from `first` on."""
    widest_registers()
    last = first + len(out)
    for j in range(len(cells)):
        own, values = cells[j, first:last], table[starts[j] : starts[j + 1]]
        for r in range(len(own)):
            out[r] += values[own[r]]
    for j in range(len(numbers)):
        number, slope = numbers[j, first:last], slopes[j]
        if slope != 0.0:
            for r in range(len(number)):
                out[r] += slope * number[r]


_look_up = compile_kernel(_look_up, _ANY_ORDER)


@compile_kernel
def look_up(cells: Joint, starts: Index, table: Vector, numbers: Floats, slopes: Vector, out: Vector) -> None:  # pragma: no cover
    """out += the sum of each record's values in the table, and slopes · numbers."""
    for first in range(0, len(out), _STRETCH):
        _look_up(cells, starts, table, numbers, slopes, first, out[first : first + _STRETCH])


@compile_kernel
def measure(
    cells: Joint, starts: Index, table: Vector, numbers: Floats, slopes: Vector, squares: Vector, own: float, out: Floats
) -> None:  # pragma: no cover
    """out = the root of own + squares + what `look_up` finds, or 0 where that is negative."""
    scratch = np.empty(_STRETCH)
    for first in range(0, len(out), _STRETCH):
        square = squares[first : first + _STRETCH]
        found = scratch[: len(square)]
        for r in range(len(found)):
            found[r] = square[r] + own
        _look_up(cells, starts, table, numbers, slopes, first, found)
        for r in range(len(found)):
            out[first + r] = np.sqrt(max(found[r], 0.0))


def add_up(
    cells: Joint, starts: Index, numbers: Floats, weights: Vector, values: Vector, table: Matrix, out: Matrix
) -> None:  # pragma: no cover
    """Weights, and weights times values, added up in each cell, (cells, 2), and times the numbers, (numbers, 2)."""
    widest_registers()
    scratch = np.empty(_STRETCH)
    for first in range(0, len(weights), _STRETCH):
        own, value = weights[first : first + _STRETCH], values[first : first + _STRETCH]
        last, both = first + len(own), scratch[: len(own)]
        for r in range(len(own)):
            both[r] = own[r] * value[r]
        for j in range(len(cells)):
            cell, sums = cells[j, first:last], table[starts[j] : starts[j + 1]]
            for r in range(len(own)):
                sums[cell[r], 0] += own[r]
                sums[cell[r], 1] += both[r]
        for j in range(len(numbers)):
            number, one, two = numbers[j, first:last], 0.0, 0.0
            for r in range(len(own)):
                one += own[r] * number[r]
                two += both[r] * number[r]
            out[j, 0] += one
            out[j, 1] += two


add_up = compile_kernel(add_up, _ANY_ORDER)


def bend(
    cells: Joint, starts: Index, values: Vector, numbers: Floats, slopes: Vector, weights: Vector, table: Matrix, out: Matrix
) -> None:  # pragma: no cover
    """Weights times what `look_up` finds added up in each cell, (cells, 1), and times the numbers, (numbers, 1)."""
    widest_registers()
    scratch = np.empty(_STRETCH)
    for first in range(0, len(weights), _STRETCH):
        own = weights[first : first + _STRETCH]
        last, along = first + len(own), scratch[: len(own)]
        along[:] = 0.0
        _look_up(cells, starts, values, numbers, slopes, first, along)
        for r in range(len(own)):
            along[r] *= own[r]
        for j in range(len(cells)):
            cell, sums = cells[j, first:last], table[starts[j] : starts[j + 1], 0]
            for r in range(len(own)):
                sums[cell[r]] += along[r]
        for j in range(len(numbers)):
            number, total = numbers[j, first:last], 0.0
            for r in range(len(own)):
                total += along[r] * number[r]
            out[j, 0] += total


bend = compile_kernel(bend, _ANY_ORDER)


def localise(weights: Vector | Floats, base: Vector, negligible: float, out: Vector) -> float:  # pragma: no cover
    """out = weights times base, without those below a share of the largest, divided by their sum, which is returned; nothing is divided by zero."""
    widest_registers()
    largest, total = 0.0, 0.0
    for r in range(len(out)):
        out[r] = weights[r] * base[r]
        largest = max(largest, out[r])
    limit = negligible * largest
    for r in range(len(out)):
        out[r] = out[r] if out[r] > limit else 0.0
        total += out[r]
    if total > 0:
        scale = 1 / total
        for r in range(len(out)):
            out[r] *= scale
    return total


localise = compile_kernel(localise, _ANY_ORDER)


def _sum_above(share: Vector, limit: float) -> tuple[float, float]:  # pragma: no cover
    """(the sum of the shares of at least `limit`, how many there are)."""
    widest_registers()
    heavy, above = 0.0, 0.0
    for r in range(len(share)):
        inside = 1.0 if share[r] >= limit else 0.0
        heavy += inside * share[r]
        above += inside
    return heavy, above


_sum_above = compile_kernel(_sum_above, _ANY_ORDER)


@compile_kernel
def thin(share: Vector, count: int, positions: Index, times: Vector) -> int:  # pragma: no cover
    """Fills in positions and times, and returns how many there are (`coded_rows.thin`)."""
    total, _ = _sum_above(share, 0.0)
    limit, known = total / count, -1.0
    for _ in range(4):  # each round finds rows that are above what is left for the others
        heavy, above = _sum_above(share, limit)
        if above == known or above >= count:
            break
        limit, known = (total - heavy) / (count - above), above
    scale, reached, found = 1 / max(limit, 1e-300), 0.5, 0
    for r in range(len(share)):
        kept = min(share[r] * scale, 1.0)
        reached += kept
        if reached >= 1.0 and found < len(positions):
            reached -= 1.0
            positions[found], times[found] = r, 1 / kept
            found += 1
    return found


@compile_kernel
def fill_table(places: Places, values: Vector, out: Vector) -> None:  # pragma: no cover
    """out = for each joint cell, the sum of the values at its places."""
    for c in range(len(places)):
        total = 0.0
        for i in range(places.shape[1]):
            total += values[places[c, i]]
        out[c] = total


@compile_kernel
def add_margins(places: Places, table: Matrix, out: Matrix) -> None:  # pragma: no cover
    """Each joint cell's values, (cells, K), added to its places, (places, K)."""
    for c in range(len(places)):
        for i in range(places.shape[1]):
            place = places[c, i]
            for k in range(table.shape[1]):
                out[place, k] += table[c, k]


@compile_kernel
def add_pairs(cells: Cells, weights: Vector, numbers: Matrix, pairs: Matrix, mixed: Matrix) -> None:  # pragma: no cover
    """Weights added up in every two cells of a record, and weights · numbers in each of its cells; both have a row for each cell.

    `cells`, numbered over all codes, and `numbers` have a row for each record. Of `pairs`, the cells of a later code come second.
    """
    count, codes = cells.shape
    for r in range(count):
        weight = weights[r]
        for a in range(codes):
            first = np.uint32(cells[r, a])
            for b in range(a, codes):
                pairs[first, np.uint32(cells[r, b])] += weight
            for j in range(numbers.shape[1]):
                mixed[first, j] += weight * numbers[r, j]


@compile_kernel
def add_values(cells: Cells, values: Matrix, out: Matrix) -> None:  # pragma: no cover
    """Values of each record, (records, K), added up in each of its cells, (cells, K)."""
    count, codes = cells.shape
    for r in range(count):
        for a in range(codes):
            cell = cells[r, a]
            for k in range(values.shape[1]):
                out[cell, k] += values[r, k]


@compile_kernel
def add_cells(cells: Cells, values: Vector, out: Vector) -> None:  # pragma: no cover
    """out += the sum of the values of each record's cells."""
    for r in range(len(out)):
        for a in range(cells.shape[1]):
            out[r] += values[cells[r, a]]
