"""Asks the black box for one label in [-1, 1] for each private row, once, when the owner registers the data.

A row that the model cannot answer, or whose answer cannot be read, gets the label 0, and no row decides what happens to another. Errors concern the whole
declaration. They go to the owner and name the kind of failure, never the row: a model's own message may quote a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, warn

import numpy as np

from dpexplain.arguments import is_panic, quote
from dpexplain.core.answer_scale import Kind
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.domain import DomainLike
from dpexplain.domain.values import Column
from dpexplain.errors import DataError
from dpexplain.registration.declared_answers import AnswerDeclaration, Output, Reading, WrongShape

if TYPE_CHECKING:
    from dpexplain.registration.presentation import Batch

Prepare = Callable[[Any], Any]
_TRIED = 32  # rows that are asked one by one before a model counts as one that answers none
_MOST_CLIPPED = 0.1  # share of answers outside the range of probabilities or labels, at which they are something else
_RANGES = {"probability": "probabilities", "label": "labels", "value": "bounds="}
_INFRASTRUCTURE = (ConnectionError, TimeoutError, MemoryError)  # errors that do not depend on the rows
RAISED = "the model raised"  # how messages about its own errors begin
UNREADABLE = "none of the model's answers can be read. Try it on rows of the same columns and types first, and declare output="


@dataclass(frozen=True, slots=True, repr=False)
class Labeller:
    """Asks the black box for labels. `table` converts columns to the kind of table that the model was given at registration."""

    model: Any
    target: Any
    output: Output | None
    table: Callable[[dict[str, Any]], Any]
    bounds: tuple[float, float] | None = None
    domain: DomainLike | None = None
    _reading: Reading = field(init=False, compare=False)  # how its answers are read

    def __post_init__(self) -> None:
        if self.target is None:
            object.__setattr__(self, "target", 1)
        declared = AnswerDeclaration(self.target, self.output, self.bounds)
        object.__setattr__(self, "_reading", declared.resolve(self.model))

    def label_encoded(self, decode: Callable[[Matrix], dict[str, Column]], rows: Matrix) -> Vector:
        """Labels of encoded rows; `decode` makes columns of them."""
        return self(decode(rows))

    def __call__(self, columns: dict[str, Column]) -> Vector:
        """Labels of rows that are given as NumPy columns. Errors are raised: rows that are public may decide about them."""
        count = len(next(iter(columns.values())))
        if self.domain is None:
            return self._ask(self.table(columns), count)
        from dpexplain.registration.presentation import present_columns  # here, and not above: it loads libraries of data frames

        labels = np.empty(count)
        for batch in present_columns(columns, self.domain, count, self.table):
            labels[batch.positions] = self._ask(batch.rows, len(batch.positions))
        return labels

    def _ask(self, rows: Any, count: int) -> Vector:
        return ask_model(self.model, rows, count, self._reading, "reference")


def ask_model(model: Any, rows: Any, count: int, reading: Reading, about: str) -> Vector:
    """Labels of *public* rows as given; DataError where the model or the declaration is not fit for one of them.

    `model` is an estimator with `predict_proba` or `predict`, or any callable.
    """
    question = question_of(model, reading.kind)
    try:
        answers, labels = _ask_once(question, reading, rows, count)
    except Exception as error:
        raise _failure(error, about, count) from None
    if np.isnan(labels).any():
        if reading.kind == "class" and reading.is_name:
            raise DataError(
                f"some answers about the {about} rows are not names of classes, as target={quote(reading.target)} is. Return class names, or give the"
                " model predict_proba and classes_"
            )
        raise DataError(
            f"some answers about the {about} rows are NaN or cannot be read. Repair the model's output, or declare output="
        )
    if count >= _TRIED and reading.share_outside(answers) > (_MOST_CLIPPED if reading.kind != "value" else 1 - 1 / count):
        low, high = reading.scale.low, reading.scale.high
        raise DataError(
            f"answers about the {about} rows are outside {low:g} to {high:g}, the range of {_RANGES[reading.kind]}. Ask a model with answers of that kind"
        )
    return labels


def label_rows(
    model: Any,
    rows: Any,
    count: int,
    declared: AnswerDeclaration,
    domain: DomainLike,
    prepare: Prepare | None = None,
    *,
    part: bool = False,
) -> Vector:
    """Labels of *private* rows as given; NaN for those that the model cannot answer. `settle` makes them 0.

    `prepare` makes of a table what the model takes. DataError where the declaration does not fit the model, or where the model answers none of the
    rows. For `part` of a table the latter is raised only if it has many rows, because a few odd rows may be all of a part.
    """
    from dpexplain.registration.missing_marks import find_undeclared, mark_batches
    from dpexplain.registration.presentation import present

    reading = declared.resolve(model)
    ask = question_of(model, reading.kind)
    question = ask if prepare is None else lambda table: ask(prepare(table))
    undeclared = find_undeclared(question, rows, domain)
    batches = mark_batches(list(present(rows, domain, count, undeclared)), question, rows, domain)
    with _hide_warnings():
        return _label_batches(batches, count, question, reading, part=part)


def _label_batches(batches: list[Batch], count: int, question: Callable[[Any], Any], reading: Reading, *, part: bool) -> Vector:
    found = [_ask_together(question, reading, batch.rows, len(batch.positions)) for batch in batches]
    failures = [one for one in found if isinstance(one, DataError)]
    if len(failures) == len(found) and not (part and count < _TRIED):
        raise failures[0]
    labels = np.empty(count)
    for batch, one in zip(batches, found, strict=True):
        if isinstance(one, DataError):
            one = _ask_apart(question, reading, batch.rows, np.arange(len(batch.positions)))
        labels[batch.positions] = one
    return labels


@contextmanager
def _hide_warnings() -> Iterator[None]:
    """Warnings of the model without their text, which may quote private rows."""
    with catch_warnings(record=True) as given:
        yield
    for kind in sorted({one.category.__name__ for one in given}):
        warn(f"the model gave a {kind} on the private rows. Ask it about rows of your own to read it", stacklevel=2)


def question_of(model: Any, kind: Kind) -> Callable[[Any], Any]:
    """How the model is asked about a table: with the columns that it was fitted with, where it lists them."""
    from dpexplain.registration.model_columns import column_selection

    ask, select = _method_of(model, kind), column_selection(model)

    def question(rows: Any) -> Any:
        try:
            return ask(rows if select is None else select(rows))
        except BaseException as error:
            if is_panic(error):
                raise RuntimeError("a library panicked") from None
            raise

    return question


def _method_of(model: Any, kind: Kind) -> Callable[[Any], Any]:
    if kind == "probability" and hasattr(model, "predict_proba"):
        return model.predict_proba  # type: ignore[no-any-return]
    if hasattr(model, "predict"):
        return model.predict  # type: ignore[no-any-return]
    if callable(model):
        return model  # type: ignore[no-any-return]
    if hasattr(model, "predict_proba"):
        raise DataError(
            f"the model has predict_proba only, and output={kind!r} asks its predict. Register it with output='probability'"
        )
    raise DataError("the model must have predict_proba or predict, or be callable on the rows. Wrap it in a function")


def _ask_once(question: Callable[[Any], Any], reading: Reading, rows: Any, count: int) -> tuple[Any, Vector]:
    """The answers to one question, and the labels that they are.

    A model that drops axes of length one answers two rows by (2, k) and one by (k,). Whether a row is alone in a question follows from other rows, so
    it must not decide whether the answer is read: about one row such a model is asked twice over.
    """
    from dpexplain.registration.presentation import take

    answers = question(rows)
    try:
        return answers, reading.labels(answers, count)
    except WrongShape:
        if count != 1:
            raise
        return answers, reading.labels(question(take(rows, np.array([0, 0]))), 2)[:1]


def _ask_together(question: Callable[[Any], Any], reading: Reading, rows: Any, count: int) -> Vector | DataError:
    """All rows at once, or why that is not possible; then in parts if the model can answer one of the first rows by itself."""
    try:
        return _ask_once(question, reading, rows, count)[1]
    except (DataError, *_INFRASTRUCTURE) as error:
        raise _failure(error, "private", count) from None
    except Exception as error:  # whatever a foreign model raises; its text may quote private rows, so only its type is kept
        failure = _failure(error, "private", count)
    for position in range(min(count, _TRIED)):
        if not np.isnan(_ask_apart(question, reading, rows, np.array([position]))[0]):
            return _ask_apart(question, reading, rows, np.arange(count))
    return failure


def _ask_apart(question: Callable[[Any], Any], reading: Reading, rows: Any, positions: np.ndarray[Any, Any]) -> Vector:
    """Ask in pieces, larger after each that is answered and smaller after each that is not: rows that cannot be answered alone are NaN."""
    from dpexplain.registration.presentation import take

    labels, start, size = np.full(len(positions), np.nan), 0, 1
    while start < len(positions):
        piece = positions[start : start + size]
        try:
            labels[start : start + size] = _ask_once(question, reading, take(rows, piece), len(piece))[1]
            start, size = start + size, 2 * size
        except _INFRASTRUCTURE as error:
            raise _failure(error, "private", len(piece)) from None
        except Exception:
            start, size = (start + 1, 1) if len(piece) == 1 else (start, len(piece) // 2)
    return labels


def _failure(error: Exception, about: str, count: int) -> DataError:
    if isinstance(error, DataError):
        return error
    if isinstance(error, WrongShape):
        return DataError(f"the model must return one answer for each of the {count} rows: got {error}")
    return DataError(f"{RAISED} {type(error).__name__} on the {about} rows. Try it on rows of the same columns and types first")
