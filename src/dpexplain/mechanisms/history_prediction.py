"""The non-interactive phase: new queries are answered from the released history alone. All of it is public, so answers cost nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.ball import Ball
from dpexplain.core.weights import Weight
from dpexplain.errors import InputError
from dpexplain.estimation.regression import LevelledRegression, Ridge
from dpexplain.mechanisms.history import History
from dpexplain.mechanisms.start import FEWEST, MEMORY

Method = Literal["moments", "regression", "labels", "neighbour"]


@dataclass(frozen=True, slots=True)
class Prediction:
    """A free answer: slopes, the plane's intercept where the history has one, and the leave-one-out standard error."""

    values: Vector
    intercept: float | None = None
    error: Vector | None = None


def by_regression(history: History, point: Vector, ball: Ball) -> Prediction:
    """Ridge regression of the planes on their points z_j, at z. With few answers, the nearest.

    The paper's planes are levelled (`estimation/regression.py`): their slopes have to carry the answer in the middle of the data. A plane with an
    answer of its own at z_j does not need that, and levelling would put noise into its slopes.
    """
    if history.computed_count < FEWEST:
        return by_neighbour(history, point)
    width = len(point)
    fitted = history.regressions.find(history.computed_count, lambda: _fit(*history.latest(MEMORY)))
    if isinstance(fitted, LevelledRegression):
        return Prediction(ball.project(fitted.predict(point)), None, fitted.errors * fitted.ridge.spread(point))
    ridge: Ridge = fitted
    state, error = ridge.predict(point), np.sqrt(np.square(ridge.left_out).mean(axis=0)) * ridge.spread(point)
    return Prediction(ball.project(state[:width]), float(np.clip(state[-1], -1.0, 1.0)), error[:width])


def _fit(points: Matrix, states: Matrix) -> LevelledRegression | Ridge:
    return LevelledRegression.fit(points, states) if states.shape[1] == points.shape[1] else Ridge.fit(points, states)


def by_labels(history: History, point: Vector, ball: Ball, weight: Weight) -> Prediction:
    """The local loss on the history itself: points z_j, and labels that the planes give them.

    The paper's planes go through 0 at their own point, so it takes φ_j·z_j for labels, which is not what the model answers there: most of the signal is
    lost. A plane with an answer a_j at z_j gives that; the new plane is then free at z as well.
    """
    everything = list(history)
    points, values = np.array([one.point for one in everything]), np.array([one.values for one in everything])
    offsets = points - point
    weights = weight(history.distances(points, point))
    if everything[-1].intercept is None:
        labels = np.einsum("ij,ij->i", values, points)
        return Prediction(ball.minimise((offsets * weights[:, None]).T @ offsets, (weights * labels) @ offsets))
    labels, total = np.array([one.intercept for one in everything], dtype=np.float64), float(weights.sum()) or 1.0
    mean, answer = weights @ offsets / total, float(weights @ labels) / total
    centred = offsets - mean
    slopes = ball.minimise((centred * weights[:, None]).T @ centred, (weights * (labels - answer)) @ centred)
    return Prediction(slopes, float(np.clip(answer - slopes @ mean, -1.0, 1.0)))


def by_neighbour(history: History, point: Vector) -> Prediction:
    """The explanation of the nearest computed query."""
    found = history.nearest(point)
    if found is None:
        raise InputError("nothing has been released yet, so there is nothing to answer from. Ask the explainer first")
    return Prediction(found[0].values, found[0].intercept)


def predict(method: Method, history: History, point: Vector, ball: Ball, weight: Weight) -> Prediction:
    if not len(history):
        raise InputError("nothing has been released yet, so there is nothing to answer from. Ask the explainer first")
    by: dict[str, Callable[[], Prediction]] = {
        "regression": lambda: by_regression(history, point, ball),
        "labels": lambda: by_labels(history, point, ball, weight),
        "neighbour": lambda: by_neighbour(history, point),
    }
    return by[method]()
