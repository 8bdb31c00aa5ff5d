"""Lower bounds on μ from counts of right and wrong guesses: valid at any number of runs and for any guesses. `proofs/audit.md`.

A score distinguishes two data sets. If what it is computed from is μ-GDP then, whatever the score,

    P(score with > score without) ≤ Φ(μ/√2)                      (the area under the ROC curve)
    Φ⁻¹(1 - α) - Φ⁻¹(β) ≤ μ                                       (false alarms α, misses β, at any one threshold)

so a Clopper-Pearson bound on the left is one on μ. The first is tighter where the leak is Gaussian, the second where it is rare and certain.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import beta, binom

from dpexplain.core.arrays import Vector

_WINS = 0.8  # of the error probability goes to the bound from wins, the rest to that from one threshold
_POWER = 0.9
_MOST = 50.0  # times too little noise: larger factors are not searched


def mu_from_scores(inside: Vector, outside: Vector, threshold: float, error: float) -> float:
    """A μ that the scores' source exceeds or equals with probability at least 1 - `error`.

    `threshold` was chosen on other runs. The two bounds share `error`, and the larger one is returned.
    """
    wins = int((inside > outside).sum())
    misses, alarms = int((inside <= threshold).sum()), int((outside > threshold).sum())
    from_wins = mu_from_wins(wins, len(inside), _WINS * error)
    return max(from_wins, mu_from_errors(alarms, misses, len(inside), (1 - _WINS) * error), 0.0)


def mu_from_wins(wins: int, runs: int, error: float) -> float:
    """A lower bound on μ from `runs` independent pairs of scores, `wins` of which were the larger one with the record."""
    return sqrt(2) * float(ndtri(beta.ppf(error, wins, runs - wins + 1))) if wins else 0.0


def mu_from_errors(alarms: int, misses: int, runs: int, error: float) -> float:
    """A lower bound on μ from false alarms and misses at one threshold, in `runs` runs each."""
    most_alarms, most_misses = (_at_most(count, runs, error / 2) for count in (alarms, misses))
    return max(float(ndtri(1 - most_alarms) - ndtri(most_misses)), 0.0)


def _at_most(count: int, runs: int, error: float) -> float:
    """Clopper and Pearson's upper bound on a probability."""
    return float(beta.ppf(1 - error, count + 1, runs - count)) if count < runs else 1.0


def estimated_mu(inside: Vector, outside: Vector) -> float:
    """The likely μ, not a bound: what the share of wins would be if scores were Gaussian."""
    share = float((inside > outside).mean())
    most = 1 - 0.5 / len(inside)
    return max(sqrt(2) * float(ndtri(min(share, most))), 0.0)


def best_threshold(inside: Vector, outside: Vector, runs: int, error: float) -> float:
    """Where `mu_from_errors` is likely to be largest in `runs` further runs."""
    candidates = np.quantile(np.concatenate([inside, outside]), np.linspace(0.005, 0.995, 100))
    alarms = (outside[:, None] > candidates).mean(axis=0) * runs
    misses = (inside[:, None] <= candidates).mean(axis=0) * runs
    found = [mu_from_errors(round(a), round(m), runs, error) for a, m in zip(alarms, misses, strict=True)]
    return float(candidates[int(np.argmax(found))])


def noticed_factor(mu: float, claimed: float, runs: int, error: float) -> float | None:
    """By what factor noise would have to be too small for an audit like this to detect it, nine times out of ten.

    `mu` is what a sound mechanism shows here; with 1/f of the noise it shows fμ. None where no factor up to 50 is detected.
    """
    if mu <= 0:
        return None

    def would_detect(factor: float) -> bool:
        wins = int(binom.ppf(1 - _POWER, runs, ndtr(factor * mu / sqrt(2))))
        return mu_from_wins(wins, runs, _WINS * error) > claimed

    if not would_detect(_MOST):
        return None
    low, high = 0.0, _MOST
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if would_detect(middle) else (middle, high)
    return high
