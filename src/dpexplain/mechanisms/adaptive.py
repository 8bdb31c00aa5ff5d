"""Algorithms 2 and 3: answers that begin where the history ends, so that they cost less. Three ways to do it:

rule="history", the default, is not in the paper. Past answers predict this one (a regression on public things), and their leave-one-out
error r says how far off the prediction is. The answer then gets the share r of a full answer's μ², and walks as if the ball had r times its
radius. Nothing is paid to find out. `docs/interactive.md` has what it saves, beside the paper's rule.

rule="paper" makes the paper's rule private: answers within ln T/√T of a computed one are copied; else β̃ = ‖∇L(start)‖ + noise is
released and paid for, and the number of steps, their size and their noise follow from β̃ by the paper's formulas. `proofs/adaptive.md`.

calibration="paper" is Algorithms 2 and 3 to the letter, for reproduction: exponential mechanism, exact β, the paper's σ. It is not private.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from dpexplain.core import sensitivity
from dpexplain.core.arrays import Vector
from dpexplain.core.ball import Ball
from dpexplain.core.weights import Stable, Weight
from dpexplain.errors import ParameterError
from dpexplain.mechanisms.base import AuditSetup, Calibration, Outcome, Setting, require_calibration, require_steps
from dpexplain.mechanisms.history import History
from dpexplain.mechanisms.measured import measured_plan
from dpexplain.mechanisms.paper_algorithms import paper_plan
from dpexplain.mechanisms.ports import Plan
from dpexplain.mechanisms.start import Start, best, copyable, nearest, predicted
from dpexplain.mechanisms.warm import cold_plan, warm_plan
from dpexplain.privacy import gdp, paper

Rule = Literal["history", "paper"]
# The smallest share of the full price: cheaper answers hardly move from their predictions, and would only confirm them.
FLOOR = 0.1


@dataclass(frozen=True, slots=True)
class Adaptive:
    """Explain from history: at most (ε, δ) a query, less where past answers are informative. `steps` is the paper's T, the most
    iterations a query may take. calibration="paper" follows the paper's rule whatever `rule` says.
    """

    epsilon: float = 0.01
    delta: float = 1e-7
    steps: int = 300
    calibration: Calibration = "exact"
    rule: Rule = "history"
    weight: Weight = field(default_factory=Stable)
    radius: float = 1.0
    norm: int = 2

    name: ClassVar[str] = "adaptive"
    exponent: ClassVar[int] = 1  # a start at distance r gets the share r**exponent of the price
    only_beta: ClassVar[bool] = False  # whether T' follows from β alone, not from max(β, √n σ_min)

    def __post_init__(self) -> None:
        gdp.mu(self.epsilon, self.delta)  # refuses what has no meaning
        require_steps(self.steps)
        require_calibration(self.calibration)
        if self.rule not in ("history", "paper"):
            raise ParameterError(f"rule must be 'history' (ours) or 'paper' (its rule, made private), got {self.rule!r}")
        Ball(self.radius, self.norm)
        sensitivity.gradient(self.weight, self.radius)

    @property
    def private(self) -> bool:
        """False in the paper's own calibration: its exact β shows in what is spent (SPEC §9.1)."""
        return self.calibration == "exact"

    @property
    def audit_setup(self) -> AuditSetup:
        """As many queries as it takes until the history matters; the paper's rule copies answers to points that are not near."""
        return AuditSetup("pull", 2, 1.0) if "paper" in (self.rule, self.calibration) else AuditSetup("pull", 7)

    @property
    def ball(self) -> Ball:
        return Ball(self.radius, self.norm)

    def plan(self, point: Vector, setting: Setting, history: History, hint: Start | None = None) -> Plan[Outcome]:
        if self.calibration == "paper" or self.rule == "paper":
            return self._by_the_paper(point, setting, history)
        # The same point again is the same answer; a merely near one is worth its price.
        return copyable(history, point, within=0.0) or self._by_history(point, setting, history, hint)

    def _by_history(self, point: Vector, setting: Setting, history: History, hint: Start | None) -> Plan[Outcome]:
        start = best(history, point, self.ball, FLOOR ** (1 / self.exponent), hint)
        return warm_plan(self, point, setting, start, start.distance**self.exponent)

    def _by_the_paper(self, point: Vector, setting: Setting, history: History) -> Plan[Outcome]:
        copied = copyable(history, point, paper.reuse_distance(self.steps))
        if copied is not None:
            return copied
        if self.calibration == "paper":
            return paper_plan(self, point, setting, history)
        if history.computed == 0:
            return cold_plan(self, point, setting)
        start = predicted(history, point, self.ball, FLOOR)
        return measured_plan(self, point, setting, start if start.kind == "prediction" else nearest(history, point, self.ball))

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
        }
