"""Label moments of another model, from reference records that it labelled. Pure post-processing.

The records of a reference do not depend on a model: any model can label them. E y and E y(x - μ) then follow from the records with the weights that they
have, and their errors from how these weights change under other noise (`estimation/response.py`). Where label moments of the model were bought,
records are raked to them first, as they are when a release is made (`estimation/local_reference.py`), with the question's own weight w(x).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.label_moments import LabelMoments
from dpexplain.estimation.global_slopes import guessed_slopes
from dpexplain.estimation.local_reference import MomentRaking, MomentTargets

_USUAL_DOUBT = 2e-3  # τ²: the usual squared error of the records' label moments, as a share of their variance (`estimation/global_slopes.py`)
_REHEARSED = 1.75  # by which the variance over rehearsals is enlarged: they are linear, and do not choose bins or records again


@dataclass(frozen=True, slots=True, eq=False)
class LabelledRecords:
    """Records with labels of the new model: weights of mean one, changes of log weights under other noise (K, N), and τ² (`bias`)."""

    points: Matrix
    labels: Vector
    weights: Vector
    changes: Matrix
    bias: float


@dataclass(frozen=True, slots=True, eq=False)
class BoughtMoments:
    """Released Σ w y (1, v), with the standard deviation of the noise on Σ w y, for rows whose public number is `size`.

    With `probabilities`, what was released is p instead of the label 2p - 1.
    """

    asked: LabelMoments
    released: Vector
    sigma: float
    size: int
    probabilities: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class FoundMoments:
    """E y and E y(x - μ) in the frame of a release's moments, with their standard errors."""

    t0: float
    t1: Vector
    t0_error: float
    t1_error: float


def rake_to_bought(records: LabelledRecords, bought: BoughtMoments, first_error: float, normals: Matrix) -> LabelledRecords:
    """The records with weights by which they have the bought moments; `normals` repeat the noise, (K, 1 + 2n)."""
    own = bought.asked.weights(records.points)
    total = bought.size * float(own @ records.weights) / float(records.weights.sum())
    base = own * records.weights
    share = base / base.sum()
    mean = share @ records.points
    v = records.points - mean
    y, yv = bought.asked.moments(bought.released / total)
    sigma = bought.sigma / total
    if bought.probabilities:
        y, yv, sigma = 2 * y - 1, 2 * yv - (mean - bought.asked.centre), 2 * sigma
    own_y, own_yv, gain_y, gain_yv = _gains(records, share, v, sigma, sigma * bought.asked.noise_ratio)
    t1 = yv + y * (bought.asked.centre - mean)
    target = MomentTargets(
        mean=mean,
        covariance=(v * share[:, None]).T @ v,
        t0=own_y + gain_y * (y - own_y),
        t1=own_yv + gain_yv * (t1 - own_yv),
        first_error=first_error,
        second_error=0.0,
        label_error=sigma * bought.asked.noise_ratio * sqrt(float(gain_yv.mean())),
        start=guessed_slopes(records.points, records.labels, base).values,
    )
    raking = MomentRaking(records.points, records.labels, base, target)
    weights = raking.weights()
    changes = raking.changes(weights, records.changes, normals)
    together = records.weights * weights
    return LabelledRecords(records.points, records.labels, together / together.mean(), changes, raking.bias(records.changes))


def _gains(
    records: LabelledRecords, share: Vector, v: Matrix, sigma_y: float, sigma_yv: float
) -> tuple[float, Vector, float, Vector]:
    """(E y, E yv of the records, how far to go from each to what was bought): by the variances of both.

    Bought moments that are noisier than the records' own moments would otherwise increase the error.
    """
    labels, doubt = records.labels, max(records.bias, _USUAL_DOUBT)
    y, yv = float(share @ labels), (share * labels) @ v
    moved = (records.changes - (records.changes @ share)[:, None]) * share
    products = v * (labels - y)[:, None]
    known_y = doubt * float(share @ np.square(labels - y)) + _rehearsal_variance(moved @ labels)
    known_yv = doubt * (share @ np.square(products)) + _rehearsal_variance(moved @ products)
    return y, yv, float(known_y / (known_y + sigma_y**2)), np.asarray(known_yv / (known_yv + sigma_yv**2))


def _rehearsal_variance(shifts: Any) -> Any:
    return _REHEARSED * np.square(shifts).mean(axis=0) if len(shifts) else 0.0


def found_moments(records: LabelledRecords, base: Vector, mean: Vector, covariance: Matrix) -> FoundMoments:
    """Moments of the labels over rows weighted by `base`, around μ = `mean`, for a covariance from another source.

    The part that slopes explain is converted to that covariance, so that slopes do not change where the records' own covariance has a small error.
    """
    weights = base * records.weights
    share = weights / weights.sum()
    v, slopes = records.points - mean, guessed_slopes(records.points, records.labels, weights).values
    left = records.labels - v @ slopes
    t0 = float(share @ records.labels)
    moved = (records.changes - (records.changes @ share)[:, None]) * share
    shifts = moved @ (v * left[:, None])
    noise = _REHEARSED * np.square(shifts).mean(axis=0) if len(shifts) else np.zeros(len(mean))
    spread = share @ np.square(v * left[:, None])
    t0_shift = moved @ records.labels
    t0_noise = _REHEARSED * float(np.square(t0_shift).mean()) if len(t0_shift) else 0.0
    few = float(np.square(share).sum())
    return FoundMoments(
        t0=t0,
        t1=np.asarray((share * left) @ v + covariance @ slopes),
        t0_error=sqrt(t0_noise + (few + records.bias) * float(records.labels.var())),
        t1_error=sqrt(float((noise + (few + records.bias) * spread).mean())),
    )
