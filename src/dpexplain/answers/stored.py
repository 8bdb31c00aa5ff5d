"""What a ledger stores of an answer, and how it is read back: all of it is public."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from dpexplain.answers.baseline import Baseline, contributions_of
from dpexplain.answers.expectation import AskedData, expected_error
from dpexplain.answers.explanation import Explanation
from dpexplain.answers.shared_effects import shared_effects
from dpexplain.core.arrays import Vector
from dpexplain.domain.queries import Notes
from dpexplain.errors import DpexplainError, PaperBudgetExhausted
from dpexplain.ledger.port import Settled
from dpexplain.mechanisms.history import ReleasedAnswer
from dpexplain.mechanisms.setting import Outcome
from dpexplain.privacy.budget import Guarantee, round_up
from dpexplain.privacy.events import mu_of, price

ANCHORED = "anchored optima"  # how ledgers that are older than planes name the quantity of anchored answers


def stored_answer(point: Vector, outcome: Outcome, *, declared: dict[str, Any] | None = None) -> dict[str, Any]:
    """`declared` is what the owner declared answers to be when this one was computed."""
    return {
        **({"declared": declared} if declared else {}),
        "point": point.tolist(),
        "values": outcome.values.tolist(),
        "error": None if outcome.error is None else outcome.error.tolist(),
        "copied": outcome.copied,
        "details": outcome.details,
        **({"stopped": True} if outcome.stopped else {}),
        **({} if outcome.plane is None else {"plane": outcome.plane, "intercept": outcome.intercept}),
        **({} if outcome.added is None else {"added": outcome.added}),
        **({"related": [list(pair) for pair in outcome.related]} if outcome.related else {}),
        **({} if outcome.sums is None else {"sums": outcome.sums}),
    }


def explanation_of(
    answer: dict[str, Any], notes: Notes, about: AskedData, baseline: Baseline | None, **stated: Any
) -> Explanation:
    """Reads a stored answer as an explanation. `notes` say how the query was read; `stated` has its domain, cost, guarantee and further fields.

    Contributions are compared with `baseline`, if there is one. `about` describes the data that were asked: the expected error follows from it where
    there are no error bars.
    """
    plane = quantity_and_plane(answer)[1]
    expected = expected_error(answer["values"], plane, about, stated["cost"], stated["scale"]) if answer["error"] is None else {}
    details = answer["details"] | expected | ({"read_as": notes} if notes else {})
    details |= shared_effects(answer.get("related", ()), stated["domain"])
    if details.get("capped"):
        details["cap"] = (
            f"The cap of {details['radius']:.3g} on the length of the slopes binds: they are shorter than the data say."
        )
    return Explanation(
        values=np.array(answer["values"]),
        names=stated["domain"].names,
        point=np.array(answer["point"]),
        error=None if answer["error"] is None else np.array(answer["error"]),
        copied=answer["copied"],
        details=details,
        plane=plane,
        intercept=answer.get("intercept"),
        added=contributions_of(answer, stated["domain"], stated["scale"], stated["guarantee"], baseline),
        **stated,
    )


def refusal_of(done: Settled | DpexplainError, total: Guarantee, remaining: Callable[[], Guarantee]) -> DpexplainError:
    """The refusal of a request that was refused, or whose answer the paper's stopping rule withheld. `total` and `remaining` are by exact accounting."""
    if not isinstance(done, Settled):
        return done
    totals = done.answer["details"]["paper"]
    spent, limit = {"epsilon": totals["total_epsilon"], "delta": totals["total_delta"]}, totals["stop_at"]
    return PaperBudgetExhausted(
        f"the paper's stopping rule ended this stream: by its bookkeeping, with the answer that is withheld, ε is {round_up(spent['epsilon'])} "
        f"of {limit['epsilon']:g} and δ is {spent['delta']:.3g} of {limit['delta']:g}. "
        "Answers go on for nothing with dpx.NonInteractive(explainer.history), or begin again with a larger stop_at=",
        requested=replace(total, mu=mu_of(price(done.events)), subject="The answer that is withheld"),
        remaining=remaining(),
        spent=spent,
    )


def quantity_and_plane(answer: dict[str, Any]) -> tuple[str | None, str | None]:
    """The quantity and the plane of a stored answer. Ledgers older than planes name neither for the paper's optima."""
    quantity = answer["details"].get("quantity")
    if quantity == ANCHORED:
        return None, "anchored"
    return quantity, answer.get("plane") or (None if quantity else "paper")


def released_answer(answer: dict[str, Any]) -> ReleasedAnswer:
    """A stored answer as an entry of a history."""
    plane = quantity_and_plane(answer)[1]
    intercept = None if plane == "paper" else answer.get("intercept", answer["details"].get("anchor"))
    return ReleasedAnswer(answer["point"], answer["values"], answer["copied"], answer["details"], plane, intercept)
