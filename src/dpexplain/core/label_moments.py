"""Moments of labels alone: how a model's answers vary with the columns. Relabelling a release pays for these only. Proof: `proofs/label_moments.md`.

With v = x - centre, any public centre, and a public scale g ≥ 0,

    Σ w(x) y (1, √g v)    with    w(x) = 1/√(1 + g ‖v‖²),

so no record with |y| ≤ 1 can move the sum by more than 1. These are n + 1 numbers; moments of x alone are not asked for again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

import numpy as np

from dpexplain.core import sensitivity
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.moments import RawSums
from dpexplain.core.release_moments import NormalisedMoments, Scales

_SHARE = 2.0  # of the moments yv beside y, for a record of typical length
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class LabelMoments(NormalisedMoments):
    """A bounded query: Σ w(x) y (1, √g v); `variance` is the columns' public spread, by which g is chosen."""

    def __post_init__(self) -> None:
        total = float(np.maximum(self.variance, 0.0).sum())
        scales = Scales(zeroth=0.5, first=0.0, label=_SHARE / sqrt(max(total, _TINY)), second=0.0, squares=0.0)
        object.__setattr__(self, "scales", scales)

    @property
    def dimension(self) -> int:
        return self.layout.width + 1

    def sensitivity(self) -> float:
        return sensitivity.label_moments()

    def vector(self, raw: RawSums) -> Vector:
        """The statistic, from what rows answer to this query."""
        return np.append(raw.t0, sqrt(self.scales.label) * raw.t1)

    def moments(self, released: Vector) -> tuple[float, Vector]:
        """(Σ w y, Σ w y v) from released numbers."""
        return float(released[0]), released[1:] / sqrt(self.scales.label)

    @property
    def noise_ratio(self) -> float:
        """The standard deviation of the noise on each of Σ w y v, in units of that on Σ w y."""
        return 1 / sqrt(self.scales.label)


@dataclass(frozen=True, slots=True, eq=False)
class LabelSums:
    """Normalised moments of rows with labels that differ from the registered ones: `ask` gives encoded rows K labels each, (rows, K), row by row."""

    moments: NormalisedMoments
    ask: Callable[[Matrix], Matrix]
