"""Weights with which labelled records have the labels that rows have in every pair of bins. Pure post-processing.

Records that follow the tables of pairs can lack what three and more features have in common. Where the model's answers depend on it, the labels of the
rows in the cells of the tables show it. With x the cells of a record and ȳ the mean label of the records in each, records get weights
g ∝ exp(θ·x + κ·(y - ȳ)x) that minimise

    log Σ_r p_r exp(θ·x_r + κ·(y_r - ȳ)x_r) - θ·C - κ·(L̂ - ȳC) + ½ Σ (λθ² + νκ²),    λ = 2/(Nτ²),    ν = (n + 2v/N)/(v τ²),

the dual of maximum entropy relative to the records' own weights p, with C their own tables, so that these stay as they are, and L̂ the released
sums of labels; v is the variance of the labels in a cell times its share, and n = s² + ȳ²c² the noise of its target, s that of labels and c that of counts.
Both have errors of drawing N records, and potentials a prior N(0, τ²). A cell in which the model gives one answer alone has v = 0, and no κ.

τ is estimated: without raking, L̂ - ȳC has the variance n + 2v/N + τ²v². Where noise explains all of it there is nothing to learn, and τ is 0.

For error bars the result is taken for the truth: labels get other noise of the same size, records the weights that other noise on the tables gives
them, and a part of the records is raked again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.marginals import Joined
from dpexplain.estimation._table_kernels import add_energies, add_tables

_WIDEST = 0.3  # τ at most
_ROUNDS, _REHEARSED_ROUNDS = 30, 16  # of L-BFGS
_REHEARSED = 1 << 14  # records
_FEWEST = 20.0  # records of a cell that has potentials
_FARTHEST, _HIGHEST = 1.0, 4.0  # of a potential, and of a record's energy; on ACS energies are below 1.3
_SMALLEST = 1e-7  # share of a cell

Bins = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class LabelRaking:
    """Records by their bins, (attributes, N), with labels; `error` and `count_error` are the noise of labels and counts, as shares of all rows."""

    codes: Bins
    offsets: Joined
    labels: Vector
    error: float
    count_error: float

    def estimate_prior(self, weights: Vector, released: Vector) -> float:
        """τ, by a moment estimate that is weighted once more by what it finds."""
        cells, rows = slice(len(released)), len(self.labels)
        own, mean, varied = (one[cells] for one in self._cells(weights / weights.sum()))
        noise = self._noise(mean) + 2 * varied / rows
        beyond, found = np.square(released - mean * own) - noise, 0.0
        for _ in range(2):
            trust = np.square(varied / (noise + found * np.square(varied)))
            found = max(float(trust @ beyond) / max(float(trust @ np.square(varied)), 1e-300), 0.0)
        return min(float(np.sqrt(found)), _WIDEST)

    def rake(self, weights: Vector, released: Vector, prior: float) -> Vector:
        """What raking adds to the log weights of the records; `released` are labels as shares of all rows, table by table.

        Limited around the median: where the model answers otherwise about rows than about records, no weights make up for it, and few would be left.
        """
        energies = self._energies(self._potentials(weights / weights.sum(), released, prior, _ROUNDS))
        return np.asarray(np.clip(energies - np.median(energies), -_HIGHEST, _HIGHEST))

    def rehearse(self, weights: Vector, changes: Matrix, normals: Matrix, prior: float) -> Matrix:
        """`changes` of the log weights by other noise on the tables, (K, N), and what raking to labels with other noise makes of them.

        `normals` has a standard normal number for each cell, (K, cells).
        """
        step = max(len(self.labels) // _REHEARSED, 1)
        few = replace(self, codes=np.ascontiguousarray(self.codes[:, ::step]), labels=self.labels[::step])
        part = weights[::step] / weights[::step].sum()
        own, out = few.tables(part * few.labels)[: normals.shape[1]], np.empty_like(changes)
        for k, (change, drawn) in enumerate(zip(changes, normals, strict=True)):
            start = part * np.exp(change[::step])
            found = few._potentials(start / start.sum(), own + self.error * drawn, prior, _REHEARSED_ROUNDS)
            out[k] = change + self._energies(found)
        return np.asarray(out - out.mean(axis=1, keepdims=True))

    def tables(self, weights: Vector) -> Vector:
        """Weights added up in every table, then in every bin."""
        sizes = np.diff(self.offsets)
        cells = (int(sizes.sum()) ** 2 - int(np.square(sizes).sum())) // 2
        out = np.zeros(cells + int(self.offsets[-1]))
        add_tables(self.codes, self.offsets, weights, out)
        return out

    def _energies(self, potentials: tuple[Vector, Vector]) -> Vector:
        """θ·x + y κ·x of each record."""
        plain, labelled = np.zeros(len(self.labels)), np.zeros(len(self.labels))
        add_energies(self.codes, self.offsets, potentials[0], plain)
        add_energies(self.codes, self.offsets, potentials[1], labelled)
        return np.asarray(plain + self.labels * labelled)

    def _cells(self, base: Vector) -> tuple[Vector, Vector, Vector]:
        """C, ȳ and v, of tables and bins."""
        own, labels = self.tables(base), self.tables(base * self.labels)
        mean = np.divide(labels, own, out=np.zeros_like(own), where=own > 0)
        return own, mean, np.maximum(self.tables(base * np.square(self.labels)) - mean * labels, 0.0)

    def _noise(self, mean: Vector) -> Vector:
        return np.asarray(self.error**2 + np.square(mean * self.count_error))

    def _potentials(self, base: Vector, released: Vector, prior: float, rounds: int) -> tuple[Vector, Vector]:
        """(θ - κȳ, κ), tables first and bins after them; bins have no κ, because the tables have their labels already."""
        (own, mean, varied), rows, cells = self._cells(base), len(base), len(released)
        spread = np.maximum(np.stack([own, varied]), _SMALLEST)
        noise = np.stack([np.zeros_like(own), self._noise(mean)])
        ridge = (2 * spread / rows + noise) / (spread * prior**2)
        scale = 1 / np.sqrt(spread + ridge)
        free = np.stack([own, varied]) * rows >= _FEWEST
        free[1, cells:] = False
        target = np.stack([own, np.append(released - mean[:cells] * own[:cells], own[cells:] * 0.0)])
        start = np.log(np.maximum(base, 1e-300))

        def objective(point: Vector) -> tuple[float, Vector]:
            theta, kappa = natural = point.reshape(2, -1) * scale
            energy = start + self._energies((theta - kappa * mean, kappa))
            top = float(energy.max())
            weights = np.exp(energy - top)
            total = float(weights.sum())
            weights /= total
            found = self.tables(weights)
            pull = np.stack([found, self.tables(weights * self.labels) - mean * found]) - target + ridge * natural
            value = top + np.log(total) - float((target * natural).sum()) + 0.5 * float((ridge * np.square(natural)).sum())
            return value, (np.where(free, pull, 0.0) * scale).ravel()

        limit = np.where(free, _FARTHEST / scale, 0.0).ravel()
        best = scipy.optimize.minimize(
            objective,
            np.zeros(limit.size),
            jac=True,
            method="L-BFGS-B",
            bounds=scipy.optimize.Bounds(-limit, limit),
            options={"maxiter": rounds},
        )
        theta, kappa = best.x.reshape(2, -1) * scale
        return theta - kappa * mean, kappa
