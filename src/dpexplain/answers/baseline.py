"""What contributions are compared with: the average, a declared record, or a public middle where nothing is known that stands for the average."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpexplain.answers.contributions import (
    AVERAGE,
    Contributions,
    feature_names,
    feature_titles,
    feature_values_of,
    per_feature,
    shapley_contributions,
    stored_contributions,
)
from dpexplain.core.answer_scale import AnswerScale
from dpexplain.core.arrays import Vector
from dpexplain.core.layout import Layout
from dpexplain.domain import DomainLike, TextDomain
from dpexplain.errors import QueryError
from dpexplain.privacy.budget import Guarantee

MIDDLE, NO_WORDS = "the middle of all ranges", "a text without any of these words"


@dataclass(frozen=True, slots=True, eq=False)
class Baseline:
    """The encoded record that contributions are compared with, and its name in sentences."""

    values: Vector
    name: str


def declared_baseline(record: Any, domain: DomainLike) -> Baseline:
    """A public record in place of the average. QueryError names it where it is not of the domain."""
    try:
        return Baseline(domain.encode_query(record), "the baseline")
    except QueryError as error:
        what = str(error).partition(". ")[0]  # without the remedies of a question, such as clip=True
        raise QueryError(f"the baseline does not fit the domain: {what}. Declare a record of values within the domain") from None


def public_baseline(domain: DomainLike) -> Baseline:
    """The middle of every range and an equal share of every category: it is known without any row, and is no average of them.

    For texts it is one without any word of the vocabulary, so that only words that a text has add something.
    """
    if isinstance(domain, TextDomain):
        return Baseline(np.zeros(domain.width), NO_WORDS)
    return Baseline(Layout.of(domain.blocks).centre, MIDDLE)


def contributions_against(
    baseline: Baseline, answer: Mapping[str, Any], domain: DomainLike, scale: AnswerScale, guarantee: Guarantee
) -> Contributions:
    """Contributions of the plane in a stored answer: what the record's values add compared with those of the baseline.

    Where slopes have errors, the error of a feature is at most the sum over its columns of each slope's, times the distance.
    """
    point, slopes, error = np.array(answer["point"]), np.array(answer["values"]), answer.get("error")
    away = point - baseline.values
    added = scale.slopes(per_feature(domain, slopes * away))
    spread = None if error is None else scale.slopes(per_feature(domain, np.array(error) * np.abs(away)))
    reached = scale.answer(answer["intercept"])
    return Contributions(
        names=feature_names(domain),
        values=added,
        base=reached - float(added.sum()),
        answer=reached,
        error=spread,
        scale=scale,
        record=feature_values_of(domain, point),
        average=baseline.name,
        guarantee=guarantee,
        titles=feature_titles(domain),
        details={"quantity": "plane", "plane": str(answer["plane"]), "source": baseline.name},
    )


def contributions_of(
    answer: Mapping[str, Any], domain: DomainLike, scale: AnswerScale, guarantee: Guarantee, baseline: Baseline | None
) -> Callable[[], Contributions] | None:
    """A function that computes the contributions of a stored answer: SHAP values as stored, those of a plane as stored where they are compared with the
    same baseline or the average, or else against the baseline. None for what is no plane and for the paper's, which is 0 at every record."""
    if "model_answer" in answer["details"]:
        return lambda: shapley_contributions(answer, domain, scale, guarantee)
    if "added" in answer and answer["added"].get("baseline") == (None if baseline is None else baseline.values.tolist()):
        name = AVERAGE if baseline is None else baseline.name
        return lambda: stored_contributions(answer, domain, scale, guarantee, name)
    if not is_compared(answer.get("plane"), answer.get("intercept")):
        return None
    return lambda: contributions_against(baseline or public_baseline(domain), answer, domain, scale, guarantee)


def is_compared(plane: str | None, intercept: float | None) -> bool:
    """Whether a plane estimates the model's answers: the paper's does not, which goes through 0 at its own point."""
    return plane in ("fitted", "anchored") and intercept is not None
