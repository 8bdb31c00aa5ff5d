"""What a mechanism needs from the outside world: private rows and randomness. One page holds both.

Adapters live above: `backends/` implements `Rows`, `noise/` implements `Noise`. A mechanism never imports either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.marginals import Histograms, PairTables
from dpexplain.core.moments import LocalMoments, Moments, RawMoments, RawSums
from dpexplain.core.shapley import ShapleySum
from dpexplain.core.sketch import CentreMoments, CentreSums, NormalisedMoments, NormalisedSums


@runtime_checkable
class Noise(Protocol):
    """The sole origin of randomness."""

    @property
    def secure(self) -> bool:
        """Whether draws come from a cryptographic source that nobody can replay. A service accepts no other."""
        ...

    def standard_normal(self, size: int) -> Vector:
        """`size` independent standard normal numbers."""
        ...

    def uniform(self, size: int) -> Vector:
        """`size` independent numbers, uniform in the open interval (0, 1)."""
        ...


class Rows(Protocol):
    """Private records and their labels. Answers are exact and private: they leave only through a paid release."""

    @property
    def width(self) -> int:
        """Number of encoded columns n."""
        ...

    @property
    def summation_error(self) -> float:
        """Public bound on |computed - true| ≤ summation_error · Σ|terms| for any sum this backend returns."""
        ...

    def local(self, query: LocalMoments) -> Moments:
        """(Σ α u uᵀ, Σ α y u, Σ α u) with u = x - z, for one point of interest."""
        ...

    def local_many(self, queries: Sequence[LocalMoments]) -> list[Moments]:
        """`local` of each query, in order, from one read of the rows: `local(q) == local_many([q])[0]` to the last bit."""
        ...

    def raw(self, query: RawMoments) -> RawSums:
        """(Σ w, Σ w v, Σ w v vᵀ, Σ w y, Σ w y v) with v = x - anchor."""
        ...

    def centre(self, query: CentreMoments) -> CentreSums:
        """(Σ v, Σ (v² - 1/8) over numbers) with v = x - public centre: stage 1 of a release."""
        ...

    def normalised(self, query: NormalisedMoments) -> NormalisedSums:
        """Σ w(x)F(x, y), rows scaled to length one: stage 2 of a release."""
        ...

    def histograms(self, query: Histograms) -> Vector:
        """How many rows fall into each cell of each attribute: exact counts."""
        ...

    def pair_tables(self, query: PairTables) -> Matrix:
        """Counts of every pair of bins of different attributes; symmetric, zero within an attribute, exact."""
        ...


@runtime_checkable
class SingleRows(Protocol):
    """Rows that can also be put to a black box one by one. Not every backend can: sparse rows have too many features for it."""

    def shapley(self, query: ShapleySum) -> Vector:
        """Σ φ(x) over the rows that the query asks, exact."""
        ...
