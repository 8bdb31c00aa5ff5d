"""What reading a random part of the rows would buy, and cost: computed, not timed. `proofs/subsampling.md`, docs/performance.md.

One statistic of L2 sensitivity 1 from 1.5 M rows at (ε, δ) = (0.1, 1e-6). Keeping each row with probability p and dividing by p multiplies
the noise of the kept rows' sum by 1/p. Exact amplification (Balle, Barthe & Gaboardi 2018) says how much less noise that sum needs, in one
release alone; the filter of this package can claim none of it. The sample's own error comes on top, here for terms of size 0.2.
"""

from __future__ import annotations

from math import expm1, log1p, sqrt

from dpexplain.privacy import gdp

ROWS, EPSILON, DELTA, TYPICAL = 1_500_000, 0.1, 1e-6, 0.2


def base_mu(p):
    """μ of the Gaussian on the kept rows that sampling makes (ε, δ)-DP: ε' = ln(1 + (e^ε - 1)/p), δ' = δ/p."""
    return gdp.mu(log1p(expm1(EPSILON) / p), DELTA / p)


def run():
    full = 1 / gdp.mu(EPSILON, DELTA)
    rows = []
    for p in (1.0, 0.3, 0.1, 0.03, 0.01, 0.001):
        sampling = sqrt((1 - p) / p * ROWS) * TYPICAL
        rows.append(
            {
                "share of rows read": p,
                "noise, if amplification counted": 1 / (base_mu(p) * p) / full,
                "noise, as the filter counts": 1 / p,
                "error of the sample / noise of a full pass": sampling / full,
            }
        )
    return rows
