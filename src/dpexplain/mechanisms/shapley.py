"""Private SHAP: the mean of per-record baseline Shapley values, released once for each query. `proofs/shapley.md`.

Interventional SHAP averages over background rows. Here these are the private rows: each row x contributes its own Shapley values φ(x) of the game
between z and x, cut to a public length, and the mean over the rows gets Gaussian noise. Features are players, so few numbers are released, and
‖φ(x)‖ is bounded whatever the number of features: the noise is small. The model is called 2d times for each row that is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, cast

import numpy as np

from dpexplain.arguments import quote
from dpexplain.core import sensitivity
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.baseline_shapley import Orders, ShapleySum, exact_grid, largest_norm
from dpexplain.errors import ParameterError
from dpexplain.mechanisms.door import Door
from dpexplain.mechanisms.gaussian import GaussianMechanism
from dpexplain.mechanisms.history import History
from dpexplain.mechanisms.ports import Rows, SingleRows
from dpexplain.mechanisms.quiet import hide_warnings
from dpexplain.mechanisms.setting import Outcome, Setting, WithModel
from dpexplain.privacy import gdp
from dpexplain.privacy.events import PrivacyEvent

QUANTITY = "Shapley values"


@dataclass(frozen=True, slots=True, eq=False)
class ShapleyTotal:
    """The bounded query Σ φ(x): each record's values are cut to a public length. Sums are exact, so there is no summation error."""

    what: ClassVar[str] = QUANTITY
    asked: ShapleySum
    setting: Setting

    @property
    def sensitivity(self) -> float:
        return self.asked.sensitivity() * self.setting.neighbours.multiplier

    @property
    def dimension(self) -> int:
        return self.asked.players

    def evaluate(self, rows: Rows, at: None = None) -> Vector:
        del at
        with hide_warnings():
            return cast(SingleRows, rows).shapley(self.asked)  # `plan` has checked it


@dataclass(frozen=True, slots=True)
class NoisyShapley:
    """A plan: one release of Σ φ(x), divided by the public number of rows that are asked."""

    gaussian: GaussianMechanism[ShapleyTotal]
    rows: int
    model_answer: float  # f(z): the model is asked at a public point

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        return (self.gaussian.event(),)

    @property
    def sum_query(self) -> ShapleySum:
        return self.gaussian.query.asked

    def run(self, door: Door) -> Outcome:
        place, values = self._columns(), door.release(self.gaussian) / self.rows
        error = np.full(self.sum_query.players, self.gaussian.sigma / self.rows)
        details = {
            "quantity": QUANTITY,
            "rows": self.rows,
            "features": self.sum_query.players,
            "model_answer": self.model_answer,
        }
        return Outcome(values @ place, error @ place, details=details)

    def _columns(self) -> Matrix:
        """(d, n): a feature's number goes to its own column, for a category to the query's, and to all alike where it has none."""
        owner, point = self.sum_query.owner, self.sum_query.point
        of = np.arange(self.sum_query.players)[:, None] == owner
        single = of.sum(axis=1, keepdims=True) == 1
        own = np.where(single, of, of * point)
        return np.asarray(np.where(own.any(axis=1, keepdims=True), own, of / of.sum(axis=1, keepdims=True)), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Shapley:
    """SHAP values at (ε, δ) a query, with the private rows as background.

    A value is a feature's contribution to this answer, f(z) - mean f(x) in all; a category's goes to the query's own column. `rows` is about how many
    rows are asked, a public number (None: all of them): fewer cost fewer model calls and get more noise, because nothing is claimed for
    sampling. `clip` cuts each record's values to this length; None is the proven bound, which cuts nothing that is exact.
    """

    private: ClassVar[bool] = True
    epsilon: float = 0.1
    delta: float = 1e-6
    rows: int | None = None
    clip: float | None = None

    def __post_init__(self) -> None:
        gdp.mu(self.epsilon, self.delta)  # raises ParameterError for invalid values
        if self.rows is not None and not (isinstance(self.rows, int) and self.rows >= 1):
            raise ParameterError(f"rows must be a whole number of at least 1, got {quote(self.rows)}")
        if self.clip is not None:
            sensitivity.clipping_bound(self.clip)

    def with_model(self, model: Callable[[Matrix], Vector]) -> ShapleyWithModel:
        """The mechanism with a black box that answers about encoded rows."""
        return ShapleyWithModel(self, model)

    def plan(self, point: Vector, setting: Setting, history: History, hint: object = None) -> NoReturn:
        del point, setting, history, hint
        raise ParameterError("Shapley values need the model when a question is asked. Register the data with model=")

    def to_dict(self) -> dict[str, Any]:
        return {
            "mechanism": "shapley",
            "quantity": QUANTITY,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "rows": self.rows,
            "clip": self.clip,
        }


@dataclass(frozen=True, slots=True)
class ShapleyWithModel(WithModel[Shapley]):
    """`Shapley` with the black box it asks."""

    def plan(self, point: Vector, setting: Setting, history: History, hint: object = None) -> NoisyShapley:
        del history, hint  # no answer depends on earlier ones
        if not setting.single_rows:
            raise ParameterError("rows of this kind cannot be put to a model one by one. Register them as a table")
        answer = float(self.model(point[None])[0])  # a model that cannot answer raises before anything is spent
        owner = players_of(setting)
        share = 1.0 if self.given.rows is None else min(self.given.rows / setting.size, 1.0)
        clip = self.given.clip or largest_norm(int(owner[-1]) + 1)
        query = ShapleySum(point, self.model, owner, clip, share, exact_grid(setting.size))
        gaussian = GaussianMechanism(ShapleyTotal(query, setting), gdp.mu(self.given.epsilon, self.given.delta))
        return NoisyShapley(gaussian, max(query.expected_count(setting.size), 1), answer)


def players_of(setting: Setting) -> Orders:
    """The feature that each encoded column belongs to. A one-hot block is one feature, and so is every other column."""
    first = np.ones(setting.width, dtype=np.intp)
    for start, stop in setting.one_hot:
        first[start + 1 : stop] = 0
    return np.cumsum(first) - 1
