"""Raking: weights with which sampled records match all released tables at once. Pure post-processing.

Records have one bin in each attribute, and a pair potential θ for every two of them: p(x) ∝ p₀(x) exp(Σ_{a<b} θ_ab(x_a, x_b) + Σ_a η_a(x_a)).
*Raking* finds the (θ, η) for which the weighted sample has the tables P̂, up to noise: it minimises

    log Σ_r exp(θ·x_r) - θ·P̂ + ½ Σ λθ²,    λ = (s² + 2e/N)/e,

the dual of maximum entropy relative to the sample, with Gaussian errors s (and sampling errors) on the targets and a prior N(0, 1) on each θ.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import scipy

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.cells import CellCodes
from dpexplain.core.marginals import Joined
from dpexplain.estimation._table_kernels import add_energies, add_tables

FLOOR = 1e-7  # smallest probability of a bin
_UNSEEN, _RARE = 0.5, 20  # how far θ may go for a cell that fewer than _RARE sampled rows have; elsewhere _FARTHEST
_FARTHEST = 3.0


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """Consistent probabilities: margins `p`, pair tables `pairs` as released but shifted to the margins, and shrunk tables `smooth`."""

    offsets: Joined
    p: Vector
    pairs: Matrix
    smooth: Matrix
    error: float  # of each cell as released
    errors: Matrix  # of each cell of `pairs`, which may know more

    def block(self, attribute: int) -> slice:
        return slice(int(self.offsets[attribute]), int(self.offsets[attribute + 1]))

    @property
    def attributes(self) -> int:
        return len(self.offsets) - 1

    @property
    def owner(self) -> Joined:
        return np.repeat(np.arange(self.attributes), np.diff(self.offsets))


class Raking:
    """The dual problem over the tables of a sample, in coordinates scaled by the curvature. Cells are stored table by table."""

    def __init__(self, codes: CellCodes, found: Tables) -> None:
        self.rows, self.codes, self.found = len(codes), np.ascontiguousarray(codes.T, dtype=np.int32), found
        self.tables = list(combinations(range(len(found.offsets) - 1), 2))
        self.starts = np.cumsum([0] + [self._size(a, b) for a, b in self.tables])
        self.targets, self.smooth = self._flat(found.pairs), self._flat(found.smooth)
        seen = self._means(np.full(self.rows, 1 / self.rows))[: self.starts[-1]]
        expected = np.maximum(np.maximum(self.smooth, seen), FLOOR)
        self.ridge = (np.square(self._flat(found.errors)) + 2 * expected / self.rows) / expected
        self.scale = 1 / np.sqrt(expected + self.ridge)
        reach = np.where(seen * self.rows < _RARE, _UNSEEN, _FARTHEST) / self.scale
        possible = self._flat(np.outer(found.p, found.p)) > 0
        self.limit = np.append(np.where(possible, reach, 0.0), np.full(len(found.p), 2.0))

    def minimise_dual(self, rounds: int) -> Vector:
        """(θ, η) after at most this many steps of L-BFGS."""
        best = scipy.optimize.minimize(
            self.objective,
            np.zeros(len(self.limit)),
            jac=True,
            method="L-BFGS-B",
            bounds=scipy.optimize.Bounds(-self.limit, self.limit),
            options={"maxiter": rounds},
        )
        return self._natural(best.x)

    def objective(self, point: Vector) -> tuple[float, Vector]:
        natural, cells = self._natural(point), self.starts[-1]
        weights, log_sum = _softmax(self.energy(natural))
        means, theta = self._means(weights), natural[:cells]
        pull = (means[:cells] - self.targets + self.ridge * theta) * self.scale
        value = log_sum - self.targets @ theta - self.found.p @ natural[cells:] + 0.5 * float(self.ridge @ np.square(theta))
        return float(value), np.concatenate([pull, means[cells:] - self.found.p])

    def _natural(self, point: Vector) -> Vector:
        cells = self.starts[-1]
        return np.concatenate([point[:cells] * self.scale, point[cells:]])

    def energy(self, natural: Vector) -> Vector:
        """Σ θ over each row's cells, plus Σ η over its bins."""
        energy = np.zeros(self.rows)
        add_energies(self.codes, self.found.offsets, natural, energy)
        return energy

    def _means(self, weights: Vector) -> Vector:
        """The weighted tables, then the weighted margins."""
        means = np.zeros(int(self.starts[-1] + self.found.offsets[-1]))
        add_tables(self.codes, self.found.offsets, weights, means)
        return means

    def flatten(self, tables: Matrix, margins: Vector) -> Vector:
        """Tables and margins in the order of (θ, η)."""
        return np.append(self._flat(tables), margins)

    def _size(self, a: int, b: int) -> int:
        sizes = np.diff(self.found.offsets)
        return int(sizes[a] * sizes[b])

    def _flat(self, matrix: Matrix) -> Vector:
        return np.concatenate([matrix[self.found.block(a), self.found.block(b)].ravel() for a, b in self.tables])


def _softmax(energy: Vector) -> tuple[Vector, float]:
    """(weights that sum to one, log of the mean of exp)."""
    top = float(energy.max())
    weights = np.exp(energy - top)
    total = float(weights.sum())
    return weights / total, float(np.log(total / len(weights))) + top
