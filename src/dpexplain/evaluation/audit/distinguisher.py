"""Distinguishes two distributions from samples of them, by a linear score that is learnt on some runs and used on others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.evaluation.audit.bounds import best_threshold

_FLAT = 1e-9  # of a coordinate's own size: less spread than this is none
_RUNS_EACH = 4  # for each coordinate, before correlations are taken as they are found
_CLEARLY = 0.05  # by how much one coordinate must be right more often than all together


@dataclass(frozen=True, slots=True, eq=False)
class Distinguisher:
    """A score w·x, larger where the record is likely to be present, and a threshold for it."""

    direction: Vector
    threshold: float = 0.0

    def score(self, seen: Matrix) -> Vector:
        return seen @ self.direction

    @classmethod
    def learn_distinguisher(cls, inside: Matrix, outside: Matrix, trusted: int | None = None) -> Distinguisher:
        """The best of some linear scores, by how often each is right on the second half of these runs when learnt on the first.

        They are Fisher's discriminants, w = C⁻¹(mean inside - mean outside) with C the covariance within each law, which is best for Gaussian
        laws that differ by a shift; with C shrunk, without its correlations, or as it is; and single coordinates. Row i of both may come
        from the same noise: then their difference is nearly free of it, and few runs are enough. The coordinate `trusted` is a score already,
        such as a likelihood ratio: it is taken unless another is clearly better.
        """
        half = len(inside) // 2
        first, second = (inside[:half], outside[:half]), (inside[half:], outside[half:])
        shares: list[float | None] = [None, 1.0, 0.0] if inside.shape[1] * _RUNS_EACH <= len(inside) else [None, 1.0]
        right = [_area(*(side @ _discriminant(*first, share) for side in second)) for share in shares]
        best, unit = int(np.argmax(right)), np.eye(inside.shape[1])
        column, sign, alone = _single(*first, *second)
        if trusted is not None and _area(*(side[:, trusted] for side in second)) >= max(right[best], alone) - _CLEARLY:
            return cls(unit[trusted])
        if alone > right[best] + _CLEARLY:
            return cls(sign * unit[column])
        return cls(_discriminant(inside, outside, shares[best]))

    def with_threshold(self, inside: Matrix, outside: Matrix, runs: int, error: float) -> Distinguisher:
        return Distinguisher(self.direction, best_threshold(self.score(inside), self.score(outside), runs, error))


def _discriminant(inside: Matrix, outside: Matrix, share: float | None) -> Vector:
    """Fisher's w. `share` is how far C is moved towards no correlations; None lets its own error decide (Ledoit & Wolf 2004)."""
    shift = (inside - outside).mean(axis=0)
    centred = np.concatenate([inside - inside.mean(axis=0), outside - outside.mean(axis=0)])
    spread = centred.std(axis=0)
    size = np.maximum(np.abs(inside).max(axis=0), np.abs(outside).max(axis=0))
    noisy, moved = spread > _FLAT * size, np.abs(shift) > _FLAT * size
    scale = np.where(noisy, spread, np.where(moved, np.abs(shift) * 1e-3, 1.0))
    direction, kept = np.zeros(len(shift)), noisy | moved
    direction[kept] = _solve_score(centred[:, kept] / scale[kept], (shift / scale)[kept], share) / scale[kept]
    return direction


def _solve_score(centred: Matrix, shift: Vector, share: float | None) -> Vector:
    """C⁻¹ shift for standardised coordinates. Rows are pairs of nearly the same noise, so only half of them count."""
    runs, columns = centred.shape
    found, unit = centred.T @ centred / runs, np.eye(columns)
    if share is None:
        error = (np.square(np.square(centred).sum(axis=1)).mean() - np.square(found).sum()) / (runs / 2)
        share = min(error / max(float(np.square(found - unit).sum()), 1e-12), 1.0)
    return np.asarray(np.linalg.solve((1 - share) * found + (share + 1e-6) * unit, shift))


def _area(inside: Vector, outside: Vector) -> float:
    """How often a score of the first is above one of the second: the area under the ROC curve."""
    return float((inside[:, None] > outside).mean() + (inside[:, None] == outside).mean() / 2)


def _single(inside: Matrix, outside: Matrix, later: Matrix, others: Matrix) -> tuple[int, float, float]:
    """(coordinate, sign, area) of the single coordinate that distinguishes best; chosen on the first two samples, its area measured on the others."""
    areas = np.array([_area(a, b) for a, b in zip(inside.T, outside.T, strict=True)])
    best = int(np.argmax(np.abs(areas - 0.5)))
    sign = 1.0 if areas[best] > 0.5 else -1.0
    return best, sign, _area(sign * later[:, best], sign * others[:, best])


def stack_transcripts(rows: Sequence[Vector], width: int | None = None) -> Matrix:
    """Vectors of any length as rows of one matrix: cut, or filled with zeros."""
    columns = max((len(row) for row in rows), default=0) if width is None else width
    out = np.zeros((len(rows), columns))
    for into, row in zip(out, rows, strict=True):
        into[: min(len(row), columns)] = row[:columns]
    return out
