"""Whether a declaration of answers fits the model, found out on made-up records of the domain: before a private row is read.

The records are public, so their answers may decide about errors and warnings. Nothing here looks at private rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from warnings import catch_warnings, simplefilter, warn

import numpy as np

from dpexplain.arguments import quote
from dpexplain.core.answer_scale import AnswerScale
from dpexplain.domain import Domain
from dpexplain.domain.interface import hint
from dpexplain.domain.values import find, is_missing, lookup_table, number
from dpexplain.errors import DataError
from dpexplain.registration.declared_answers import UNDECLARED, AnswerDeclaration, WrongShape, as_answers
from dpexplain.registration.labels import RAISED, Labeller, question_of
from dpexplain.registration.made_up import RECORDS, made_up_columns

SAYS = "About made-up records of the domain it says: "


def check_declaration(model: Any, declared: AnswerDeclaration, records: Callable[[], Any]) -> AnswerScale:
    """The scale of the model's answers. DataError or a warning where the declaration does not fit them.

    `records` makes up public rows as the model takes them. A model that cannot answer them is not checked, and then
    numbers must be declared.
    """
    reading = declared.resolve(model)
    question = question_of(model, reading.kind)
    try:
        answers = _answers(question, records)
    except Exception as error:  # it may need columns that the domain does not declare: then only what is declared can be known
        if reading.kind == "label":
            raise _failure(error) from None
        return reading.scale
    if _several(answers):
        # DataError where the declaration means one number, or the target is none of the classes
        reading.labels(answers, len(answers))
        return AnswerScale.of("probability") if reading.kind == "label" else reading.scale
    _CHECKS[reading.kind](answers, reading)
    return reading.scale


def explain_failure(error: DataError, model: Any, declared: AnswerDeclaration, records: Callable[[], Any]) -> DataError:
    """The error of a model that raised about the private rows, with what it says about made-up records. These are public, and so is that text."""
    if not str(error).startswith(RAISED):
        return error
    try:
        _answers(question_of(model, declared.kind_of(model)), records)
    except (WrongShape, NotImplementedError):
        return error
    except Exception as found:
        text = " ".join(str(found).split())[:300]
        return DataError(f"{error}. {SAYS}{type(found).__name__}: {text}")
    return DataError(
        f"{error}. It answers made-up records, which have the domain's columns alone, in plain types: leave other columns out of the table, or"
        " give the columns the types that the model was fitted with"
    )


def explain_refusal(error: Exception, labeller: Labeller, domain: Domain) -> str:
    """What the model says about made-up records of the domain, where it raises about them; else the error itself."""
    declared = AnswerDeclaration(labeller.target, labeller.output, labeller.bounds)
    known = error if isinstance(error, DataError) else DataError(type(error).__name__)
    text = str(explain_failure(known, labeller.model, declared, lambda: labeller.table(made_up_columns(domain))))
    return text.partition(SAYS)[2] or text


def _answers(question: Callable[[Any], Any], records: Callable[[], Any]) -> Any:
    with catch_warnings():
        simplefilter("ignore")  # warnings about made-up records are of no interest
        answers = as_answers(question(records()))
    if len(answers) != RECORDS:
        raise WrongShape(f"{len(answers)} answers")
    return answers


def _failure(error: Exception) -> DataError:
    if isinstance(error, DataError):
        return error
    if isinstance(error, NotImplementedError):
        return DataError(f"records of this domain cannot be made up to see what the model answers. {UNDECLARED}")
    if isinstance(error, WrongShape):
        return DataError(
            f"the model must return one answer for each of the {RECORDS} made-up records it was tried on: got {error}"
        )
    return DataError(
        f"the model raised {type(error).__name__} on made-up records. Try it on rows of the domain's columns first. "
        f"If it needs other columns too: {UNDECLARED}"
    )


def _several(answers: Any) -> bool:
    return (
        np.ndim(answers) == 2 if isinstance(answers, np.ndarray) else any(isinstance(one, (list, tuple, dict)) for one in answers)
    )


def _check_undeclared(answers: Any, reading: Any) -> None:
    """Numbers about which nothing is declared pass for labels if they can be nothing else, or are all the same."""
    low, high = _range(answers)
    if low < -1 - 1e-9 or high > 1 + 1e-9 or (low >= 0 and low < high):
        raise DataError(f"the model's answers about made-up records go from {low:g} to {high:g}. {UNDECLARED}")


def _check_probability(answers: Any, reading: Any) -> None:
    low, high = _range(answers)
    if low < -1e-6 or high > 1 + 1e-6:
        raise DataError(
            f"output='probability', but the model's answers about made-up records go from {low:g} to {high:g}. {UNDECLARED}"
        )


def _check_class(answers: Any, reading: Any) -> None:
    values = [one for one in (answers.tolist() if isinstance(answers, np.ndarray) else answers) if not is_missing(one)]
    if any(isinstance(one, float) and one == one and one != int(one) for one in values):
        raise DataError(
            f"output='class', but the model answers made-up records with numbers such as {_fraction(values):g}. {UNDECLARED}"
        )
    lookup = lookup_table([reading.target])
    if values and all(find(lookup, one) < 0 for one in values):
        classes = sorted({repr(one) for one in values})[:10]
        if all(isinstance(one, str) for one in values) and not isinstance(reading.target, str):
            raise DataError(
                f"the model answers with {', '.join(classes)}, and never with target={quote(reading.target)}. Pass target= one of them"
            )
        if reading.classes is None:
            meant = hint(reading.target, [one for one in values if isinstance(one, str)])
            warn(
                f"the model answers none of {RECORDS} made-up records with target={reading.target!r}{meant}, but with {', '.join(classes)}. "
                "Unless it is a rare class, pass target= one of them",
                stacklevel=2,
            )


def _check_value(answers: Any, reading: Any) -> None:
    low, high = _range(answers)
    outside = np.mean([number(one) < reading.scale.low or number(one) > reading.scale.high for one in answers])
    bounds = f"bounds=({reading.scale.low:g}, {reading.scale.high:g})"
    if outside == 1:
        raise DataError(
            f"the model's answers about made-up records go from {low:g} to {high:g}, all outside {bounds}. Declare wider ones"
        )
    if outside > 0.1:
        warn(f"answers about made-up records go from {low:g} to {high:g}: those outside {bounds} are clipped", stacklevel=2)


def _range(answers: Any) -> tuple[float, float]:
    """The smallest and the largest answer. DataError where one is not a number."""
    numbers = np.array([number(one) for one in answers])
    if np.isnan(numbers).all():
        shown = next(iter(answers), None)
        raise DataError(
            f"the model answers made-up records with {shown!r}, which is not a number. Declare output='class' and target="
        )
    return float(np.nanmin(numbers)), float(np.nanmax(numbers))


def _fraction(values: list[Any]) -> float:
    return next(one for one in values if isinstance(one, float) and one == one and one != int(one))


_CHECKS = {"label": _check_undeclared, "probability": _check_probability, "class": _check_class, "value": _check_value}
