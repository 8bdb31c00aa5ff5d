"""MIM made private: one Gaussian release of an influence sum for each query. `proofs/influence.md`.

The monotone influence measure (Sliwinski, Strobel & Zick 2019) adds up the ways u = x - z from the query to the rows, weighted by α(‖u‖), for rows
that the model treats like z. With s the label of z (±1) and y that of a row, and turned so that positive means "towards the explained class":

    others="ignored"    s·Σ α u 1[y = s] = Σ α (s + y)/2 · u       rows of the other class do not count
    others="against"    s·Σ α u (±1)     = Σ α y u = b_z           they count as -1; s is not needed

A soft label y = 2p - 1 enters the same formulas. Either way a record moves the sum by at most sup α(d)d, the sensitivity of b, and no iteration
follows, so the error of every number is known exactly: the standard deviation of its noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from dpexplain.arguments import is_finite, quote, require_kind
from dpexplain.core import sensitivity
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.moments import LocalMoments, Moments
from dpexplain.core.shape import noise_shape
from dpexplain.core.weights import DEFAULT_WEIGHT, Weight
from dpexplain.errors import ParameterError
from dpexplain.mechanisms.door import Door
from dpexplain.mechanisms.gaussian import GaussianMechanism
from dpexplain.mechanisms.history import History
from dpexplain.mechanisms.ports import Rows
from dpexplain.mechanisms.setting import Outcome, Setting, WithModel
from dpexplain.privacy import gdp
from dpexplain.privacy.events import PrivacyEvent

QUANTITY = "influence"
Others = Literal["ignored", "against"]
_ROUNDINGS = 1.25  # of the terms: adding two computed sums rounds once more, and a backend's error is at least ten roundings


def influence_sum(moments: Moments, sign: float) -> Vector:
    """Σ α (s + y)/2 · u for s = ±1, or Σ α y u for s = 0: the two readings of MIM, turned towards the explained class."""
    return (sign * moments.s + moments.b) / 2 if sign else moments.b


@dataclass(frozen=True, slots=True, eq=False)
class InfluenceSum:
    """The bounded query `influence_sum` in units of the noise's shape: a record moves it by at most sup α(d)d. `proofs/shape.md`, `proofs/scale.md`."""

    what: ClassVar[str] = QUANTITY
    local: LocalMoments
    sign: float
    setting: Setting
    shape: Vector
    sensitivity: float = field(init=False)

    def __post_init__(self) -> None:
        reach = sensitivity.linear(self.local.weight)
        object.__setattr__(self, "sensitivity", self.setting.sensitivity_of_sum(reach, terms=_ROUNDINGS * reach))

    @property
    def dimension(self) -> int:
        return self.setting.width

    def evaluate(self, rows: Rows, at: None = None) -> Vector:
        del at
        return influence_sum(rows.local(self.local).scale_columns(self.setting.scale), self.sign) / self.shape


@dataclass(frozen=True, slots=True)
class NoisyInfluence:
    """A plan: one release of `InfluenceSum`. Noise on column j is `shape[j]`·σ."""

    gaussian: GaussianMechanism[InfluenceSum]

    @property
    def query(self) -> LocalMoments:
        return self.gaussian.query.local

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        return (self.gaussian.event(),)

    def run(self, door: Door) -> Outcome:
        asked = self.gaussian.query
        # a sum over scaled columns is scale times that over the columns
        unit = asked.setting.into_scaled(asked.shape) / asked.setting.size
        values = door.release(self.gaussian) * unit
        error = self.gaussian.sigma * unit
        return Outcome(values, error, details={"quantity": QUANTITY, "others": "ignored" if asked.sign else "against"})


@dataclass(frozen=True, slots=True)
class Influence:
    """MIM at (ε, δ) a query, divided by the public size.

    `others` decides how rows of the other class count; None means "ignored" where the label of the query is known, from the model that the data
    were registered with or from `label`, and "against" where it is not.
    """

    private: ClassVar[bool] = True
    epsilon: float = 0.1
    delta: float = 1e-6
    others: Others | None = None
    weight: Weight = DEFAULT_WEIGHT
    label: float | None = None

    def __post_init__(self) -> None:
        gdp.mu(self.epsilon, self.delta)  # raises ParameterError for invalid values
        if self.others is not None and not (isinstance(self.others, str) and self.others in ("ignored", "against")):
            raise ParameterError(f"others must be 'ignored' or 'against', got {quote(self.others)}")
        if self.label is not None and not (is_finite(self.label) and -1 <= self.label <= 1):
            raise ParameterError(f"label must be the model's answer at the query, from -1 to 1, got {quote(self.label)}")
        require_kind("weight", self.weight, Weight, "Pass one such as dpx.weights.Gaussian(0.8)")
        sensitivity.linear(self.weight)

    def with_model(self, model: Callable[[Matrix], Vector]) -> Influence | InfluenceWithModel:
        """The mechanism with a black box that answers about encoded public points."""
        return self if self.others == "against" or self.label is not None else InfluenceWithModel(self, model)

    def plan(self, point: Vector, setting: Setting, history: History, hint: object = None) -> NoisyInfluence:
        del history, hint
        return self.plan_alone(point, setting)

    def plan_alone(self, point: Vector, setting: Setting) -> NoisyInfluence:
        shape = noise_shape(point, setting.one_hot)
        query = InfluenceSum(LocalMoments(point, self.weight, setting.scale), self._sign(), setting, shape)
        return NoisyInfluence(GaussianMechanism(query, gdp.mu(self.epsilon, self.delta)))

    def _sign(self) -> float:
        """±1 for the class of the query, 0 where rows of both classes count."""
        if self.others == "against" or (self.others is None and self.label is None):
            return 0.0
        if self.label is None:
            raise ParameterError(
                "others='ignored' needs the model's answer at the query. Register the data with model=, pass label=, "
                "or use others='against', which does not need it"
            )
        return 1.0 if self.label >= 0 else -1.0

    def to_dict(self) -> dict[str, Any]:
        return {
            "mechanism": "influence",
            "quantity": QUANTITY,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "others": self.others,
            "weight": self.weight.to_dict(),
            "label": self.label,
        }


@dataclass(frozen=True, slots=True)
class InfluenceWithModel(WithModel[Influence]):
    """`Influence` that asks the black box for the label of each query. The query is public, so asking costs nothing."""

    def plan(self, point: Vector, setting: Setting, history: History, hint: object = None) -> NoisyInfluence:
        del history, hint
        return self.plan_alone(point, setting)

    def plan_alone(self, point: Vector, setting: Setting) -> NoisyInfluence:
        return replace(self.given, label=self.label_of(point)).plan_alone(point, setting)
