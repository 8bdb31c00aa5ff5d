"""Exact baseline Shapley values of a sum of decision trees, without asking about mixtures (interventional TreeSHAP, Lundberg et al. 2020).

A leaf that a mixture of z and x reaches whenever the features in Z are z's and those in X are x's is worth its value v to that unanimity game:
each feature in Z gets v (|Z|-1)! |X|!/(|Z|+|X|)!, each in X loses v |Z|! (|X|-1)!/(|Z|+|X|)!. Columns that belong to one feature, such as those of a
one-hot code, move together (Laberge & Pequignot 2022).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.compiling import compile_kernel

Index = NDArray[np.int64]
Rows = NDArray[np.float32]
_DEEPEST = 1 << 10


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """Nodes of all trees in one list: a row goes left where its column is at most the threshold; leaves have no children (-1)."""

    left: Index
    right: Index
    column: Index
    threshold: Vector
    value: Vector
    roots: Index

    def predict(self, rows: Rows) -> Vector:
        """The sum over trees of each row's leaf."""
        out = np.zeros(len(rows))
        _predict(self.left, self.right, self.column, self.threshold, self.value, self.roots, rows, out)
        return out


def tree_values(trees: Trees, owner: Index, point: Rows, rows: Rows) -> Matrix:
    """φ(x) of each row, (rows, d); `owner` says to which of the d features a column belongs."""
    players = int(owner.max()) + 1
    out = np.zeros((len(rows), players))
    shares = _shares(players)
    nodes = (trees.left, trees.right, trees.column, trees.threshold, trees.value, trees.roots)
    _values(*nodes, owner, point, np.ascontiguousarray(rows), shares, out)
    return out


def _shares(players: int) -> Matrix:
    """(a - 1)! b!/(a + b)! = 1/(a C(a + b, a)) for a ≥ 1, a + b ≤ d."""
    out = np.zeros((players + 1, players + 1))
    for a in range(1, players + 1):
        for b in range(players + 1 - a):
            out[a, b] = 1 / (a * comb(a + b, a))
    return out


@compile_kernel
def _predict(
    left: Index, right: Index, column: Index, threshold: Vector, value: Vector, roots: Index, rows: Rows, out: Vector
) -> None:  # pragma: no cover
    for r in range(rows.shape[0]):
        for root in roots:
            node = root
            while left[node] >= 0:
                node = left[node] if rows[r, column[node]] <= threshold[node] else right[node]
            out[r] += value[node]


@compile_kernel
def _values(
    left: Index,
    right: Index,
    column: Index,
    threshold: Vector,
    value: Vector,
    roots: Index,
    owner: Index,
    point: Rows,
    rows: Rows,
    shares: Matrix,
    out: Matrix,
) -> None:  # pragma: no cover
    side = np.zeros(out.shape[1], np.int8)  # of each feature on the path: 1 z's, 2 x's, 0 not decided
    decided = np.empty(out.shape[1], np.int64)
    waiting = np.empty((_DEEPEST, 3), np.int64)  # node, feature that takes x's side there, how many were decided before
    for r in range(rows.shape[0]):
        x = rows[r]
        for root in roots:
            count, mine, theirs, top = 0, 0, 0, 1
            waiting[0, 0], waiting[0, 1], waiting[0, 2] = root, -1, 0
            while top > 0:
                top -= 1
                while count > waiting[top, 2]:
                    count -= 1
                    if side[decided[count]] == 1:
                        mine -= 1
                    else:
                        theirs -= 1
                    side[decided[count]] = 0
                node, player = waiting[top, 0], waiting[top, 1]
                if player >= 0:
                    side[player], decided[count] = 2, player
                    count, theirs = count + 1, theirs + 1
                while left[node] >= 0:
                    at = column[node]
                    player, x_left, z_left = owner[at], x[at] <= threshold[node], point[at] <= threshold[node]
                    if x_left != z_left and side[player] == 0:
                        waiting[top, 0], waiting[top, 1], waiting[top, 2] = left[node] if x_left else right[node], player, count
                        side[player], decided[count] = 1, player
                        top, count, mine = top + 1, count + 1, mine + 1
                    goes_left = x_left if side[player] == 2 else z_left
                    node = left[node] if goes_left else right[node]
                for k in range(count):
                    if side[decided[k]] == 1:
                        out[r, decided[k]] += value[node] * shares[mine, theirs]
                    else:
                        out[r, decided[k]] -= value[node] * shares[theirs, mine]
            while count > 0:
                count -= 1
                side[decided[count]] = 0
