"""`Explanation.to_dict` of the answers to a batch of questions, without an object for each: a service writes thousands of them a second."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Any

from dpexplain.answers.changes import change_dicts
from dpexplain.answers.contributions import adds_up, feature_values_of, plain_value
from dpexplain.answers.explanation import STATED
from dpexplain.domain import Domain
from dpexplain.release.batch import Explanations


class AnswerTemplate:
    """What the answers to all questions about one release state alike that differ in the record only, taken from the first of them."""

    def __init__(self, answers: Explanations) -> None:
        self._alike = answers.explanation_at(0).to_dict()
        self._added: dict[str, Any] = self._alike["contributions"]

    def fill(self, answers: Explanations, request_ids: Sequence[str], more: dict[str, Any]) -> list[dict[str, Any]]:
        """`explanation_at(i, record, more, request_id).to_dict()` of each answer. What is alike is shared: nobody may change it."""
        found, half, domain = answers.found, answers.release.scale.half_range, answers.release.domain
        values, errors, points, reached = (one.tolist() for one in (found.values, found.errors, answers.points, found.answer))
        has_changes = self._alike["changes"] is not None
        filled = []
        for i, (request_id, added) in enumerate(zip(request_ids, self._contributions(answers, points, reached), strict=True)):
            if added is None:
                filled.append(answers.explanation_at(i, None, more, request_id).to_dict())
                continue
            one = {
                **self._alike,
                "values": values[i],
                "error": errors[i],
                "point": points[i],
                "request_id": request_id,
                "details": answers.details_of(i) | more,
                "intercept": reached[i],
                "contributions": added,
            }
            if has_changes:
                one["changes"] = change_dicts(domain, points[i], _times(values[i], half), _times(errors[i], half), STATED)
            filled.append(one)
        return filled

    def _contributions(
        self, answers: Explanations, points: list[list[float]], reached: list[float]
    ) -> list[dict[str, Any] | None]:
        """Of each answer; None where errors are unknown or numbers do not add up, which is left to `Contributions`."""
        found, scale, domain = answers.found, answers.release.scale, answers.release.domain
        half, filled = scale.half_range, list[dict[str, Any] | None]()
        parts = found.added, found.added_errors, found.base, found.base_error, found.answer_error
        for i, row in enumerate(zip(*(part.tolist() for part in parts), strict=True)):
            values, error = _times(row[0], half), _times(row[1], half)
            base, answer, base_error = scale.answer(row[2]), scale.answer(reached[i]), row[3] * half
            if isnan(sum(error) + base_error) or not adds_up(base, sum(values), answer, scale):
                filled.append(None)
                continue
            record = (
                domain.decode_entries(points[i]) if isinstance(domain, Domain) else feature_values_of(domain, answers.points[i])
            )
            one = {"values": values, "error": error, "base": base, "answer": answer, "base_error": base_error}
            filled.append({**self._added, **one, "answer_error": row[4] * half, "record": list(map(plain_value, record))})
        return filled


def _times(values: list[float], factor: float) -> list[float]:
    return values if factor == 1.0 else [value * factor for value in values]
