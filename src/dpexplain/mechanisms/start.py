"""Uses of the released history for a new query, at no cost: an answer to copy, or a starting point and an estimate of its distance."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.ball import Ball, FreeBall
from dpexplain.estimation.regression import LevelledRegression
from dpexplain.mechanisms.door import Door
from dpexplain.mechanisms.history import History, ReleasedAnswer
from dpexplain.mechanisms.setting import Outcome, Setting
from dpexplain.privacy.events import PrivacyEvent

FEWEST = 5  # answers that a regression needs at least
MEMORY = 2000  # latest answers that it is fitted to: older ones add little
_EACH_FITTED, _MOST_LEFT_OUT = 32, 128


@dataclass(frozen=True, slots=True)
class Copy:
    """A plan that reads no row: the answer of a computed neighbour."""

    source: ReleasedAnswer
    distance: float

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        return ()

    def run(self, door: Door) -> Outcome:
        del door
        details: dict[str, Any] = {"start": "copied", "gradients": 0, "distance": self.distance}
        found = self.source
        return Outcome(found.values, copied=True, details=details, plane=found.plane or "paper", intercept=found.intercept or 0.0)


@dataclass(frozen=True, slots=True)
class Start:
    """A feasible state, over scaled columns, with an estimate of its distance from the answer, as a share of the answer's length (1: unknown)."""

    values: Vector
    distance: float
    kind: str


def plan_copy(history: History, point: Vector, within: float) -> Copy | None:
    """A plan that copies the nearest computed answer; None unless that lies within the given distance."""
    found = history.nearest(point)
    return Copy(*found) if found is not None and found[1] <= within else None


def best_start(
    history: History, point: Vector, ball: Ball | FreeBall, setting: Setting, cold: Start, floor: float, hint: Start | None
) -> Start:
    """The history's prediction or the `hint` of a release, whichever has the smaller estimated distance; `cold` where neither is known."""
    found = predict_start(history, point, ball, setting, cold, floor)
    if hint is None or hint.distance >= found.distance:
        return found
    return Start(ball.project(setting.into_scaled(hint.values)), max(hint.distance, floor), hint.kind)


def predict_start(history: History, point: Vector, ball: Ball | FreeBall, setting: Setting, cold: Start, floor: float) -> Start:
    """A start by ridge regression of past answers on their points; `cold` while there are too few.

    The estimate of its distance is the leave-one-out error as a share of the past answers' own length, larger where the point is unlike past
    ones, and never below `floor`: answers that hardly move from their predictions would confirm them, and each next one would move
    less. As a share of the ball's radius it would be small where noise has shortened all answers and predictions are worthless.
    """
    if history.computed_count < FEWEST:
        return cold
    count = fitted_count(history.computed_count)
    past = history.starts.find(count, lambda: PastPlanes.fit(*history.latest(MEMORY, count)))
    distance = past.relative_error(ball.radius * setting.largest_scale) * past.fitted.ridge.spread(point)
    if distance >= 1:
        return cold
    state = setting.into_scaled(_widen(past.fitted.predict(point), len(cold.values)))
    return Start(ball.project(state), max(distance, floor), "prediction")


def fitted_count(computed: int) -> int:
    """How many of so many answers a start is predicted from: all while they are few, else all but less than a sixteenth of them, and never 128 or more.

    A fit to 1,500 answers about 500 words takes half a second. This way one fit serves up to 128 answers, and follows from the history alone.
    """
    step = 1 << (computed // _EACH_FITTED).bit_length()
    return computed - computed % min(step, _MOST_LEFT_OUT)


@dataclass(frozen=True, slots=True, eq=False)
class PastPlanes:
    """A regression of past answers on their points, with the answers' root mean square length."""

    fitted: LevelledRegression
    width: int  # slopes of a state, without its answer
    length: float

    @classmethod
    def fit(cls, points: Matrix, states: Matrix) -> PastPlanes:
        width = points.shape[1]
        length = float(np.sqrt(np.square(states[:, :width]).sum(axis=1).mean()))
        return cls(LevelledRegression.fit(points, states), width, length)

    def relative_error(self, radius: float) -> float:
        """The leave-one-out error of the slopes as a share of their own root mean square length, or of the ball's radius if that is less."""
        length = min(radius, self.length)
        return float(np.linalg.norm(self.fitted.errors[: self.width])) / length if length > 0 else inf


def nearest_start(history: History, point: Vector, ball: Ball | FreeBall, setting: Setting, width: int) -> Start:
    """The answer of the nearest computed neighbour, projected: it may come from a larger ball."""
    found = history.nearest(point)
    if found is None:
        return cold_start(width)
    return Start(ball.project(setting.into_scaled(_widen(found[0].state, width))), 1.0, "neighbour")


def _widen(state: Vector, width: int) -> Vector:
    """The state, filled with zeros to this width. Planes of older histories have no intercept and start with 0."""
    return np.concatenate([state[:width], np.zeros(max(width - len(state), 0))])


def cold_start(width: int) -> Start:
    return Start(np.zeros(width), 1.0, "cold")
