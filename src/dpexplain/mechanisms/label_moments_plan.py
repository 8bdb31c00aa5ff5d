"""A model's label moments as one Gaussian release: n + 1 numbers for each class, all classes at the price of one. `proofs/label_moments.md`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import nextafter
from typing import ClassVar, TypeAlias, cast

import numpy as np

from dpexplain.core import sensitivity
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.label_moments import LabelMoments, LabelSums
from dpexplain.mechanisms.door import Door
from dpexplain.mechanisms.gaussian import GaussianMechanism
from dpexplain.mechanisms.ports import RelabelledRows, Rows
from dpexplain.mechanisms.quiet import hide_warnings
from dpexplain.mechanisms.setting import Setting
from dpexplain.privacy.events import PrivacyEvent

Ask: TypeAlias = Callable[[Matrix], Matrix]
"""Encoded rows → one label in [-1, 1] for each model or class that is asked about, (rows, K)."""


@dataclass(frozen=True, slots=True, eq=False)
class LabelMomentSum:
    """The bounded query, for one label or for the probabilities of `classes` classes, whose labels 2p - 1 are released as p.

    It is asked at any `LabelMoments`: the bound holds for every centre and scale. `ask` answers about encoded rows; None takes the one label that
    rows were registered with.
    """

    width: int
    setting: Setting
    ask: Ask | None
    classes: int = 1
    what: ClassVar[str] = "refine: label moments"

    @property
    def sensitivity(self) -> float:
        return self.setting.sensitivity_of_sum(sensitivity.label_moments())

    @property
    def dimension(self) -> int:
        return self.classes * (self.width + 1)

    def evaluate(self, rows: Rows, at: LabelMoments) -> Vector:
        if self.ask is None:
            return at.vector(rows.normalised(at))
        with hide_warnings():
            sums = cast(RelabelledRows, rows).label_sums(LabelSums(at, self._labels))
        return np.concatenate([at.vector(one) for one in sums])

    def _labels(self, rows: Matrix) -> Matrix:
        """What is summed of each row: its label, or its probabilities, cut to length one."""
        ask = cast(Ask, self.ask)
        found = row_wise_matrix(ask, self.classes)(rows)
        return found if self.classes == 1 else simplex(found)


def row_wise_matrix(ask: Ask, columns: int) -> Ask:
    """`ask`, with labels cut to [-1, 1] and -1, or 0 for a single label, where a row cannot be answered. No row affects the label of another."""
    missing = 0.0 if columns == 1 else -1.0

    def answers(rows: Matrix) -> Matrix:
        try:
            found = np.asarray(ask(rows), dtype=np.float64).reshape(len(rows), columns)
        except Exception:  # a foreign model may raise anything about some row: halve until that row is found
            if len(rows) == 1:
                return np.full((1, columns), missing)
            half = len(rows) // 2
            return np.concatenate([answers(rows[:half]), answers(rows[half:])])
        return np.clip(np.nan_to_num(found, nan=missing, posinf=1.0, neginf=-1.0), -1.0, 1.0)

    return answers


def simplex(labels: Matrix) -> Matrix:
    """Labels 2p - 1 of all classes as p, each row divided by its length where that exceeds one: probabilities never do."""
    p = (labels + 1) / 2
    return np.asarray(p / np.maximum(np.linalg.norm(p, axis=1, keepdims=True), 1.0))


@dataclass(frozen=True, slots=True)
class LabelMomentsPlan:
    """A plan with one release, made from public information only."""

    mechanism: GaussianMechanism[LabelMomentSum]
    asked: LabelMoments

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        return (self.mechanism.event(),)

    def run(self, door: Door) -> Vector:
        return door.release(self.mechanism, self.asked)


def plan_label_moments(asked: LabelMoments, mu: float, setting: Setting, ask: Ask | None = None) -> LabelMomentsPlan:
    """A plan for one model that costs at most `mu`."""
    return LabelMomentsPlan(label_mechanism(asked.layout.width, mu, setting, ask, 1), asked)


def label_mechanism(width: int, mu: float, setting: Setting, ask: Ask | None, classes: int) -> GaussianMechanism[LabelMomentSum]:
    """The noise for label moments around a centre that is not known yet."""
    return GaussianMechanism(LabelMomentSum(width, setting, ask, classes), nextafter(mu, 0.0))
