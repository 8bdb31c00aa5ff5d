"""Compiled loops over records in bins: `codes[a, r]` is record r's bin in attribute a, `offsets[a]` the first of attribute a's bins among all.

Potentials lie table by table, (a, b) for a < b, each row by row, then one for each bin. Loops process records in stretches that stay in cache.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.compiling import compile_kernel

Bins = NDArray[np.int32]
Index = NDArray[np.int64]
Floats = NDArray[np.float32]

_STRETCH = 2048
_LANES = 16  # records that take their turns together
_LOG2_E, _SMALLEST_POWER = np.float32(1.4426950408889634), np.float32(-126.0)
# 2^f on [0, 1) by a polynomial, to 4e-6: far below the rounding error of float32 energies
_C0, _C1, _C2, _C3, _C4 = (np.float32(c) for c in (1.000002518, 0.693006621, 0.241427493, 0.052037429, 0.013520603))


@compile_kernel
def add_energies(codes: Bins, offsets: Index, potentials: Vector, out: Vector) -> None:  # pragma: no cover
    """out[r] += the potentials of record r's bins, and of every two of them."""
    attributes, rows = codes.shape
    single = len(potentials) - offsets[attributes]
    for first in range(0, rows, _STRETCH):
        last = min(first + _STRETCH, rows)
        for a in range(attributes):
            start = single + offsets[a]
            for r in range(first, last):
                out[r] += potentials[start + codes[a, r]]
        start = 0
        for a in range(attributes):
            for b in range(a + 1, attributes):
                width = offsets[b + 1] - offsets[b]
                for r in range(first, last):
                    out[r] += potentials[start + codes[a, r] * width + codes[b, r]]
                start += (offsets[a + 1] - offsets[a]) * width


@compile_kernel
def add_tables(codes: Bins, offsets: Index, weights: Vector, out: Vector) -> None:  # pragma: no cover
    """The records' weights added up in every table, and in every bin."""
    attributes, rows = codes.shape
    single = len(out) - offsets[attributes]
    for first in range(0, rows, _STRETCH):
        last = min(first + _STRETCH, rows)
        for a in range(attributes):
            start = single + offsets[a]
            for r in range(first, last):
                out[start + codes[a, r]] += weights[r]
        start = 0
        for a in range(attributes):
            for b in range(a + 1, attributes):
                width = offsets[b + 1] - offsets[b]
                for r in range(first, last):
                    out[start + codes[a, r] * width + codes[b, r]] += weights[r]
                start += (offsets[a + 1] - offsets[a]) * width


@compile_kernel
def add_energies_of_eight(codes: Bins, offsets: Index, potentials: Floats, out: Floats) -> None:  # pragma: no cover
    """`add_energies` for eight sets of potentials at once, (cells, 8), which fill a register; four cells of a record at a time."""
    attributes, rows = codes.shape
    single = len(potentials) - offsets[attributes]
    cells = np.empty((attributes, _STRETCH), np.uint32)  # a record's bin of one attribute, and its pairs with the later ones
    for first in range(0, rows, _STRETCH):
        part, sums = codes[:, first : first + _STRETCH], out[first : first + _STRETCH]
        count, start = part.shape[1], 0
        for a in range(attributes):
            own, shift = part[a], np.int32(single + offsets[a])
            for r in range(count):
                cells[a, r] = shift + own[r]
            for b in range(a + 1, attributes):
                other, found, width, shift = part[b], cells[b], np.int32(offsets[b + 1] - offsets[b]), np.int32(start)
                for r in range(count):
                    found[r] = shift + own[r] * width + other[r]
                start += (offsets[a + 1] - offsets[a]) * width
            b = a
            while b + 4 <= attributes:
                one, two, three, four = cells[b], cells[b + 1], cells[b + 2], cells[b + 3]
                for r in range(count):
                    i, j, k, m = one[r], two[r], three[r], four[r]
                    for n in range(8):
                        sums[r, n] += (potentials[i, n] + potentials[j, n]) + (potentials[k, n] + potentials[m, n])
                b += 4
            for rest in range(b, attributes):
                for r in range(count):
                    cell = cells[rest, r]
                    for n in range(8):
                        sums[r, n] += potentials[cell, n]


@compile_kernel
def add_tables_of_eight(codes: Bins, offsets: Index, weights: Floats, out: Floats) -> None:  # pragma: no cover
    """`add_tables` for eight weights of each record at once, (rows, 8)."""
    attributes, rows = codes.shape
    single = len(out) - offsets[attributes]
    for first in range(0, rows, _STRETCH):
        last = min(first + _STRETCH, rows)
        for a in range(attributes):
            start = single + offsets[a]
            for r in range(first, last):
                cell = start + codes[a, r]
                for k in range(8):
                    out[cell, k] += weights[r, k]
        start = 0
        for a in range(attributes):
            for b in range(a + 1, attributes):
                width = offsets[b + 1] - offsets[b]
                for r in range(first, last):
                    cell = start + codes[a, r] * width + codes[b, r]
                    for k in range(8):
                        out[cell, k] += weights[r, k]
                start += (offsets[a + 1] - offsets[a]) * width


@compile_kernel
def count_pairs(codes: Bins, offsets: Index, out: Matrix) -> None:  # pragma: no cover
    """How many records have each two bins, as a symmetric matrix over all bins; the margins on its diagonal."""
    attributes, rows = codes.shape
    for a in range(attributes):
        own = codes[a]
        for b in range(a, attributes - 1, 2):  # two tables at a time, so that one does not wait for the other's last count
            one, two, first, second = codes[b], codes[b + 1], offsets[b], offsets[b + 1]
            for r in range(rows):
                counts = out[offsets[a] + own[r]]
                counts[first + one[r]] += 1.0
                counts[second + two[r]] += 1.0
        if (attributes - a) % 2:
            last, first = codes[attributes - 1], offsets[attributes - 1]
            for r in range(rows):
                out[offsets[a] + own[r], first + last[r]] += 1.0
    for i in range(len(out)):
        for j in range(i):
            out[i, j] = out[j, i]


@compile_kernel
def refresh(codes: Bins, offsets: Index, pair: Floats, single: Floats, uniforms: Matrix) -> None:  # pragma: no cover
    """Gibbs sampling in place: attribute a of record r given its others, by uniforms[r, s·attributes + a] in sweep s.

    An attribute's energies begin with `single`, and every attribute adds its row of `pair` when it has its bin: those before it in the next sweep,
    those after it in this one. `pair` is zero within an attribute. Some records take turns together, so that they share the rows of `pair`.
    """
    attributes, rows = codes.shape
    bins, turns = len(single), uniforms.shape[1]
    energy, chosen = np.zeros((_LANES, bins), np.float32), np.empty(_LANES, np.int64)
    steps, powers = np.empty((bins, _LANES), np.float32), np.empty((bins, _LANES), np.int32)
    for start in range(0, rows, _LANES):
        lanes = min(_LANES, rows - start)
        for j in range(lanes):
            for k in range(bins):  # not `energy[j] = single`, which takes seconds to compile
                energy[j, k] = single[k]
        for a in range(attributes):
            for j in range(lanes):
                own, given = energy[j], pair[offsets[a] + codes[a, start + j]]
                for k in range(offsets[a]):
                    own[k] += given[k]
        a = -1
        for turn in range(turns):
            a = a + 1 if a + 1 < attributes else 0
            low, high = offsets[a], offsets[a + 1]
            _choose_bins(energy[:, low:high], uniforms[start : start + lanes, turn], steps, powers, chosen)
            first = high if turns - turn <= attributes else 0  # energies that are used again
            for j in range(lanes):
                codes[a, start + j] = chosen[j]
                for k in range(low, high):
                    energy[j, k] = single[k]
                own, given = energy[j, first:], pair[low + chosen[j], first:]
                for k in range(bins - first):
                    own[k] += given[k]


@compile_kernel
def _choose_bins(energy: Floats, uniforms: Vector, steps: Floats, powers: Bins, chosen: Index) -> None:  # pragma: no cover
    """chosen[j] = a bin of record j, with probability in proportion to exp(energy[j]). `steps` and `powers` are room for (bins, lanes)."""
    bins, scales = energy.shape[1], powers.view(np.float32)
    top, total = np.empty(_LANES, np.float32), np.zeros(_LANES, np.float32)
    for k in range(bins):
        for j in range(_LANES):
            steps[k, j] = energy[j, k]
    for j in range(_LANES):
        top[j], chosen[j] = steps[0, j], 0
    for k in range(1, bins):
        for j in range(_LANES):
            top[j] = max(top[j], steps[k, j])
    for k in range(bins):  # exp(x) = 2^i 2^f, f in [0, 1): so that it fills vector registers
        for j in range(_LANES):
            x = max((steps[k, j] - top[j]) * _LOG2_E, _SMALLEST_POWER)
            i = np.floor(x)
            powers[k, j] = (np.int32(i) + np.int32(127)) << np.int32(23)
            f = x - i
            steps[k, j] = _C0 + f * (_C1 + f * (_C2 + f * (_C3 + f * _C4)))
    for k in range(bins):
        for j in range(_LANES):
            total[j] += steps[k, j] * scales[k, j]
            steps[k, j] = total[j]
    for j in range(len(uniforms)):
        total[j] *= np.float32(uniforms[j])
    for k in range(bins - 1):
        for j in range(_LANES):
            chosen[j] += total[j] > steps[k, j]


@compile_kernel
def fit_margins(table: Matrix, rows: Vector, columns: Vector, rounds: int) -> None:  # pragma: no cover
    """Iterative proportional fitting of a table to both margins, in place."""
    for _ in range(rounds):
        for i in range(table.shape[0]):
            table[i] *= rows[i] / max(table[i].sum(), 1e-300)
        for j in range(table.shape[1]):
            table[:, j] *= columns[j] / max(table[:, j].sum(), 1e-300)


@compile_kernel
def find_cells(bins: Index, first: Index, last: Index, edges: Vector, uniforms: Vector, out: Index) -> None:  # pragma: no cover
    """The cell of each record of bin b, from first[b] to last[b] - 1, in which edges[first[b]] + uniform · (their distance) lies."""
    for r in range(len(bins)):
        low, count = first[bins[r]], last[bins[r]] - first[bins[r]]
        place = edges[low] + uniforms[r] * (edges[low + count] - edges[low])
        while count > 1:
            half = count // 2
            low = low + half if edges[low + half] <= place else low
            count -= half
        out[r] = low
