"""Compiled inner loops over binary rows as bits: bit j % 64 of `rows[r, j // 64]` is x_j of row r.

Sums over rows at one distance are numbers of rows, which are exact in any order. For pairs of columns they are popcounts: rows are turned
into columns, 64 rows to a word, so that one vector instruction counts eight words. Kernels release the GIL.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from dpexplain.core.compiling import compile_kernel, widest_registers

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Indices = NDArray[Any]
Bits = NDArray[np.uint64]

WORD = 64  # columns in a word of a row, rows in a word of a column
LABEL_BITS = 38  # of a label in fixed point, the highest one for its sign
_LINE = 8  # words in a cache line, and in the widest vector register
_LINES = 31  # of a column that are counted together: 500 columns fit a cache, and an odd number spreads over its sets
_TILE = 4  # columns on each side of a tile of pairs: sixteen counts and eight operands fit the registers of AVX-512


def _generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.ctpop(arguments[0])


def _type_intrinsic(typing: Any, word: Any) -> Any:
    return types.int64(types.uint64), _generate


_ones: Any = intrinsic(_type_intrinsic)  # how many bits of a word are set: one instruction


@compile_kernel
def set_bits(starts: Integers, indices: Indices, width: int, first: int, last: int, rows: Bits) -> None:  # pragma: no cover
    """Set the bits of `rows`, which are all 0, from lists of ones. One more column is 1 for every row."""
    for r in range(first, last):
        rows[r, width // WORD] |= np.uint64(1) << np.uint64(width % WORD)
        for p in range(starts[r], starts[r + 1]):
            rows[r, indices[p] // WORD] |= np.uint64(1) << np.uint64(indices[p] % WORD)


@compile_kernel
def squared_distances(rows: Bits, point: Bits, first: int, last: int, out: Indices) -> None:  # pragma: no cover
    """out[r] = ‖x_r - point‖²: the number of columns that differ. The additional column, 1 in rows and 0 in the point, is not counted."""
    widest_registers()
    for r in range(first, last):
        differing = -1
        for w in range(point.shape[0]):
            differing += _ones(rows[r, w] ^ point[w])
        out[r] = differing


@compile_kernel
def add_distances(
    rows: Bits, labels: Bits, point: Bits, order: Integers, edges: Integers, weights: Array, first: int, last: int, out: Array
) -> None:  # pragma: no cover
    """Add Σ_d weights[d] Σ |u_i u_j| to out[i, j], i ≤ j, and Σ_d weights[d] Σ y |u_i| to its last column; |u| = x ⊕ point.

    The inner sums are over rows `order[edges[d] : edges[d + 1]]`, d is first … last-1. Only the product with the weight and the addition
    to `out` round.
    """
    columns = out.shape[0]
    size = -(-(columns + LABEL_BITS) // _TILE) * _TILE
    bits, counts = _on_lines(size), np.zeros((size, size), dtype=np.int64)
    for d in range(first, last):
        for start in range(edges[d], edges[d + 1], _LINES * _LINE * WORD):
            chosen = order[start : min(start + _LINES * _LINE * WORD, edges[d + 1])]
            _pack(rows, labels, point, chosen, columns, bits)
            _add_counts(bits, -(-chosen.shape[0] // (_LINE * WORD)) * _LINE, columns, counts)
        for i in range(columns):
            for j in range(i, columns):
                out[i, j] += weights[d] * counts[i, j]
            out[i, columns] += weights[d] * _total(counts[i, columns:])
            counts[i, i:] = 0


@compile_kernel
def _on_lines(columns: int) -> Bits:  # pragma: no cover
    """Scratch memory for words of columns. It starts at a cache line, because otherwise each load would touch two lines."""
    size = columns * _LINES * _LINE
    memory = np.zeros(size + _LINE, dtype=np.uint64)
    start = -(memory.ctypes.data // 8) % _LINE
    return memory[start : start + size].reshape(columns, _LINES * _LINE)


@compile_kernel
def _total(counts: Integers) -> int:  # pragma: no cover
    """Σ y from the number of labels that have each bit. The sign bit is added first, so that no partial sum exceeds 2⁶³."""
    total: int = -(counts[LABEL_BITS - 1] << (LABEL_BITS - 1))
    for b in range(LABEL_BITS - 1):
        total += counts[b] << b
    return total


@compile_kernel
def _pack(rows: Bits, labels: Bits, point: Bits, chosen: Integers, columns: int, bits: Bits) -> None:  # pragma: no cover
    """Bit t % 64 of bits[j, t // 64] is |u_j| of row `chosen[t]`, and 0 up to the line's end; the bits of labels follow as columns."""
    square = np.empty(WORD * _LINE, dtype=np.uint64)
    for start in range(0, chosen.shape[0], WORD * _LINE):
        some, word = chosen[start : start + WORD * _LINE], start // WORD
        for w in range(point.shape[0]):
            _read(rows, w, point[w], some, square)
            _transpose(square)
            _write(square, bits[w * WORD : min((w + 1) * WORD, columns)], word)
        _read(labels, 0, np.uint64(0), some, square)
        _transpose(square)
        _write(square, bits[columns : columns + LABEL_BITS], word)


@compile_kernel
def _read(rows: Bits, w: int, flip: Any, chosen: Integers, square: Bits) -> None:  # pragma: no cover
    """Copy word w of up to 512 rows to `square`: 64 rows below each other, the next 64 beside them."""
    if chosen.shape[0] < WORD * _LINE:
        square[:] = 0
    for t in range(chosen.shape[0]):
        square[t % WORD * _LINE + t // WORD] = rows[chosen[t], w] ^ flip


@compile_kernel
def _write(square: Bits, columns: Bits, word: int) -> None:  # pragma: no cover
    for j in range(columns.shape[0]):
        for lane in range(_LINE):
            columns[j, word + lane] = square[j * _LINE + lane]


@compile_kernel
def _transpose(square: Bits) -> None:  # pragma: no cover
    """Eight 64 x 64 squares of bits beside each other: exchange halves across the diagonal, then halves of these (Warren 2012, §7-3)."""
    widest_registers()
    _exchange(square, 32, 0x00000000FFFFFFFF)
    _exchange(square, 16, 0x0000FFFF0000FFFF)
    _exchange(square, 8, 0x00FF00FF00FF00FF)
    _exchange(square, 4, 0x0F0F0F0F0F0F0F0F)
    _exchange(square, 2, 0x3333333333333333)
    _exchange(square, 1, 0x5555555555555555)


@njit(inline="always")
def _exchange(square: Bits, half: int, low: int) -> None:  # pragma: no cover
    for start in range(0, WORD * _LINE, 2 * half * _LINE):
        above = square[start : start + half * _LINE]
        below = square[start + half * _LINE : start + 2 * half * _LINE]
        for k in range(half * _LINE):
            swap = ((above[k] >> np.uint64(half)) ^ below[k]) & np.uint64(low)
            above[k] ^= swap << np.uint64(half)
            below[k] ^= swap


@compile_kernel
def _add_counts(bits: Bits, words: int, columns: int, counts: Integers) -> None:  # pragma: no cover
    """counts[i, j] += |bits[i] ∧ bits[j]| over the first words, i ≤ j, for i < columns."""
    widest_registers()
    for i in range(0, columns, _TILE):
        a, b, c, d = bits[i], bits[i + 1], bits[i + 2], bits[i + 3]
        for j in range(i, bits.shape[0], _TILE):
            e, f, g, h = bits[j], bits[j + 1], bits[j + 2], bits[j + 3]
            ae = af = ag = ah = be = bf = bg = bh = ce = cf = cg = ch = de = df = dg = dh = 0
            for w in range(words):
                ae, af, ag, ah = (
                    ae + _ones(a[w] & e[w]),
                    af + _ones(a[w] & f[w]),
                    ag + _ones(a[w] & g[w]),
                    ah + _ones(a[w] & h[w]),
                )
                be, bf, bg, bh = (
                    be + _ones(b[w] & e[w]),
                    bf + _ones(b[w] & f[w]),
                    bg + _ones(b[w] & g[w]),
                    bh + _ones(b[w] & h[w]),
                )
                ce, cf, cg, ch = (
                    ce + _ones(c[w] & e[w]),
                    cf + _ones(c[w] & f[w]),
                    cg + _ones(c[w] & g[w]),
                    ch + _ones(c[w] & h[w]),
                )
                de, df, dg, dh = (
                    de + _ones(d[w] & e[w]),
                    df + _ones(d[w] & f[w]),
                    dg + _ones(d[w] & g[w]),
                    dh + _ones(d[w] & h[w]),
                )
            _add(counts[i], j, ae, af, ag, ah)
            _add(counts[i + 1], j, be, bf, bg, bh)
            _add(counts[i + 2], j, ce, cf, cg, ch)
            _add(counts[i + 3], j, de, df, dg, dh)


@njit(inline="always")
def _add(row: Integers, j: int, e: int, f: int, g: int, h: int) -> None:  # pragma: no cover
    row[j] += e
    row[j + 1] += f
    row[j + 2] += g
    row[j + 3] += h
