"""Answers from history. By moments, the default, an answer pays only for what the history lacks. By a descent there are three variants.

By moments (`mechanisms/shared_answer.py`) the first answer buys noisy sums of all rows at its full price. Later ones use them again, for any record, weight
and plane: they are free where the history holds as much as a fresh answer of the same price would buy, and buy the difference where it holds less.

By a descent, Algorithms 2 and 3: the descent starts from what past answers predict, so that an answer costs less.

rule="history", the default of descents, is not in the paper. A regression on public points predicts this answer from past ones, and its
leave-one-out error r estimates how far off the prediction is. The answer then gets the share r of a full answer's μ², and the descent is planned
for a ball of √r times the radius. The prediction is post-processing and costs nothing. `docs/interactive.md` compares what both rules save.

rule="paper" makes the paper's rule private: answers within ln T/√T of a computed one are copied; else β̃ = ‖∇L(start)‖ + noise is
released and paid for, and the number of steps, their size and their noise follow from β̃ by the paper's formulas. `proofs/adaptive.md`.

calibration="paper" is Algorithms 2 and 3 to the letter, for reproduction: exponential mechanism, exact β, the paper's σ. It is not private.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from dpexplain.arguments import quote, require_kind
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.plane import PAPER_RADIUS, Plane
from dpexplain.core.weights import DEFAULT_WEIGHT, Weight
from dpexplain.errors import ParameterError
from dpexplain.estimation.public_points import PublicModel
from dpexplain.mechanisms.gradient import Gradient, plain_gradient
from dpexplain.mechanisms.history import History
from dpexplain.mechanisms.measured import measured_plan
from dpexplain.mechanisms.model_start import ModelPlane, StartsFromModel
from dpexplain.mechanisms.moments_answer import By, chosen_by, has_moments, require_by
from dpexplain.mechanisms.paper_algorithms import paper_plan, plan_end
from dpexplain.mechanisms.plane_choice import choose_plane, described_plane, paid_gradient, require_model
from dpexplain.mechanisms.ports import Plan
from dpexplain.mechanisms.setting import AuditSetup, Calibration, Outcome, Setting, require_calibration, require_steps
from dpexplain.mechanisms.shared_answer import plan_shared_answer
from dpexplain.mechanisms.start import Start, best_start, cold_start, nearest_start, plan_copy, predict_start
from dpexplain.mechanisms.warm import cold_plan, warm_plan
from dpexplain.privacy import gdp, paper
from dpexplain.privacy.budget import Budget

Rule = Literal["history", "paper"]
PAPER_STEPS = 300  # the paper's T
DEFAULT_PRICE = {"epsilon": 0.1, "delta": 1e-6}  # of an answer where no mechanism is chosen
# The smallest share of the full price: cheaper answers hardly move from their predictions, and would only confirm them.
FLOOR = 0.1


@dataclass(frozen=True, slots=True)
class Adaptive:
    """Explain from history: at most (ε, δ) for each query, less where past answers are informative.

    - `by="moments"` pays only for what the history lacks, with error bars and contributions: usually (ε, δ) for the first answer and nothing for all others,
      each as close as a fresh answer of `Basic` at (ε, δ). `by="descent"` starts from a prediction. None chooses as for `Basic`.
    - `steps`, the paper's T and the most iterations a query may take, asks for a descent; so does rule="paper".
    - calibration="paper" follows the paper's rule whatever `rule` says.
    - `plane` and `radius` are as for `Basic`.
    - `stop_at`, for calibration="paper" only, is Algorithm 2's own total (ε, δ): the stream of queries ends with `PaperBudgetExhausted` where its test of
      ε_spent and δ_spent, by strong composition, says so. The explainer's `Budget` counts exactly and is checked first, before rows are read.
    """

    epsilon: float = 0.01
    delta: float = 1e-7
    steps: int | None = None
    calibration: Calibration = "exact"
    rule: Rule = "history"
    weight: Weight = DEFAULT_WEIGHT
    radius: float | None = None
    norm: int = 2
    plane: Plane | None = None
    by: By | None = None
    stop_at: Budget | None = None

    name: ClassVar[str] = "adaptive"
    exponent: ClassVar[int] = 1  # a start at distance r gets the share r**exponent of the price
    only_beta: ClassVar[bool] = False  # whether T' follows from β alone, not from max(β, √n σ_min)

    def __post_init__(self) -> None:
        gdp.mu(self.epsilon, self.delta)  # raises ParameterError for invalid values
        require_steps(self.steps)
        require_calibration(self.calibration)
        if not (isinstance(self.rule, str) and self.rule in ("history", "paper")):
            raise ParameterError(f"rule must be 'history' (ours) or 'paper' (its rule, made private), got {quote(self.rule)}")
        plane, radius = choose_plane(self.plane, self.radius, self.norm, self.calibration, self.weight)
        object.__setattr__(self, "plane", plane)
        object.__setattr__(self, "radius", radius)
        require_by(self)
        self._require_stop()

    def _require_stop(self) -> None:
        if self.stop_at is None:
            return
        require_kind("stop_at", self.stop_at, Budget, "Write stop_at=dpx.Budget(epsilon=1.0, delta=1e-6)")
        if self.calibration != "paper":
            raise ParameterError(
                "stop_at is the paper's rule for the paper's own bookkeeping, which calibration='paper' has. Leave it out: the explainer's budget stops exactly"
            )

    @property
    def most_steps(self) -> int:
        """T, the most iterations of a descent."""
        return self.steps or PAPER_STEPS

    @property
    def private(self) -> bool:
        """False in the paper's own calibration: its exact β shows in what is spent (SPEC §9.1)."""
        return self.calibration == "exact"

    @property
    def audit_setup(self) -> AuditSetup:
        """Enough queries for the history to matter. They lie farther apart under the paper's rule, which copies answers to near points."""
        if "paper" in (self.rule, self.calibration):
            return AuditSetup("pull", 2, 1.0)
        return AuditSetup("spread", 3) if self.by != "descent" and has_moments(self) else AuditSetup("pull", 7)

    def with_model(self, model: Callable[[Matrix], Vector]) -> Adaptive | AdaptiveWithModel:
        """The mechanism with a black box that answers about encoded public points. The paper's plane does not use it."""
        return self if self.plane == "paper" else AdaptiveWithModel(self, model)

    def uses_answers(self, setting: Setting) -> bool:
        return chosen_by(self, setting) == "descent"

    def plan(self, point: Vector, setting: Setting, history: History, hint: Start | None = None) -> Plan[Outcome]:
        require_model(self.plane)
        if chosen_by(self, setting) == "moments":
            return plan_shared_answer(self, point, setting, history)
        return self.plan_with(point, setting, history, hint)

    def plan_with(
        self,
        point: Vector,
        setting: Setting,
        history: History,
        hint: Start | None,
        anchor: float | None = None,
        plane: ModelPlane | None = None,
    ) -> Plan[Outcome]:
        """`plan` by a descent, with the model's answer at the point where planes go through it, and with the model's plane over the domain."""
        if self.calibration == "paper" or self.rule == "paper":
            return self._by_the_paper(point, setting, history, anchor)
        # the same point again gets the same answer; a near point is computed and paid for
        copied = plan_copy(history, point, within=0.0)
        return copied or self._by_history(paid_gradient(self, point, setting, anchor), history, hint, plane)

    def _by_history(self, gradient: Gradient, history: History, hint: Start | None, plane: ModelPlane | None) -> Plan[Outcome]:
        ball, floor = gradient.feasible(self.norm), FLOOR ** (1 / self.exponent)
        cold = cold_start(gradient.dimension) if plane is None else Start(plane.state(gradient), 1.0, "model")
        start = best_start(history, gradient.local.point, ball, gradient.setting, cold, floor, hint)
        return warm_plan(self, gradient, start, start.distance**self.exponent, plane)

    def _by_the_paper(self, point: Vector, setting: Setting, history: History, anchor: float | None) -> Plan[Outcome]:
        found = plan_end(self.stop_at, history) or plan_copy(history, point, paper.reuse_distance(self.most_steps))
        if found is not None:
            return found
        if self.calibration == "paper":
            return paper_plan(self, plain_gradient(point, setting, self.weight, self.radius or PAPER_RADIUS), history)
        gradient = paid_gradient(self, point, setting, anchor)
        if history.computed_count == 0:
            return cold_plan(self, gradient)
        ball, width = gradient.feasible(self.norm), gradient.dimension
        start = predict_start(history, point, ball, setting, cold_start(width), FLOOR)
        start = start if start.kind == "prediction" else nearest_start(history, point, ball, setting, width)
        return measured_plan(self, replace(gradient, reach=None), start)

    def to_dict(self) -> dict[str, Any]:
        return {
            "mechanism": self.name,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "steps": self.steps,
            "calibration": self.calibration,
            "rule": self.rule if self.calibration == "exact" else "paper",
            "weight": self.weight.to_dict(),
            "radius": self.radius,
            "norm": self.norm,
            **described_plane(self.plane),
            **({} if self.by is None else {"by": self.by}),
            **({} if self.stop_at is None else {"stop_at": {"epsilon": self.stop_at.epsilon, "delta": self.stop_at.delta}}),
        }


@dataclass(frozen=True, slots=True)
class AdaptiveWithModel(StartsFromModel[Adaptive]):
    """`Adaptive` or `Enhanced` with the black box, as `BasicWithModel`: the model's plane is the start of descents while there is no history."""

    def uses_answers(self, setting: Setting) -> bool:
        return self.given.uses_answers(setting)

    def plan(self, point: Vector, setting: Setting, history: History, hint: Start | None = None) -> Plan[Outcome]:
        given, anchor = self.given, self.anchor_of(self.given.plane, point)
        if chosen_by(given, setting) == "descent":
            return given.plan_with(point, setting, history, hint, anchor, self.public.plane(setting))
        return plan_shared_answer(given, point, setting, history, anchor, PublicModel(self.model))


def default_mechanism(**options: Any) -> Adaptive:
    """What answers where no mechanism is chosen: `Adaptive`, at the price of `Basic`'s answers unless `options` have another."""
    return Adaptive(**DEFAULT_PRICE | options)
