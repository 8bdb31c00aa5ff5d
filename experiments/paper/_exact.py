"""The exact optimum of many queries, from sums over rows that are computed once and stored: A, b and what the loss is without an explanation."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from dpexplain import evaluation, weights
from dpexplain.progress import with_bar
from experiments.paper._cells import Cells
from experiments.paper._tridiagonal import Tridiagonal

BATCH, MANY = 25, 20
_LAST = {}


class Problem(NamedTuple):
    """min φᵀAφ - 2b·φ over the ball of radius 1: means over rows, the minimiser, and what it gains over φ = 0."""

    point: np.ndarray
    A: np.ndarray
    b: np.ndarray
    best: np.ndarray
    gain: float

    @classmethod
    def of(cls, point, A, b):
        best = A.minimise_in_ball(b) if isinstance(A, Tridiagonal) else optima(A, b[None])[0]
        return cls(point, A, b, best, float(2 * b @ best - best @ A @ best))

    def scores(self, values):
        """(excess loss, relative excess, cosine) of each row of `values`."""
        loss = np.einsum("ij,ij->i", values @ self.A, values) - 2 * values @ self.b
        excess = loss + self.gain
        lengths = np.linalg.norm(values, axis=1) * np.linalg.norm(self.best)
        cosines = np.divide(values @ self.best, lengths, out=np.zeros(len(values)), where=lengths > 0)
        return {"excess_loss": excess, "relative_excess": excess / self.gain, "cosine": cosines}


def axes(A):
    """(eigenvalues, eigenvectors) of A: kept for the last A, because the optimum and every mechanism ask about the same one."""
    if _LAST.get("A") is not A:
        _LAST["A"], _LAST["axes"] = A, np.linalg.eigh((A + A.T) / 2)
    return _LAST["axes"]


def optima(A, targets):
    """The minimisers of φᵀAφ - 2b·φ over the ball of radius 1 for several b, one a row."""
    values, vectors = axes(A)
    values = np.maximum(values, 0.0)
    return np.array([vectors @ _solve_in_ball(values, one) for one in targets @ vectors])


def _solve_in_ball(values, target):
    """The minimiser along the eigenvectors: c/(λ + ν) with the smallest ν ≥ 0 that holds it in the ball; rounding errors count as 0."""
    length = float(np.linalg.norm(target))
    known = values > max(values[-1], length) * len(values) * np.finfo(float).eps
    free = np.divide(target, values, out=np.zeros_like(target), where=known)
    if np.linalg.norm(free) <= 1 and np.linalg.norm(target[~known]) <= 1e-10 * length:
        return free
    shift = brentq(lambda nu: np.sum((target / (values + nu)) ** 2) - 1, 1e-15 * length, length, xtol=1e-300, rtol=1e-13)
    return target / (values + shift)


def problems(data, points, stored: Path | None = None, weight=None):
    """The problems at encoded points, one after the other. With `stored`, sums come from that file if it is about these points, or go there."""
    points = np.asarray(points)
    packed, upper = _load(stored, points), np.triu_indices(points.shape[1])
    if packed is None and stored is not None:
        summed = with_bar(sums(data, points, weight), "sums", len(points))
        packed = np.array([np.concatenate([A[upper], b]) for A, b in summed])
        stored.parent.mkdir(parents=True, exist_ok=True)
        unfinished = stored.with_suffix(".unfinished.npz")
        np.savez(unfinished, points=points, packed=packed)
        unfinished.replace(stored)
    each = sums(data, points, weight) if packed is None else (unpack(row, points.shape[1]) for row in packed)
    for point, (A, b) in zip(points, each, strict=True):
        yield Problem.of(point, A, b)


def sums(data, points, weight=None):
    """(A, b) around each point, over the number of rows: by cells where rows are mostly zeros and ones and queries are many, else by the library."""
    weight = weight or weights.Stable()
    if len(points) >= MANY and (cells := Cells.cells_if_useful(data)) is not None:
        yield from ((A / data.size, b / data.size) for A, b in (cells.moments(point, weight) for point in points))
        return
    for start in range(0, len(points), BATCH):
        for one in evaluation.local_moments_of(data, list(points[start : start + BATCH]), weight):
            yield one.A / data.size, one.b / data.size


def _load(stored, points):
    if stored is None or not stored.exists():
        return None
    with np.load(stored) as found:
        return found["packed"] if np.array_equal(found["points"], points) else None


def unpack(row, width):
    A = np.zeros((width, width))
    A[np.triu_indices(width)] = row[:-width]
    return A + np.triu(A, 1).T, row[-width:]
