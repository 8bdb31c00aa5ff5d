"""Labels as differences from a public plane: what is left of them is smaller, and so is the noise that hides it. Proof: `proofs/expected_labels.md`.

Where a model can be asked about public points, a plane g(x) = level + slopes·x is known before the rows' labels are summed. The rows then sum
y' = clip((y - g(x))/s, -1, 1) in the place of y, with a public scale s. Where no label is clipped, y is linear in y': with E x = μ and covariance C

    E y = s E y' + g(μ),    E y(x - μ) = s E y'(x - μ) + C slopes.

Noise in the moments of y' counts s times, and noise in C counts by how far the slopes of y are from the plane's, not by how large they are.
How far the rows' labels are from the plane is counted in bins before s is chosen: public points do not show how features depend on each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpexplain.core import sensitivity
from dpexplain.core.arrays import Matrix, Vector

EDGES = 2.0 ** (np.arange(-6, 2) / 2)  # between bins of distances |y - g(x)|: 1/8 to √2
BINS = len(EDGES) + 1


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedLabels:
    """The plane g, the scale s, and an estimate of the mean length that clipping cuts off. All of it is public."""

    level: float
    slopes: Vector
    scale: float = 1.0
    clipped: float = 0.0

    @classmethod
    def zero(cls, width: int) -> ExpectedLabels:
        """The plane with which y' is y."""
        return cls(0.0, np.zeros(width))

    def evaluate(self, points: Matrix) -> Vector:
        """g(x) of each row."""
        return np.asarray(self.level + points @ self.slopes)

    def differences(self, labels: Vector, products: Vector) -> Vector:
        """y' of each row, from slopes·x."""
        return np.asarray(np.clip((labels - self.level - products) / self.scale, -1.0, 1.0))

    def to_dict(self) -> dict[str, Any]:
        return {"level": self.level, "slopes": self.slopes.tolist(), "scale": self.scale, "clipped": self.clipped}

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> ExpectedLabels:
        numbers = (float(value[name]) for name in ("level", "scale", "clipped"))
        level, scale, clipped = numbers
        return cls(level, np.array(value["slopes"], dtype=np.float64), scale, clipped)


@dataclass(frozen=True, slots=True, eq=False)
class LabelDistances:
    """A bounded query: how many rows have |y - g(x)| in each bin."""

    plane: ExpectedLabels

    def sensitivity(self) -> float:
        return sensitivity.label_distances()

    def count(self, labels: Vector, products: Vector) -> Vector:
        """The counts of rows, from slopes·x of each."""
        distances = np.abs(labels - self.plane.level - products)
        return np.bincount(np.searchsorted(EDGES, distances), minlength=BINS).astype(np.float64)
