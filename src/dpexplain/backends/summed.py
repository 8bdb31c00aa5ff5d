"""Rows in several parts: every part answers each question, and the answers are added in a fixed order.

A running sum also adds up what each addition rounds away (Ogita, Rump & Oishi 2005, Sum2): the total of K partial sums is off by at most
u|S| + (Ku)²Σ|terms|, so the number of parts does not matter. `proofs/summation.md`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Any, TypeVar, cast

import numpy as np

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.baseline_shapley import ShapleySum
from dpexplain.core.expected_labels import LabelDistances
from dpexplain.core.label_moments import LabelSums
from dpexplain.core.marginals import Histograms, LabelTables, PairTables
from dpexplain.core.moments import LocalMoments, Moments, RawMoments, RawSums
from dpexplain.core.release_moments import CentreMoments, NormalisedMoments

Answer = TypeVar("Answer")
ADDING = 2 * 2.0**-53  # relative error of adding up to 2²⁶ partial sums, each with its lost digits


class SummedRows(ABC):
    """The `Rows` port over parts: every statistic is a sum over rows, so it is the sum of its parts."""

    @abstractmethod
    def _ask(self, question: str, query: Any) -> Any:
        """The sum over parts of each part's own answer to the method `question`."""

    def local(self, query: LocalMoments) -> Moments:
        return self.local_many([query])[0]

    def local_many(self, queries: Sequence[LocalMoments]) -> list[Moments]:
        return cast(list[Moments], self._ask("local_many", list(queries))) if queries else []

    def raw(self, query: RawMoments) -> RawSums:
        return cast(RawSums, self._ask("raw", query))

    def centre(self, query: CentreMoments) -> Vector:
        return cast(Vector, self._ask("centre", query))

    def normalised(self, query: NormalisedMoments) -> RawSums:
        return cast(RawSums, self._ask("normalised", query))

    def label_distances(self, query: LabelDistances) -> Vector:
        return cast(Vector, self._ask("label_distances", query))

    def label_sums(self, query: LabelSums) -> list[RawSums]:
        return cast(list[RawSums], self._ask("label_sums", query))

    def histograms(self, query: Histograms) -> Vector:
        return cast(Vector, self._ask("histograms", query))

    def pair_tables(self, query: PairTables) -> Matrix:
        return cast(Matrix, self._ask("pair_tables", query))

    def label_tables(self, query: LabelTables) -> Matrix:
        return cast(Matrix, self._ask("label_tables", query))

    def shapley(self, query: ShapleySum) -> Vector:
        return cast(Vector, self._ask("shapley", query))


def answers(parts: Iterable[Any], question: str, query: Any) -> Iterator[Any]:
    """Each part's own answer."""
    return (getattr(part, question)(query) for part in parts)


class RunningSum:
    """A compensated sum of numbers or arrays: what each addition rounds away is added up as well."""

    def __init__(self) -> None:
        self._total: Any = 0.0
        self._lost: Any = 0.0

    def add(self, value: Any) -> None:
        total = self._total + value
        change = total - self._total
        self._lost = self._lost + ((self._total - (total - change)) + (value - change))
        self._total = total

    @property
    def value(self) -> Any:
        return self._total + self._lost


def total(answers: Iterable[Answer]) -> Answer:
    """The sum of answers of one kind, in the order given: arrays, dataclasses of sums, or lists of these."""
    sums: list[RunningSum] = []
    shape: Any = None
    for answer in answers:
        shape, parts = answer, _parts(answer)
        sums = sums or [RunningSum() for _ in parts]
        for one, part in zip(sums, parts, strict=True):
            one.add(part)
    return cast(Answer, _rebuild(shape, [one.value for one in sums]))


def _parts(answer: Any) -> list[Any]:
    if isinstance(answer, (float, np.ndarray)):
        return [answer]
    members = answer if isinstance(answer, list) else [getattr(answer, field.name) for field in fields(answer)]
    return [part for member in members for part in _parts(member)]


def _rebuild(shape: Any, values: list[Any]) -> Any:
    """A copy of the structure `shape` with its numbers taken from `values`, which are consumed from the front."""
    if isinstance(shape, (float, np.ndarray)):
        value = values.pop(0)
        return float(value) if isinstance(shape, float) else value
    if isinstance(shape, list):
        return [_rebuild(member, values) for member in shape]
    return type(shape)(*(_rebuild(getattr(shape, field.name), values) for field in fields(shape)))
