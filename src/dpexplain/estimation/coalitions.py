"""Shapley values of the game between a query z and each of many background records x, from a model that can be evaluated at mixtures.

A coalition S of features has the value v(S) = f(z on S, x elsewhere), and feature j's Shapley value φ_j(x) is the mean, over orders of the features, of
what it adds when it joins those before it; Σ_j φ_j(x) = f(z) - f(x) exactly. With few features all coalitions are evaluated and φ(x) is exact.
Otherwise each record has one order of its own and its reverse: effects of single features and of pairs then come out exactly (Covert & Lee 2021),
and what is left of the choice of orders averages out over the records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.baseline_shapley import orders_from
from dpexplain.core.uniforms import Uniforms

Positions: TypeAlias = NDArray[np.intp]
Joined: TypeAlias = NDArray[np.bool_]

Worth: TypeAlias = Callable[[Positions, Joined], Vector]
"""(records, joined) → f of each record with the values of the features that joined, (k, d), taken from the query instead."""

Part: TypeAlias = Callable[[Sequence[slice]], Iterable[slice]]
"""Iterates over the parts of the work; a progress bar, for instance."""

MOST_EXACT = 5  # features up to which all coalitions are asked
_TOGETHER = 1 << 13  # mixtures that the model is asked about at once


def questions_per_record(players: int) -> int:
    """About how many mixtures the model is asked for each record."""
    return 2**players - 2 if players <= MOST_EXACT else 2 * (players - 1)


def record_values(worth: Worth, at_records: Vector, at_query: float, players: int, each: Part = iter) -> Matrix:
    """φ(x) of each background record, (records, d); `at_records` is f(x) and `at_query` is f(z).

    Orders are public numbers, the same at every call.
    """
    if players == 1:
        return (at_query - at_records)[:, None]
    exact, found = players <= MOST_EXACT, np.empty((len(at_records), players))
    size = max(_TOGETHER // questions_per_record(players), 1)
    for part in each([slice(start, min(start + size, len(found))) for start in range(0, len(found), size)]):
        records, x = np.arange(part.start, part.stop), at_records[part]
        found[part] = (
            _enumerate_coalitions(worth, records, x, at_query, players)
            if exact
            else _walk_orders(worth, records, x, at_query, players)
        )
    return found


def _walk_orders(worth: Worth, records: Positions, at_records: Vector, at_query: float, d: int) -> Matrix:
    """Shapley values from each record's own order and its reverse."""
    count = len(records)
    orders = orders_from(Uniforms(1 + int(records[0]) * d).take(count * d).reshape(count, d))
    ranks = np.argsort(np.stack([orders, orders[:, ::-1]], axis=1), axis=2)  # (records, 2, d): when each feature joins
    joined = ranks[:, :, None, :] <= np.arange(d - 1)[:, None]  # (records, 2, steps, d)
    inner = worth(np.repeat(records, 2 * (d - 1)), joined.reshape(-1, d)).reshape(count, 2, d - 1)
    ends = np.broadcast_to(at_records[:, None, None], (count, 2, 1)), np.full((count, 2, 1), at_query)
    added = np.diff(np.concatenate([ends[0], inner, ends[1]], axis=2), axis=2)
    return np.asarray(np.take_along_axis(added, ranks, axis=2).mean(axis=1))


def _enumerate_coalitions(worth: Worth, records: Positions, at_records: Vector, at_query: float, d: int) -> Matrix:
    """Shapley values from all coalitions: φ = Σ_S (coefficient of S for each feature) v(S)."""
    members, coefficients = _coalitions(d)
    inner = worth(np.repeat(records, len(members) - 2), np.tile(members[1:-1], (len(records), 1)))
    every = np.column_stack([at_records, inner.reshape(len(records), -1), np.full(len(records), at_query)])
    return np.asarray(every @ coefficients)


@lru_cache(maxsize=MOST_EXACT)
def _coalitions(d: int) -> tuple[Joined, Matrix]:
    """All coalitions, empty first and full last, (2^d, d), and the Shapley coefficients of their values, (2^d, d)."""
    members = np.array([[j in s for j in range(d)] for k in range(d + 1) for s in combinations(range(d), k)])
    size = members.sum(axis=1)
    inside = np.array([1 / (d * comb(d - 1, k - 1)) if k else 0.0 for k in size])
    outside = np.array([1 / (d * comb(d - 1, k)) if k < d else 0.0 for k in size])
    return members, np.where(members, inside[:, None], -outside[:, None])
