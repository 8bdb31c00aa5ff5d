"""Baseline Shapley values: one background row at a time, features as players. Bounds: `proofs/shapley.md`.

For a background row x, a query z and a black box f, a coalition S of features is worth v(S) = f(z on S, x elsewhere). Feature j's Shapley value is the
mean over orders of the features of what it adds when it joins those before it,

    φ_j(x) = mean over orders of v(before j, and j) - v(before j),      Σ_j φ_j(x) = f(z) - f(x),

and the mean of φ(x) over the rows is the interventional SHAP value of z. An order and its reverse are always taken together: then effects of single
features and of pairs come out exactly (Covert & Lee 2021).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from dpexplain.core.arrays import Matrix, Vector

Players = Sequence[slice]
"""The encoded columns of each feature."""


def baseline_shapley(
    ask: Callable[[Matrix], Vector], point: Vector, rows: Matrix, players: Players, order: Sequence[int]
) -> Matrix:
    """φ(x) for each row, (rows, players), over `order` and its reverse. Asks `ask` about 2(d - 1) mixtures of each row with z."""
    at_rows, at_point = ask(rows), np.full(len(rows), float(ask(point[None])[0]))
    found = np.zeros((len(rows), len(players)))
    for walk in (order, order[::-1]):
        mixed, before = rows.copy(), at_rows
        for player in walk:
            mixed[:, players[player]] = point[players[player]]
            after = at_point if player == walk[-1] else ask(mixed)
            found[:, player] += (after - before) / 2
            before = after
    return found


def orders_from(uniforms: Matrix) -> NDArray[np.intp]:
    """One order of the players for each row of uniform numbers."""
    return np.argsort(uniforms, axis=1, kind="stable")


def largest_norm(players: int) -> float:
    """√(4/d + K²), K = Σ_{s=1}^{d-1} √(d/(s(d-s)(d-1))): no exact φ(x) of labels in [-1, 1] is longer. Below π always."""
    d = players
    inner = sum(sqrt(d / (s * (d - s) * (d - 1))) for s in range(1, d))
    return sqrt(4 / d + inner**2) * (1 + 2.0**-40)
