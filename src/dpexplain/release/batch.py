"""Many explanations from one release: computed in batches, kept as arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, overload

import numpy as np

from dpexplain.answers.explanation import Explanation
from dpexplain.answers.explanation_batch import ExplanationBatch
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.weights import Weight
from dpexplain.domain import DomainLike, Skipped
from dpexplain.domain.queries import Notes
from dpexplain.errors import ParameterError
from dpexplain.estimation.answer import BATCH, PlaneAnswers, Solver
from dpexplain.estimation.local_reference import LocalReference
from dpexplain.mechanisms.basic import ANCHORED
from dpexplain.privacy.budget import Guarantee
from dpexplain.progress import with_bar

_SLOW = 20_000  # queries from which a progress bar is worth its line


class Source(Protocol):
    """What an explanation takes over from its release."""

    @property
    def domain(self) -> DomainLike: ...

    @property
    def guarantee(self) -> Guarantee: ...

    @property
    def fingerprint(self) -> str | None: ...


@dataclass(frozen=True, eq=False, repr=False)
class Explanations(ExplanationBatch):
    """Many explanations, kept as arrays; each is made into an `Explanation` when it is looked at."""

    release: Source
    points: Matrix
    values: Matrix
    error: Matrix
    weight: Weight
    anchors: Vector | None = None
    notes: tuple[Notes, ...] = ()
    rows: tuple[int, ...] = ()  # the place of each in the batch that was asked about
    skipped: tuple[Skipped, ...] = ()

    @overload
    def __getitem__(self, index: int) -> Explanation: ...

    @overload
    def __getitem__(self, index: slice) -> Explanations: ...

    def __getitem__(self, index: int | slice) -> Explanation | Explanations:
        anchor = None if self.anchors is None else self.anchors[index]
        if isinstance(index, slice):
            part = replace(self, points=self.points[index], values=self.values[index], error=self.error[index], anchors=anchor)
            return replace(part, notes=self.notes[index], rows=self.rows[index])
        read_as = {"read_as": self.notes[index]} if self.notes and self.notes[index] else {}
        return Explanation(
            values=self.values[index],
            names=self.release.domain.names,
            point=self.points[index],
            cost=self._free,
            guarantee=self.release.guarantee,
            error=self.error[index],
            details=self._details | ({} if anchor is None else {"quantity": ANCHORED, "anchor": float(anchor)}) | read_as,
            domain=self.release.domain,
        )

    @cached_property
    def _free(self) -> Guarantee:
        return free_of_charge(self.release.guarantee)

    @cached_property
    def _details(self) -> dict[str, Any]:
        return {"source": "release", "weight": self.weight.kind, "fingerprint": self.release.fingerprint}

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        left_out = f", {len(self.skipped)} records skipped" if self.skipped else ""
        return f"<{len(self)} explanations of {len(self.release.domain.names)} values{left_out}. {self.release.guarantee}>"


def free_of_charge(total: Guarantee) -> Guarantee:
    """What an answer from a release costs on top of it."""
    return Guarantee(0.0, total.delta, total.neighbours, subject="This answer")


def solve_in_batches(solver: Solver | LocalReference, points: Matrix, weight: Weight, anchors: Vector | None) -> PlaneAnswers:
    """One row for each point, in batches."""
    if 0 < len(points) <= BATCH:
        return solver.answer(points, weight, anchors)
    slices = [slice(start, start + BATCH) for start in _progress(len(points))]
    parts = [solver.answer(points[part], weight, None if anchors is None else anchors[part]) for part in slices]
    empty = [np.zeros((0, points.shape[1]))]
    values, errors = [part.values for part in parts] or empty, [part.errors for part in parts] or empty
    return PlaneAnswers(np.concatenate(values), np.concatenate(errors))


def anchors_of(given: Any, count: int) -> Vector | None:
    """The model's answers at `count` queries, as a caller gives them."""
    if given is None:
        return None
    try:
        anchors = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        anchors = np.full(count, np.nan)
    if anchors.shape != (count,) or not (np.abs(anchors) <= 1).all():
        raise ParameterError(
            "anchor is the model's answer at each record, on the scale of the labels: one number from -1 to 1 a record "
            "(2p - 1 for a probability p, ±1 for a class)"
        )
    return anchors


def _progress(queries: int) -> Iterator[int]:
    """Where each batch starts; with a bar on a terminal when it takes long."""
    starts = range(0, queries, BATCH)
    return iter(starts if queries < _SLOW else with_bar(starts, "explaining"))
