"""Sums around many points of rows that are mostly zeros and ones: A and b of the paper's plane, several times faster than from dense rows.

Rows with the same pattern of on/off columns (one-hot codes, flags) form a cell. A query adds up each cell's weights and numbers row by row, and the
products of on/off columns once a cell. `tests/unit/test_cells.py` compares the sums with the library's.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dpexplain import evaluation

FEWEST = 4  # rows a cell, below which cells do not pay
_MADE = {}


class Cells:
    """Rows in the order of their cells. `scale` s looks at all columns times s, as rows of [0, s]."""

    def __init__(self, rows, labels):
        rows = np.asarray(rows, dtype=np.float64)
        self.size, self.width = rows.shape
        on_off = np.array([_is_flag(column) for column in rows.T])
        self.flags, self.numbers = np.flatnonzero(on_off), np.flatnonzero(~on_off)
        order, self.starts = _group(rows[:, self.flags] > 0)
        first = rows[order[self.starts[:-1]]][:, self.flags]
        self.values = np.ascontiguousarray(rows[order][:, self.numbers].T)  # one row a number
        self.labels = np.asarray(labels, dtype=np.float64)[order]
        where, which = np.nonzero(first)
        self.columns, self.heights = self.flags[which], first[where, which]
        self.ends = np.searchsorted(where, np.arange(len(first) + 1))

    @classmethod
    def of(cls, data):
        """The rows of PrivateData, as the library has them; None for sparse rows."""
        labelled = evaluation.labelled_rows(data)
        return None if labelled is None else cls(labelled[:, :-1], labelled[:, -1])

    @classmethod
    def cells_if_useful(cls, data):
        """Cells of dense rows; None for sparse rows, and where cells hold few rows."""
        found = cls.remember(data, lambda: cls.of(data))
        return found if found is not None and len(found.starts) * FEWEST < found.size else None

    @staticmethod
    def remember(owner, make):
        """What was made for this owner last time; of the last owner only, because cells are a copy of the rows."""
        if id(owner) not in _MADE:
            _MADE.clear()
            _MADE[id(owner)] = (owner, make())
        return _MADE[id(owner)][1]

    def moments(self, point, weight, scale=1.0):
        """(A, b), sums over rows."""
        height, cap, width, reach = weight.profile
        if np.isfinite(width) or np.isfinite(reach):
            raise ValueError("cells know the stable weight only")
        raw, pull = np.zeros((self.width + 1, self.width + 1)), np.zeros(self.width + 1)
        point = np.asarray(point, dtype=np.float64)
        cells = (self.starts, self.ends, self.columns, self.heights)
        _add(self.values, self.labels, *cells, self.flags, self.numbers, point, (height, cap, scale), raw, pull)
        raw = raw + np.triu(raw, 1).T
        total, first, second = raw[-1, -1], raw[:-1, -1], raw[:-1, :-1]
        shared = np.outer(first, point)
        A = second - shared - shared.T + total * np.outer(point, point)
        return A * scale**2, (pull[:-1] - pull[-1] * point) * scale


def _is_flag(column):
    top = column.max(initial=0.0)
    return bool(np.all((column == 0) | (column == top)))


def _group(flags):
    """(order, starts): rows sorted by their pattern, and where each pattern begins; the last entry is the number of rows."""
    packed = np.packbits(flags, axis=1)
    padded = np.zeros((len(packed), -(-max(packed.shape[1], 1) // 8) * 8), dtype=np.uint8)
    padded[:, : packed.shape[1]] = packed
    words = padded.view(np.uint64)
    order = np.lexsort(words.T)
    changes = np.any(np.diff(words[order], axis=0) != 0, axis=1)
    return order, np.concatenate([[0], np.flatnonzero(changes) + 1, [len(flags)]])


compiled = njit(cache=True, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")


@compiled
def _dot(first, second):  # pragma: no cover
    total = 0.0
    for i in range(len(first)):
        total += first[i] * second[i]
    return total


@compiled
def _weigh(values, centre, apart, shape, alpha):  # pragma: no cover
    """α of rows whose on/off columns are √apart away."""
    height, cap, scale = shape
    alpha[:] = apart
    for k in range(len(centre)):
        for i in range(len(alpha)):
            alpha[i] += (values[k, i] - centre[k]) ** 2
    for i in range(len(alpha)):
        d = scale * np.sqrt(max(alpha[i], 0.0))
        alpha[i] = min(height, cap / (2 * d * (1 + d)))


@compiled
def _add(values, labels, starts, ends, columns, heights, flags, numbers, point, shape, raw, pull):  # pragma: no cover
    """Upper triangle of Σ α r rᵀ and Σ α y r, r = (x, 1)."""
    count, last, base, longest = len(numbers), len(point), 0.0, np.max(np.diff(starts))
    for j in flags:
        base += point[j] ** 2
    centre, ones, one = point[numbers], np.ones(longest), np.zeros(count)
    alphas, pulled, weighed = np.zeros(longest), np.zeros(longest), np.zeros(longest)
    for cell in range(len(starts) - 1):
        begin, end = starts[cell], starts[cell + 1]
        size, apart = end - begin, base
        for e in range(ends[cell], ends[cell + 1]):
            apart += heights[e] * (heights[e] - 2 * point[columns[e]])
        here, alpha = values[:, begin:end], alphas[:size]
        _weigh(here, centre, apart, shape, alpha)
        for i in range(size):
            pulled[i] = alpha[i] * labels[begin + i]
        total, pulls = _dot(alpha, ones), _dot(pulled[:size], ones)
        raw[last, last] += total
        pull[last] += pulls
        for k in range(count):
            for i in range(size):
                weighed[i] = alpha[i] * here[k, i]
            one[k] = _dot(weighed[:size], ones)
            raw[numbers[k], last] += one[k]
            pull[numbers[k]] += _dot(pulled[:size], here[k])
            for m in range(k, count):
                raw[numbers[k], numbers[m]] += _dot(weighed[:size], here[m])
        for e in range(ends[cell], ends[cell + 1]):
            i, h = columns[e], heights[e]
            raw[i, last] += h * total
            pull[i] += h * pulls
            for f in range(e, ends[cell + 1]):
                raw[i, columns[f]] += h * heights[f] * total
            for k in range(count):
                raw[min(i, numbers[k]), max(i, numbers[k])] += h * one[k]
