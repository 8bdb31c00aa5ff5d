"""Where the sums of answers by moments are centred: at the mean of all centres that an explainer's answers have released. Pure post-processing.

Every answer releases a centre, the same query of the same rows with noise of its own, so the mean of k centres has 1/k of the noise's variance. The bound
of the second stage holds for every centre (`proofs/release_moments.md`). The mean is taken anew whenever the number of centres has doubled: in between,
rows have to sum around one centre only, and each answer adds noise of its own to these sums.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from threading import Lock
from typing import NamedTuple

from dpexplain.core.arrays import Vector
from dpexplain.core.release_moments import NormalisedMoments


class Around(NamedTuple):
    """The query of the second stage, and the noise of the centre that it is around."""

    query: NormalisedMoments
    sigma: float


class ReleasedCentres:
    """The centres that the answers of one explainer have released so far. Safe for threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._total: Vector | None = None
        self._count = 0
        self._around: Around | None = None

    def add(self, released: Vector, sigma: float, make: Callable[[Vector, float], NormalisedMoments]) -> Around:
        """What to sum around after this release, whose noise is `sigma`. `make` turns a centre and its noise into the query."""
        with self._lock:
            self._total = released if self._total is None else self._total + released
            self._count += 1
            if self._around is None or self._count & (self._count - 1) == 0:  # a power of two
                noise = sigma / sqrt(self._count)
                self._around = Around(make(self._total / self._count, noise), noise)
            return self._around
