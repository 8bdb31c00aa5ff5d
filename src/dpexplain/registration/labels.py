"""Asking the black box: one label in [-1, 1] for each private row, computed once, when the owner registers the data.

Errors go to the owner and say which kind of thing went wrong, never on which row: a model's own message may quote one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dpexplain.core.arrays import Vector
from dpexplain.errors import DataError

Output = Literal["probability", "class"]


@dataclass(frozen=True, slots=True, repr=False)
class Labeller:
    """The black box with how it is asked. `table` makes of columns the kind of table that the model was given before."""

    model: Any
    target: Any
    output: Output
    table: Callable[[dict[str, Any]], Any]

    def __call__(self, columns: dict[str, Any]) -> Vector:
        """Labels of *public* rows."""
        count = len(next(iter(columns.values())))
        options: dict[str, Any] = {"target": self.target, "output": self.output, "about": "reference"}
        return ask_model(self.model, self.table(columns), count, **options)


def ask_model(
    model: Any, rows: Any, count: int, *, target: Any = 1, output: Output = "probability", about: str = "private"
) -> Vector:
    """Labels of `rows` as given: 2p - 1 for a probability of class `target`, ±1 for a class, the output itself otherwise.

    `model` is an estimator with `predict_proba` or `predict`, or any callable. A callable may return (m, classes) probabilities,
    (m,) classes (booleans, strings), or (m,) numbers, which are taken as labels and clipped to [-1, 1].
    """
    answers = _call(_question(model, output), rows, about)
    if answers.shape[:1] != (count,) or answers.ndim > 2:
        raise DataError(f"the model must return one answer for each of the {count} rows: got an array of shape {answers.shape}")
    if answers.ndim == 2:
        return _from_probabilities(answers, _column(model, target, answers.shape[1]), output)
    is_class = answers.dtype.kind in "bOSU" or (hasattr(model, "classes_") and hasattr(model, "predict"))
    return class_labels(answers, target) if is_class else check_labels(answers, count)


def _question(model: Any, output: Output) -> Any:
    if output == "probability" and hasattr(model, "predict_proba"):
        return model.predict_proba
    if hasattr(model, "predict"):
        return model.predict
    if callable(model):
        return model
    raise DataError("the model must have predict_proba or predict, or be callable on the rows: wrap it in a function")


def _call(question: Any, rows: Any, about: str) -> np.ndarray[Any, Any]:
    try:
        return np.asarray(question(rows))
    except Exception as error:  # whatever a foreign model raises; its text may quote private rows, so only its type is kept
        raise DataError(
            f"the model raised {type(error).__name__} on the {about} rows: try it on rows of the same columns and types first"
        ) from None


def _column(model: Any, target: Any, columns: int) -> int:
    """Which probability column is class `target`."""
    classes = list(getattr(model, "classes_", range(columns)))
    if columns == 1 or target not in classes:
        raise DataError(f"target={target!r} is not one of the model's classes {classes[:20]}: pass target= one of them")
    return classes.index(target)


def _from_probabilities(answers: np.ndarray[Any, Any], column: int, output: Output) -> Vector:
    probabilities = _finite(answers)
    if output == "class":
        return np.where(probabilities.argmax(axis=1) == column, 1.0, -1.0)
    return np.asarray(np.clip(2 * probabilities[:, column] - 1, -1.0, 1.0))


def class_labels(answers: np.ndarray[Any, Any], target: Any) -> Vector:
    """+1 where the answer is `target`, -1 elsewhere."""
    return np.where(answers == target, 1.0, -1.0).astype(np.float64)


def check_labels(labels: Any, count: int) -> Vector:
    """Finite numbers, one a row, clipped to [-1, 1]; booleans become ±1."""
    given = np.asarray(labels)
    if given.shape != (count,):
        raise DataError(f"labels must be one number for each of the {count} rows, got shape {given.shape}")
    if given.dtype.kind == "b":
        return np.where(given, 1.0, -1.0)
    return np.asarray(np.clip(_finite(given), -1.0, 1.0))


def _finite(answers: np.ndarray[Any, Any]) -> Vector:
    try:
        numbers = answers.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError("labels must be numbers in [-1, 1], or classes to compare with target=") from None
    if not np.isfinite(numbers).all():
        raise DataError("some labels are NaN or infinite: repair the model's output, or leave those rows out before registering")
    return numbers
