"""Sets up an audit: two neighbouring data sets that differ in a canary, a record that moves what is released as far as a record can.

The made-up data are chosen so that bounds are attained (`proofs/audit.md`). For gradients all rows pull φ to the ball's edge, where a record with the
opposite label moves the gradient by all of 2αd(kd + 1); or they lie at the query itself and have no gradient, which reveals most in a last iterate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np

from dpexplain.backends.oracle import OracleRows
from dpexplain.backends.summed import SummedRows, total
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.data import PrivateData
from dpexplain.domain import Domain, DomainLike
from dpexplain.domain.interface import Block
from dpexplain.errors import ParameterError
from dpexplain.evaluation.metrics.stored_moments import RememberedRows
from dpexplain.mechanisms.ports import Noise, Rows
from dpexplain.noise.seeded import SeededNoise
from dpexplain.registration.labels import Labeller

_DIRECTIONS, _SCALES, _BEST = 40, 16, 3


@dataclass(frozen=True, slots=True, eq=False)
class Canary:
    """An encoded record and its label."""

    row: Vector
    label: float


class PartedRows(SummedRows):
    """Private rows together with a few more. Every statistic is a sum over rows, so the two answers are added."""

    def __init__(self, rows: Rows, more: OracleRows) -> None:
        self._rows, self._more = rows, more
        self.width, self.summation_error = rows.width, rows.summation_error

    def _ask(self, question: str, query: Any) -> Any:
        return total(getattr(part, question)(query) for part in (self._rows, self._more))


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """One of two neighbouring data sets. Each run opens it anew, so that runs share rows and nothing else."""

    data: PrivateData
    rows: Rows

    def fresh(self) -> PrivateData:
        return self.data.with_rows(self.rows)


def world(data: PrivateData, rows: Rows, canary: Canary | None = None, copies: int = 1) -> World:
    """`rows` alone, or with all records of `copies` owners who are canaries beside them. Sums are computed once and shared by all runs."""
    if canary is None:
        return World(data, rows)
    count = copies * data.setting.neighbours.rows_per_unit
    more = OracleRows(np.tile(canary.row, (count, 1)), np.full(count, canary.label))
    return World(data, cast(Rows, RememberedRows(cast(Rows, PartedRows(rows, more)))))


Kind = Literal["pull", "still", "spread"]


@dataclass(frozen=True, slots=True, eq=False)
class MadeUp:
    """Made-up records that are registered as a user's would be, with or without the canaries among them."""

    domain: Domain
    rows: Matrix
    labels: Vector
    relation: str

    def register(self, canary: Canary | None = None, copies: int = 1) -> PrivateData:
        """Register all records, the canaries first, so that effects of one record on the reading of others are part of the audit."""
        rows, labels = self.rows, self.labels
        if canary is not None:
            rows = np.concatenate([np.tile(canary.row, (copies, 1)), rows])
            labels = np.concatenate([np.full(copies, canary.label), labels])
        given = self.domain.decode(rows)
        data = PrivateData(given, self.domain, labels=labels, relation=self.relation, name="audit", size=len(self.rows))
        data.attach_model(Labeller(lambda encoded: 1 - 2 * encoded[:, 0], 1, None, self.domain.encode))
        return data

    def world(self, canary: Canary | None = None, copies: int = 1) -> World:
        data = self.register(canary, copies)
        return World(data, cast(Rows, RememberedRows(data.private_rows)))


def made_up(domain: Domain | None, size: int, relation: str, kind: Kind, queries: int, gap: float) -> tuple[MadeUp, list[Vector]]:
    """(records, points to ask about): rows that "pull" φ to the ball's edge, lie "still" at the last point, or are "spread" over the domain.

    In a `domain` of the user's they pull from the record that differs from the query in every feature. All have label 1. The black box is 1 - 2x for
    x the first column: it lets one record attain the bound on Shapley values, too.
    """
    chosen = domain or Domain.encoded(2)
    rows = random_rows(chosen, size, SeededNoise(1))
    points = nearby(rows[0] if domain else np.zeros(2), chosen, queries, gap)
    if kind == "still":
        rows = np.tile(points[-1], (size, 1))
    elif kind == "pull":
        far = points[-1] + [0.4, 0.0] if domain is None else _farthest(chosen, points[-1])
        rows = np.tile(far, (size, 1))
    return MadeUp(chosen, rows, np.ones(size), relation), points


def random_rows(domain: DomainLike, count: int, noise: Noise) -> Matrix:
    """Records of the domain, each feature uniform and by itself."""
    rows = np.zeros((count, domain.width))
    for block, levels in zip(domain.blocks, _levels(domain), strict=True):
        uniform = noise.uniform(count)
        if block.kind == "one-hot":
            rows[np.arange(count), block.start + (uniform * (block.stop - block.start)).astype(int)] = 1.0
        elif block.kind == "binary":
            rows[:, block.start] = uniform > 0.5
        else:
            rows[:, block.start] = np.rint(uniform * (levels - 1)) / (levels - 1) if levels > 1 else uniform
    return rows


def _levels(domain: DomainLike) -> Sequence[int]:
    return getattr(domain, "levels", None) or [0] * len(domain.blocks)


def nearby(point: Vector, domain: DomainLike, count: int, gap: float) -> list[Vector]:
    """`count` different points: the query, and it again with its last number moved by multiples of `gap`."""
    numbers = [block.start for block, levels in zip(domain.blocks, _levels(domain), strict=True) if _is_free(block, levels)]
    if count > 1 and not numbers:
        raise ParameterError("this domain has no numeric feature to vary. Pass the records to ask about as query=[...]")
    found = []
    for step in range(count):
        moved = point.copy()
        if step:
            start = point[numbers[-1]]
            moved[numbers[-1]] = start + step * gap if start + (count - 1) * gap <= 1 else start - step * gap
        found.append(np.clip(moved, 0.0, 1.0))
    return found


def _is_free(block: Block, levels: int) -> bool:
    return block.kind == "numeric" and levels == 0


def find_canary(reach: Callable[[Canary], float], domain: DomainLike, point: Vector) -> Canary:
    """The record that moves what is released furthest, by `reach`, among records that differ from the query in some features.

    First as far away as the domain allows, then the best of these at every distance that its numbers allow.
    """
    far = [Canary(row, label) for row in _far_rows(domain, point) for label in (-1.0, 1.0)]
    ends = sorted(far, key=reach, reverse=True)[:_BEST]
    free = np.zeros(len(point), dtype=bool)
    for block, levels in zip(domain.blocks, _levels(domain), strict=True):
        free[block.start : block.stop] = _is_free(block, levels)
    if not free.any():
        return ends[0]
    scales = np.linspace(0, 1, _SCALES + 1)[1:]
    closer = [Canary(np.where(free, point + s * (end.row - point), end.row), end.label) for end in ends for s in scales]
    return max(closer, key=reach)


def _far_rows(domain: DomainLike, point: Vector) -> Matrix:
    """Rows that have moved to the other end in one feature, in all, and in random sets of features."""
    noise, features = SeededNoise(0), len(domain.blocks)
    sets = [np.arange(features) == i for i in range(min(features, _DIRECTIONS // 4))] + [np.ones(features, dtype=bool)]
    while len(sets) < _DIRECTIONS and features > 1:
        share, draws = noise.uniform(1)[0] ** 2, noise.uniform(features)
        sets.append(draws <= max(share, draws.min()))
    return np.unique([_move_features(point, domain.blocks, changed, noise) for changed in sets], axis=0)


def _farthest(domain: DomainLike, point: Vector) -> Vector:
    """The record at the other end of every feature."""
    return _move_features(point, domain.blocks, np.ones(len(domain.blocks), dtype=bool), SeededNoise(0))


def _move_features(point: Vector, blocks: Sequence[Block], changed: Any, noise: Noise) -> Vector:
    row = point.copy()
    for block, change in zip(blocks, changed, strict=True):
        if not change:
            continue
        if block.kind == "one-hot":
            width = block.stop - block.start
            own = int(point[block.start : block.stop].argmax())
            row[block.start : block.stop] = np.eye(width)[(own + 1 + int(noise.uniform(1)[0] * (width - 1))) % width]
        else:
            row[block.start] = 1.0 if point[block.start] < 0.5 else 0.0
    return row
