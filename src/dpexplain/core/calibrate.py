"""From noisy sums to a solver: estimate, reference, error bars. The error bars are the linear ones, not yet calibrated."""

from __future__ import annotations

import numpy as np

from dpexplain.core.answer import Solver
from dpexplain.core.denoise import estimate
from dpexplain.core.reference import build
from dpexplain.core.sketch import NormalisedMoments, NormalisedSums


def calibrated(sums: NormalisedSums, query: NormalisedMoments, sigma: float, radius: float) -> Solver:
    found = estimate(sums, query, sigma)
    reference, _ = build(found, query)
    return Solver.of(found, reference, query.layout, radius, np.ones(query.layout.width))
