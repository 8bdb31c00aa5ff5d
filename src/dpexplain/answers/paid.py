"""Batches of paid explanations, with the refusal that ended them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, TypeVar, overload

from dpexplain.answers.explanation import Explanation
from dpexplain.answers.explanation_batch import ExplanationBatch
from dpexplain.domain import Skipped
from dpexplain.errors import BudgetExhausted
from dpexplain.progress import with_bar

T = TypeVar("T")
Answered: TypeAlias = tuple[Sequence[Explanation], BudgetExhausted | None]
_LONG = 20  # fewer answers than this need no progress bar


class PaidExplanations(ExplanationBatch):
    """Explanations in the order of the questions. `refusal` is the BudgetExhausted that ended them early, or None.

    Answers before a refusal are returned, because they are paid for. `asked` is how many questions there were, and `skipped` the records that could
    not be asked about, where those were to be left out.
    """

    skipped: tuple[Skipped, ...] = ()

    def __init__(self, explanations: Iterable[Explanation], asked: int, refusal: BudgetExhausted | None = None) -> None:
        self._explanations = tuple(explanations)
        self.asked, self.refusal = asked, refusal

    @property
    def complete(self) -> bool:
        return self.refusal is None

    @overload
    def __getitem__(self, index: int) -> Explanation: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Explanation]: ...
    def __getitem__(self, index: int | slice) -> Explanation | Sequence[Explanation]:
        return self._explanations[index]

    def __len__(self) -> int:
        return len(self._explanations)

    def __repr__(self) -> str:
        if self.refusal is None:
            return f"PaidExplanations({len(self)} of {self.asked} questions)"
        return f"PaidExplanations({len(self)} of {self.asked} questions, then refused: {self.refusal})"


def answer_in_batches(questions: Sequence[T], answer: Callable[[Sequence[T]], Answered], together: int = 1) -> PaidExplanations:
    """Answer in order, `together` at a time, until all are answered or the budget is exhausted; with a progress bar on a terminal when there are many."""
    answered: list[Explanation] = []
    for group in in_groups(questions, together, "Explaining"):
        more, refusal = answer(group)
        answered += more
        if refusal is not None:
            return PaidExplanations(answered, len(questions), refusal)
    return PaidExplanations(answered, len(questions))


def in_groups(items: Sequence[T], size: int, description: str) -> Iterable[Sequence[T]]:
    """The items, `size` at a time, with a progress bar on a terminal when there are many."""
    groups = [items[start : start + size] for start in range(0, len(items), size)]
    return with_bar(groups, description) if len(items) >= _LONG else groups
