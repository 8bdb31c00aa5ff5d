"""Exact baseline Shapley values of boosted classifiers, whose probability is a logistic or softmax function of sums of trees.

For one background record x only the k features in which it differs from the query z matter. Each tree adds the value of a leaf to all coalitions of
these that reach it, which is a subcube of {0, 1}^k; the subcubes of a tree's leaves divide the cube, so all 2^k margins cost one addition for each tree
and coalition. The link function then gives the value of each coalition, and the Shapley values follow from their definition. shap's TreeExplainer
instead spreads the difference of probabilities in proportion to margins, which is not the Shapley value of the probability.
"""

from __future__ import annotations

from math import comb

import numpy as np

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.compiling import compile_kernel
from dpexplain.estimation.tree_shapley import Flags, Index, Nodes, Trees, goes_left

MOST_PLAYERS = 12  # features of which all coalitions are computed
_DEEPEST = 1 << 10


def link_labels(margins: Matrix, target: int) -> Vector:
    """2p - 1 for margins, (rows, outputs): of the logistic function where there is one output, else of the softmax's `target`."""
    if margins.shape[1] == 1:
        return np.asarray(np.tanh(margins[:, 0] / 2))
    odds = np.exp(margins - margins.max(axis=1, keepdims=True))
    return np.asarray(2 * odds[:, target] / odds.sum(axis=1) - 1)


def used_features(trees: Trees, owner: Index) -> Index:
    """The features on which a split of any tree depends."""
    return np.unique(owner[trees.column[trees.left >= 0]])


def boosted_values(
    trees: Trees, constants: Vector, target: int, owner: Index, point: Vector, rows: Matrix, players: int
) -> Matrix:
    """φ(x) of each row, (rows, players), of the label 2p - 1; margins are `constants` plus the trees' sums.

    At most MOST_PLAYERS features may be used by the trees.
    """
    used = np.zeros(len(owner), dtype=np.bool_)
    used[trees.column[trees.left >= 0]] = True
    most = min(len(used_features(trees, owner)), MOST_PLAYERS)
    out = np.zeros((len(rows), players))
    numbers = np.ascontiguousarray(point, dtype=np.float64), np.ascontiguousarray(rows, dtype=np.float64)
    shares = _shares(most)
    _values(trees.nodes, constants, target, owner, used, *numbers, *shares, np.empty((len(constants), 1 << most)), out)
    return out


def _shares(most: int) -> tuple[Matrix, Matrix]:
    """(for members, for others) of a coalition of s among k features: 1/(k C(k-1, s-1)) and 1/(k C(k-1, s))."""
    inside, outside = np.zeros((most + 1, most + 1)), np.zeros((most + 1, most + 1))
    for k in range(1, most + 1):
        for s in range(k + 1):
            inside[k, s] = 1 / (k * comb(k - 1, s - 1)) if s else 0.0
            outside[k, s] = 1 / (k * comb(k - 1, s)) if s < k else 0.0
    return inside, outside


@compile_kernel
def _find_differences(x: Vector, point: Vector, owner: Index, used: Flags, bit: Index, member: Index) -> int:  # pragma: no cover
    """Number the used features in which x and z differ: `bit` of each feature, -1 for the others, and `member` of each bit."""
    bit[:] = -1
    k = 0
    for c in range(owner.shape[0]):
        differs = x[c] != point[c] and not (x[c] != x[c] and point[c] != point[c])
        if used[c] and differs and bit[owner[c]] < 0:
            bit[owner[c]], member[k] = k, owner[c]
            k += 1
    return k


@compile_kernel
def _add_tree(
    left: Index,
    right: Index,
    column: Index,
    threshold: Vector,
    missing_left: Flags,
    value: Vector,
    root: int,
    owner: Index,
    x: Vector,
    point: Vector,
    bit: Index,
    waiting: Index,
    size: int,
    margins: Vector,
) -> None:  # pragma: no cover
    """Add the value of each leaf of one tree to the margins of the coalitions that reach it."""
    top = 1
    waiting[0, 0], waiting[0, 1], waiting[0, 2] = root, 0, 0
    while top > 0:
        top -= 1
        node, mine, theirs = waiting[top, 0], waiting[top, 1], waiting[top, 2]
        while left[node] >= 0:
            at = column[node]
            x_left = goes_left(x[at], threshold[node], missing_left[node])
            z_left = goes_left(point[at], threshold[node], missing_left[node])
            follows_left = z_left
            if x_left != z_left:
                mask = 1 << bit[owner[at]]
                if theirs & mask:
                    follows_left = x_left
                elif not mine & mask:
                    waiting[top, 0] = left[node] if x_left else right[node]
                    waiting[top, 1], waiting[top, 2] = mine, theirs | mask
                    top, mine = top + 1, mine | mask
            node = left[node] if follows_left else right[node]
        free, rest, v = (size - 1) & ~(mine | theirs), 0, value[node]
        while True:
            margins[mine | rest] += v
            rest = (rest - free) & free
            if rest == 0:
                break


@compile_kernel
def _add_worths(
    margins: Matrix, target: int, k: int, member: Index, inside: Vector, outside: Vector, out: Vector
) -> None:  # pragma: no cover
    """Add the share of each coalition's label in the Shapley values of the k features; `margins` has a column for each coalition."""
    for s in range(1 << k):
        if margins.shape[0] == 1:
            worth = np.tanh(margins[0, s] / 2)
        else:
            total = 0.0
            for o in range(margins.shape[0]):
                total += np.exp(margins[o, s] - margins[target, s])
            worth = 2 / total - 1
        members, left_over = 0, s
        while left_over:
            left_over &= left_over - 1
            members += 1
        lost, gained = worth * outside[members], worth * inside[members]
        for b in range(k):
            if (s >> b) & 1:
                out[member[b]] += gained
            else:
                out[member[b]] -= lost


@compile_kernel
def _values(
    trees: Nodes,
    constants: Vector,
    target: int,
    owner: Index,
    used: Flags,
    point: Vector,
    rows: Matrix,
    inside: Matrix,
    outside: Matrix,
    margins: Matrix,
    out: Matrix,
) -> None:  # pragma: no cover
    left, right, column, threshold, missing_left, value, roots, output = trees
    bit = np.empty(out.shape[1], np.int64)
    member = np.empty(margins.shape[1], np.int64)
    waiting = np.empty((_DEEPEST, 3), np.int64)  # node, features that are z's, features that are x's
    for r in range(rows.shape[0]):
        x = rows[r]
        k = _find_differences(x, point, owner, used, bit, member)
        for o in range(constants.shape[0]):
            margins[o, : 1 << k] = constants[o]
        for t in range(roots.shape[0]):
            tree = (left, right, column, threshold, missing_left, value, roots[t])
            _add_tree(*tree, owner, x, point, bit, waiting, 1 << k, margins[output[t]])
        _add_worths(margins, target, k, member, inside[k], outside[k], out[r])
