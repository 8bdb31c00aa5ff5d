"""Exact baseline Shapley values of a sum of decision trees, without asking about mixtures (interventional TreeSHAP, Lundberg et al. 2020).

A leaf that a mixture of z and x reaches whenever the features in Z are z's and those in X are x's adds a unanimity game of value v:
each feature in Z gets v (|Z|-1)! |X|!/(|Z|+|X|)!, each in X loses v |Z|! (|X|-1)!/(|Z|+|X|)!. Columns that belong to one feature, such as those of a
one-hot code, move together (Laberge & Pequignot 2022).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.compiling import compile_kernel

Index = NDArray[np.int64]
Flags = NDArray[np.bool_]
_DEEPEST = 1 << 10


class Nodes(NamedTuple):
    """The arrays of `Trees`, in the form that kernels take."""

    left: Index
    right: Index
    column: Index
    threshold: Vector
    missing_left: Flags
    value: Vector
    roots: Index
    output: Index


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """Nodes of all trees in one list: a row goes left where its column is at most the threshold; leaves have no children (-1).

    A missing number (NaN) goes left where `missing_left` is true. Each tree adds to one of the outputs, by default all to the first.
    """

    left: Index
    right: Index
    column: Index
    threshold: Vector
    value: Vector
    roots: Index
    missing_left: Flags
    output: Index  # of each root

    @property
    def outputs(self) -> int:
        return int(self.output.max(initial=0)) + 1

    @property
    def nodes(self) -> Nodes:
        return Nodes(self.left, self.right, self.column, self.threshold, self.missing_left, self.value, self.roots, self.output)

    def margins(self, rows: Matrix) -> Matrix:
        """The sum over trees of each row's leaf, (rows, outputs)."""
        out = np.zeros((len(rows), self.outputs))
        _margins(self.nodes, np.ascontiguousarray(rows, dtype=np.float64), out)
        return out

    def predict(self, rows: Matrix) -> Vector:
        """The first output alone."""
        return self.margins(rows)[:, 0]


def tree_values(trees: Trees, owner: Index, point: Vector, rows: Matrix, players: int | None = None) -> Matrix:
    """φ(x) of each row, (rows, d), of the sum of all trees; `owner[j]` is the one of the d features, or `players`, to which column j belongs."""
    players = int(owner.max()) + 1 if players is None else players
    out = np.zeros((len(rows), players))
    numbers = np.ascontiguousarray(point, dtype=np.float64), np.ascontiguousarray(rows, dtype=np.float64)
    _values(trees.nodes, owner, *numbers, _shares(players), out)
    return out


def _shares(players: int) -> Matrix:
    """(a - 1)! b!/(a + b)! = 1/(a C(a + b, a)) for a ≥ 1, a + b ≤ d."""
    out = np.zeros((players + 1, players + 1))
    for a in range(1, players + 1):
        for b in range(players + 1 - a):
            out[a, b] = 1 / (a * comb(a + b, a))
    return out


@compile_kernel
def goes_left(number: float, threshold: float, missing_left: bool) -> bool:  # pragma: no cover
    """Whether a row with this number in a node's column goes to the left child."""
    return number <= threshold or (missing_left and number != number)


@compile_kernel
def _margins(trees: Nodes, rows: Matrix, out: Matrix) -> None:  # pragma: no cover
    left, right, column, threshold, missing_left, value, roots, output = trees
    for r in range(rows.shape[0]):
        for t in range(roots.shape[0]):
            node = roots[t]
            while left[node] >= 0:
                node = left[node] if goes_left(rows[r, column[node]], threshold[node], missing_left[node]) else right[node]
            out[r, output[t]] += value[node]


@compile_kernel
def _values(trees: Nodes, owner: Index, point: Vector, rows: Matrix, shares: Matrix, out: Matrix) -> None:  # pragma: no cover
    left, right, column, threshold, missing_left, value, roots, _ = trees
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
                    player = owner[at]
                    x_left = goes_left(x[at], threshold[node], missing_left[node])
                    z_left = goes_left(point[at], threshold[node], missing_left[node])
                    if x_left != z_left and side[player] == 0:
                        waiting[top, 0] = left[node] if x_left else right[node]
                        waiting[top, 1], waiting[top, 2] = player, count
                        side[player], decided[count] = 1, player
                        top, count, mine = top + 1, count + 1, mine + 1
                    follows_left = x_left if side[player] == 2 else z_left
                    node = left[node] if follows_left else right[node]
                for k in range(count):
                    if side[decided[k]] == 1:
                        out[r, decided[k]] += value[node] * shares[mine, theirs]
                    else:
                        out[r, decided[k]] -= value[node] * shares[theirs, mine]
            while count > 0:
                count -= 1
                side[decided[count]] = 0
