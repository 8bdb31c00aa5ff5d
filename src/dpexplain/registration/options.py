"""Options of registration, the same for every kind of rows: each option is declared, checked and documented here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import Parameter, getdoc, signature
from pathlib import Path
from types import NoneType
from typing import Any, TypedDict, TypeVar

import numpy as np

from dpexplain.arguments import quote, require_kind, require_text
from dpexplain.errors import DataError, ParameterError
from dpexplain.privacy.budget import Budget
from dpexplain.privacy.model_card import ModelCard
from dpexplain.privacy.relation import Neighbours, Relation
from dpexplain.registration.declared_answers import AnswerDeclaration, Output

Where = str | Path | Sequence[str | Path]  # files of rows
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrationOptions:
    """Options of every way to register rows:

    - `output` declares what an answer is: "probability" (of the class `target`; 0 to 1), "class" (+1 where it is `target`) or "value" (a number within
      the public `bounds`, clipped to them). It may be left out for a classifier, for a function that returns a probability for each class, and for
      labels in [-1, 1]. An answer that cannot be read counts as the middle.
    - `target` is the class to explain, 1 unless another is named. `target="all"` explains every class of a model with `classes_`, all for the price
      of one; for releases of tables, with reference records.
    - `unit` names the column that says who owns a row, and at most `max_rows_per_unit` of each owner's rows are kept: the first ones in order,
      whatever their values. Rows without an owner are left out.
    - `relation` is "add-remove" or "replace-one": what the guarantee compares.
    - `size` is the public row count m̄ that sums are divided by. By default it is the number of rows kept, which then is public.
    - `name` tells data sets apart in a ledger.
    - `cap` is the most that all releases and explainers opened on these data may spend together, whichever ledgers they use. Without one, `spent`
      states their total and nothing is refused beyond each budget.
    - `model_card` says how private the model's training was (a `ModelCard`, a mapping, or a JSON file), for `data.guarantees`.
    """

    target: Any = None
    output: Output | None = None
    bounds: tuple[float, float] | None = None
    unit: str | None = None
    max_rows_per_unit: int = 1
    relation: Relation | str = Relation.ADD_REMOVE
    size: int | None = None
    name: str = "data"
    cap: Budget | None = None
    model_card: ModelCard | Mapping[str, Any] | str | Path | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "model_card", ModelCard.read(self.model_card))
        _ = self.neighbours  # raises for options that make no neighbouring relation
        _ = self.answers
        if self.size is not None and not (isinstance(self.size, int) and self.size >= 1):
            raise ParameterError(f"size must be a whole number of at least 1, got {quote(self.size)}")
        require_text("name", self.name)
        require_kind("cap", self.cap, (Budget, NoneType), "Pass dpx.Budget(epsilon=1.0, delta=1e-6)")

    @property
    def neighbours(self) -> Neighbours:
        """The neighbouring relation: what one unit of protection is."""
        return Neighbours(Relation.parse(self.relation), self.unit, self.max_rows_per_unit)

    @property
    def answers(self) -> AnswerDeclaration:
        """What answers mean."""
        return AnswerDeclaration(self.target, self.output, self.bounds)

    def split_classes(self, model: Any) -> tuple[RegistrationOptions, tuple[Any, ...]]:
        """(options for the first class, all classes) where all of a model's classes are asked about; these options and () otherwise."""
        if not (isinstance(self.target, str) and self.target == "all"):
            return self, ()
        classes = getattr(model, "classes_", None)
        if classes is None or self.output not in (None, "probability"):
            raise DataError(
                "target='all' is for probabilities of named classes. Give the model an attribute classes_ that lists them, "
                "as scikit-learn's classifiers have, and leave output= out"
            )
        listed = tuple(np.asarray(classes).ravel().tolist())
        if len({str(one) for one in listed}) < max(len(listed), 1):
            raise DataError(f"the model's classes_ must be one or more different names, got {quote(list(listed))}. Correct them")
        for one in listed:
            require_text("a name in classes_", str(one))
        return replace(self, target=listed[0], output="probability"), listed

    def public_size(self, rows: int) -> int:
        """m̄ as declared, or the row count. Summation error is bounded for up to twice as many rows, so more are refused."""
        if rows == 0:
            raise DataError("no row has an owner. Pass as unit= the column that says who owns a row")
        if self.size is None:
            return rows
        if rows > 2 * self.size:
            raise DataError("size is less than half of the rows kept. Declare a public row count closer to the truth")
        return self.size


class OptionKeywords(TypedDict, total=False):
    """`RegistrationOptions` as keywords, for type checkers and editors."""

    target: Any
    output: Output | None
    bounds: tuple[float, float] | None
    unit: str | None
    max_rows_per_unit: int
    relation: Relation | str
    size: int | None
    name: str
    cap: Budget | None
    model_card: ModelCard | Mapping[str, Any] | str | Path | None


def document_options(function: F) -> F:
    """A decorator of functions that take `**options`: `help` and `inspect` then show each option, its default and its meaning."""
    own, texts = signature(function), [function.__doc__ and getdoc(function), getdoc(RegistrationOptions)]
    named = [one for one in own.parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
    function.__signature__ = own.replace(parameters=[*named, *signature(RegistrationOptions).parameters.values()])  # type: ignore[attr-defined]
    function.__doc__ = "\n\n".join(text for text in texts if text)
    return function
