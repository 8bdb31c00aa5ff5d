"""The last phase: new queries answered from the released history alone. Everything is public, so nothing is paid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpexplain.core.arrays import Vector
from dpexplain.core.ball import Ball
from dpexplain.core.weights import Weight
from dpexplain.errors import InputError
from dpexplain.estimation.regression import LevelledRegression
from dpexplain.mechanisms.history import History
from dpexplain.mechanisms.start import FEWEST, MEMORY

Method = Literal["regression", "labels", "neighbour"]


@dataclass(frozen=True, slots=True)
class Prediction:
    """An answer without a price, and its standard error by leave-one-out where that is known."""

    values: Vector
    error: Vector | None = None


def by_regression(history: History, point: Vector, ball: Ball) -> Prediction:
    """Ridge regression of the explanations φ_j on their points z_j, levelled, at z (`estimation/regression.py`). With few answers, the nearest."""
    if history.computed < FEWEST:
        return by_neighbour(history, point)
    fitted = LevelledRegression.fit(*history.latest(MEMORY))
    return Prediction(ball.project(fitted.predict(point)), fitted.errors * fitted.ridge.spread(point))


def by_labels(history: History, point: Vector, ball: Ball, weight: Weight) -> Prediction:
    """The paper's: the local loss on the history itself, argmin Σ α(‖z_j - z‖)(φ·(z_j - z) - φ_j·z_j)² over the ball.

    φ_j·z_j is not what the model answers at z_j (explanations go through 0 at their own point), so most of the signal is lost.
    """
    everything = list(history)
    points, values = np.array([one.point for one in everything]), np.array([one.values for one in everything])
    labels, offsets = np.einsum("ij,ij->i", values, points), points - point
    weights = weight(np.linalg.norm(offsets, axis=1))
    return Prediction(ball.minimise((offsets * weights[:, None]).T @ offsets, (weights * labels) @ offsets))


def by_neighbour(history: History, point: Vector) -> Prediction:
    """The explanation of the nearest computed query."""
    found = history.nearest(point)
    if found is None:
        raise InputError("nothing has been released yet, so there is nothing to answer from: ask the explainer first")
    return Prediction(found[0].values)


def predict(method: Method, history: History, point: Vector, ball: Ball, weight: Weight) -> Prediction:
    if not len(history):
        raise InputError("nothing has been released yet, so there is nothing to answer from: ask the explainer first")
    by = {
        "regression": lambda: by_regression(history, point, ball),
        "labels": lambda: by_labels(history, point, ball, weight),
        "neighbour": lambda: by_neighbour(history, point),
    }
    return by[method]()
