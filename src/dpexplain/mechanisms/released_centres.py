"""Where the sums of answers by moments are centred: at the mean of the centres that an explainer's earlier answers have released. Pure post-processing.

Every answer releases a centre, the same query of the same rows with noise of its own, so the mean of k centres has 1/k of the noise's variance. The bound
of the second stage holds for every centre (`proofs/release_moments.md`). Only centres of answers that the ledger has stored count: one that was drawn for
an answer that is not stored, because another run of the same request was quicker or the ledger failed, is not paid for, and nothing may depend on it.
The mean is taken anew whenever the number of centres has doubled: in between, rows have to sum around one centre only, and each answer adds noise of its
own to these sums.
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
    """The centres of those answers of one explainer that are stored. Safe for threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._total: Vector | None = None
        self._count = 0
        self._averaged = 0  # centres in the mean that sums are taken around
        self._around: Around | None = None

    def keep(self, released: Vector) -> None:
        """Add the centre of an answer that is stored."""
        with self._lock:
            self._total = released if self._total is None else self._total + released
            self._count += 1

    def choose_query(self, own: Vector, sigma: float, make: Callable[[Vector, float], NormalisedMoments]) -> Around:
        """What an answer sums around that has released `own`: the mean of the centres that are kept, or its own where there are none.

        Each has noise `sigma`. `make` turns a centre and its noise into the query.
        """
        with self._lock:
            if self._total is None:
                return Around(make(own, sigma), sigma)
            if self._around is None or self._count >= 2 * self._averaged:
                noise, self._averaged = sigma / sqrt(self._count), self._count
                self._around = Around(make(self._total / self._count, noise), noise)
            return self._around
