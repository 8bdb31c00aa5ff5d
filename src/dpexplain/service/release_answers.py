"""The answers of a release to questions that wait together, composed as they are sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from dpexplain.core.plane import Plane
from dpexplain.errors import DpexplainError, QueryError
from dpexplain.privacy.budget import Guarantee
from dpexplain.release.answer_dicts import AnswerTemplate
from dpexplain.release.batch import Explanations, free_of_charge
from dpexplain.release.release import Release

Question: TypeAlias = tuple[Any, str, str | None]  # record, request id, target


@dataclass(frozen=True, slots=True)
class Composed:
    """An answer that is composed already: what it cost, and its JSON."""

    cost: Guarantee
    answer: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return self.answer


@dataclass(frozen=True, slots=True)
class ReleaseAnswers:
    """Answers from a release without a model, by its own plane or another."""

    release: Release
    plane: Plane | None = None
    _templates: dict[str | None, AnswerTemplate] = field(default_factory=dict, init=False)  # by target

    def answer_each(self, questions: Sequence[Question]) -> list[Composed | Exception]:
        """The answer to each question, or its error; questions about the same target are answered together."""
        targets = {target for _, _, target in questions}
        if len(targets) == 1:
            return self._answer_or_fail(questions, targets.pop())
        found: dict[int, Composed | Exception] = {}
        for target in targets:
            places = [i for i, question in enumerate(questions) if question[2] == target]
            found |= zip(places, self._answer_or_fail([questions[i] for i in places], target), strict=True)
        return [found[i] for i in range(len(questions))]

    def _answer_or_fail(self, questions: Sequence[Question], target: str | None) -> list[Composed | Exception]:
        try:
            answers = self.explain([record for record, _, _ in questions], target)
        except DpexplainError as error:
            return [error] * len(questions)
        cost = free_of_charge(answers.release.guarantee)
        composed = [Composed(cost, one) for one in self._compose(answers, [questions[row][1] for row in answers.rows], target)]
        if not answers.skipped:
            return list(composed)
        found: dict[int, Composed | Exception] = {one.row: QueryError(one.reason) for one in answers.skipped}
        found |= zip(answers.rows, composed, strict=True)
        return [found[row] for row in range(len(questions))]

    def explain(self, records: Sequence[Any], target: str | None) -> Explanations:
        """The explanations of those records that can be asked about; ParameterError for an unknown target."""
        release = self.release if target is None else self.release.of(target)
        return release.explain_many(records, plane=self.plane, on_error="skip")

    def _compose(self, answers: Explanations, request_ids: Sequence[str], target: str | None) -> list[dict[str, Any]]:
        if not len(answers):
            return []
        template = self._templates.get(target)
        if template is None:
            template = self._templates[target] = AnswerTemplate(answers)
        return template.fill(answers, request_ids, self.release.target_details)
