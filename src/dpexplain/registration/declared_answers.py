"""What a model's answers mean is declared, and each answer is read by itself. `proofs/registration.md`.

Neither the type nor the values of a whole column decide how one answer is read: a single None makes a list of numbers an array of objects, and would
turn every 0.8 into "not the target class". What cannot be read is NaN here, and becomes the label 0 at registration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import nan
from numbers import Number
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpexplain.arguments import quote
from dpexplain.core.answer_scale import AnswerScale, Kind
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.domain.values import TRUTH, find, is_missing, lookup_table, number, readable
from dpexplain.errors import DataError, ParameterError

Output: TypeAlias = Literal["probability", "class", "value"]
OUTPUTS = ("probability", "class", "value")
_SOFT = AnswerScale.of("probability")
_NEAR = 1e-6  # rounding
UNDECLARED = (
    "Declare what the model's answers are: output='probability' (of class target=, 0 to 1), output='class' (compared with target=), or "
    "output='value' with bounds=(low, high), which are (-1, 1) for labels"
)


class WrongShape(ValueError):
    """Answers that are not one for each row."""


@dataclass(frozen=True, slots=True, repr=False)
class AnswerDeclaration:
    """What an owner declares about answers: the class to explain, what an answer is, and the public bounds of a value."""

    target: Any = None
    output: Output | None = None
    bounds: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.output is not None and not (isinstance(self.output, str) and self.output in OUTPUTS):
            raise ParameterError(f"output must be one of {', '.join(map(repr, OUTPUTS))}, got {quote(self.output)}")
        if not _is_class(self.target):
            raise ParameterError(
                f"target must be one class, got {quote(self.target)}. Name it as the model does, or pass target='all'"
            )
        if self.bounds is not None and self.output != "value":
            raise ParameterError("bounds= are those of a value. Declare output='value' with them")
        if self.output == "value":
            AnswerScale.of("value", _pair(self.bounds))

    def to_dict(self) -> dict[str, Any]:
        """What is declared beyond the defaults, as JSON: questions and stored answers under another declaration are about something else."""
        target = self.target.item() if isinstance(self.target, np.generic) else self.target
        named = target if isinstance(target, (str, int, float)) else None if target is None else repr(target)
        bounds = None if self.bounds is None else [float(bound) for bound in self.bounds]
        stated = {"target": None if named == 1 else named, "output": self.output, "bounds": bounds}
        return {name: value for name, value in stated.items() if value is not None}

    def kind_of(self, model: Any = None) -> Kind:
        """What an answer is: as declared, else by the model's methods; "label" where neither decides."""
        if self.output is not None:
            return self.output
        if hasattr(model, "predict_proba"):
            return "probability"
        if (hasattr(model, "classes_") and hasattr(model, "predict")) or isinstance(self.target, str):
            return "class"
        return "label"

    def resolve(self, model: Any = None) -> Reading:
        """How to read this model's answers; without a model, labels that were computed elsewhere."""
        kind, classes = self.kind_of(model), getattr(model, "classes_", None)
        target = 1 if self.target is None else self.target
        scale = AnswerScale.of(kind, _pair(self.bounds))
        known = None if classes is None or kind == "value" else tuple(np.asarray(classes).tolist())
        return Reading(kind, target, known, scale, hard=self.output == "class")


def _is_class(target: Any) -> bool:
    """Whether this can be one class of a model: text, a number, or another value that has a hash."""
    try:
        hash(target)
    except TypeError:
        return False
    return True


def _pair(bounds: Any) -> tuple[float, float] | None:
    if bounds is None:
        return None
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        raise ParameterError(f"bounds must be a pair (low, high), got {quote(bounds)}")
    return bounds[0], bounds[1]


@dataclass(frozen=True, slots=True, repr=False)
class Reading:
    """The function from one answer to its label in [-1, 1], or NaN where the answer cannot be read.

    An answer of several numbers is one probability for each class; `classes` names them, by default 0, 1, 2, … With `hard`, the most probable class
    counts instead of its probability.
    """

    kind: Kind
    target: Any
    classes: tuple[Any, ...] | None
    scale: AnswerScale
    hard: bool = False
    is_name: bool = field(init=False)  # whether the class to explain is a name, which no number is
    _lookup: dict[Any, int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_name", isinstance(self.target, str) and is_missing(number(self.target)))
        object.__setattr__(self, "_lookup", lookup_table([self.target]))
        if self.classes is not None:
            self._column(len(self.classes))

    def labels(self, answers: Any, count: int) -> Vector:
        """One label for each of `count` rows. WrongShape unless there are so many answers; DataError for a wrong declaration."""
        given = as_answers(answers)
        if len(given) != count:
            raise WrongShape(_shape(answers))
        if isinstance(given, np.ndarray):
            return self._vectors(given) if given.ndim == 2 else self._numbers(given)
        return np.fromiter(map(self.label, given), dtype=np.float64, count=count)

    def share_outside(self, answers: Any) -> float:
        """How many of the answers are numbers outside the range that they were declared with; 0 where an answer is a class or a vector."""
        given = as_answers(answers)
        if self.kind == "class" or np.ndim(given) != 1:
            return 0.0
        plain = isinstance(given, np.ndarray) and given.dtype.kind in "biuf"
        numbers = np.asarray(given, dtype=np.float64) if plain else np.array([number(one) for one in given])
        return float(np.mean((numbers < self.scale.low - _NEAR) | (numbers > self.scale.high + _NEAR)))

    def label(self, answer: Any) -> float:
        """The same for one answer, of any type. Bytes are read as text: beside bytes, NumPy and Arrow store all answers as bytes."""
        if isinstance(answer, bytes):
            answer = answer.decode("latin-1")
        if isinstance(answer, Mapping):
            return _label_or_nan(_SOFT.labels, number(answer.get(self.target)))
        if isinstance(answer, (list, tuple)) or (isinstance(answer, np.ndarray) and answer.ndim):
            return self._vector([number(entry) for entry in answer])
        if is_missing(answer):
            return nan
        if self.kind == "class":
            if self.is_name and self._is_no_name(answer):
                return nan
            return 1.0 if find(self._lookup, answer) == 0 else -1.0
        if self.kind == "label" and isinstance(answer, (bool, np.bool_)):
            return 1.0 if answer else -1.0
        if (
            self.kind == "label" and isinstance(answer, str) and answer.lower() in TRUTH
        ):  # as a column of booleans is stored beside a word
            return 2 * TRUTH[answer.lower()] - 1
        return _label_or_nan(self.scale.labels, number(answer))

    def _is_no_name(self, answer: Any) -> bool:
        """Whether this is a number, or what NumPy makes of NaN beside names."""
        if not isinstance(answer, str):
            return isinstance(answer, (Number, np.bool_))
        return answer == "nan" and answer != self.target and answer not in (self.classes or ())

    def _numbers(self, answers: NDArray[Any]) -> Vector:
        v = answers.astype(np.float64)
        if self.kind == "class":
            found = np.where(v == number(self.target), 1.0, -1.0) if not self.is_name else np.full(len(v), nan)
        elif self.kind == "label" and answers.dtype.kind == "b":
            found = 2 * v - 1
        else:
            found = self.scale.labels(v)
        found[np.isnan(v)] = nan
        return found

    def _vector(self, entries: list[float]) -> float:
        if len(entries) == 1:
            return self.label(entries[0])
        try:
            return float(self._vectors(np.array([entries]))[0])
        except DataError:  # this one answer has fewer or more classes than the model
            return nan

    def _vectors(self, answers: NDArray[Any]) -> Vector:
        if self.kind == "value":
            raise DataError(f"output='value' means one number for each row, got {answers.shape[1]}. Return the one to explain")
        p: Matrix = answers.astype(np.float64)
        column = self._column(p.shape[1])
        found = np.where(p.argmax(axis=1) == column, 1.0, -1.0) if self.hard else _SOFT.labels(p[:, column])
        found[np.isnan(p).any(axis=1) if self.hard else np.isnan(p[:, column])] = nan
        return found

    def _column(self, columns: int) -> int:
        """Which probability is that of class `target`."""
        classes = list(range(columns)) if self.classes is None else list(self.classes)
        if columns != len(classes) or columns == 1 or self.target not in classes:
            raise DataError(
                f"target={quote(self.target)} is not one of the model's classes {classes[:20]}. Pass target= one of them"
            )
        return classes.index(self.target)


def _label_or_nan(labels: Any, value: float) -> float:
    return nan if value != value else float(labels(value))


def as_answers(answers: Any) -> NDArray[Any] | list[Any]:
    """An array of numbers, (m,) or (m, k); else a list with one object for each row."""
    if hasattr(answers, "to_pylist"):
        from dpexplain.domain import frames  # which loads libraries of data frames

        answers = frames.entries(answers)
    elif hasattr(answers, "to_numpy"):
        answers = _plain_array(answers)
    if isinstance(answers, (list, tuple)):
        return list(answers)
    array = np.asarray(answers)
    if array.ndim not in (1, 2):
        raise WrongShape(_shape(answers))
    if array.ndim == 2 and array.shape[1] == 1:
        array = array.reshape(-1)
    if array.dtype.kind == "c":  # one complex number makes all others complex
        array = readable(array)
    return array if array.dtype.kind in "biuf" else array.tolist()


def _plain_array(answers: Any) -> NDArray[Any]:
    """The array of a series or a frame, also of a series with an entry that its library cannot return."""
    try:
        return np.asarray(answers.to_numpy())
    except Exception:
        from dpexplain.domain import frames

        return frames.column(frames.open_series(answers))


def _shape(answers: Any) -> str:
    if hasattr(answers, "shape"):
        return f"an array of shape {answers.shape}"
    return f"{len(answers)} answers" if hasattr(answers, "__len__") else f"a single {type(answers).__name__}"


def read_labels(labels: Any, count: int, declared: AnswerDeclaration) -> Vector:
    """Labels that were computed elsewhere: in [-1, 1] (booleans are ±1) unless `output` declares something else."""
    if isinstance(labels, str):
        raise DataError(f"labels must be the answers themselves, got the text {labels!r}. Pass labels=frame[{labels!r}]")
    try:
        found = declared.resolve().labels(labels, count)
    except (WrongShape, TypeError):
        shape = np.shape(labels) if isinstance(labels, np.ndarray) else (len(labels),) if hasattr(labels, "__len__") else ()
        raise DataError(f"labels must be one number for each of the {count} rows, got shape {shape}") from None
    return settle(
        found, "labels must be numbers in [-1, 1]: none of them can be read. Pass output= where they are something else"
    )


def settle(labels: Vector, message: str) -> Vector:
    """0 for what could not be read; DataError where that is everything, which concerns the declaration and not a row."""
    if len(labels) and np.isnan(labels).all():
        raise DataError(message)
    return np.nan_to_num(labels)
