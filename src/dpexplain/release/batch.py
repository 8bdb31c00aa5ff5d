"""Many explanations from one release, computed in batches and stored as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from math import isnan
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from dpexplain.answers.contributions import (
    Contributions,
    feature_names,
    feature_titles,
    feature_values,
    feature_values_of,
    ordered_levels,
)
from dpexplain.answers.contributions_batch import ContributionsBatch
from dpexplain.answers.explanation import Explanation
from dpexplain.answers.explanation_batch import ExplanationBatch
from dpexplain.answers.stored import ANCHORED
from dpexplain.core.answer_scale import AnswerScale
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.plane import Plane
from dpexplain.core.weights import Gaussian, Weight
from dpexplain.domain import Skipped
from dpexplain.domain.queries import Notes
from dpexplain.errors import ParameterError
from dpexplain.estimation.answer import BATCH
from dpexplain.estimation.error_parts import name_parts
from dpexplain.estimation.planes import Planes, join_planes
from dpexplain.privacy.budget import Guarantee
from dpexplain.progress import with_bar
from dpexplain.release.release_planes import PlaneSource

if TYPE_CHECKING:
    from dpexplain.release.release import Release


_ANCHORS = {
    "label": "on the scale of the labels",
    "probability": "a probability",
    "class": "1 for the class that is explained and 0 for others",
    "value": "in the model's own units",
}
_SLOW = 20_000  # queries from which a progress bar is shown


@dataclass(frozen=True, eq=False, repr=False)
class Explanations(ExplanationBatch):
    """Many explanations, stored as arrays. Indexing returns one `Explanation`."""

    release: Release
    points: Matrix
    found: Planes
    weight: Weight
    plane: Plane
    radius: float | None = None
    anchors: Vector | None = None
    notes: tuple[Notes, ...] = ()
    rows: tuple[int, ...] = ()  # the position of each in the batch that was asked about
    skipped: tuple[Skipped, ...] = ()
    widths: Vector | None = None  # of the Gaussian weight that was chosen for each record, where it was
    more: Mapping[str, Any] = field(default_factory=dict)  # details of all of them

    def weight_of(self, index: int) -> Weight:
        """The weight of one record's question."""
        return self.weight if self.widths is None else Gaussian(float(self.widths[index]))

    @property
    def values(self) -> Matrix:
        """(records, columns): slopes."""
        return self.found.values

    @property
    def error(self) -> Matrix:
        """Standard errors of `values`."""
        return self.found.errors

    @overload
    def __getitem__(self, index: int) -> Explanation: ...

    @overload
    def __getitem__(self, index: slice) -> Explanations: ...

    def __getitem__(self, index: int | slice) -> Explanation | Explanations:
        if isinstance(index, slice):
            anchors = None if self.anchors is None else self.anchors[index]
            widths = None if self.widths is None else self.widths[index]
            part = replace(self, points=self.points[index], found=self.found[index], anchors=anchors, widths=widths)
            return replace(part, notes=self.notes[index], rows=self.rows[index])
        return self.explanation_at(range(len(self))[index])

    def explanation_at(
        self, index: int, record: Any = None, more: dict[str, Any] | None = None, request_id: str | None = None
    ) -> Explanation:
        """The explanation of one record, as it was asked where that is at hand, with `more` details."""
        return Explanation(
            values=self.values[index],
            names=self.release.domain.names,
            point=self.points[index],
            cost=self._free,
            guarantee=self.release.guarantee,
            error=self.error[index],
            request_id=request_id,
            details=self.details_of(index) | (more or {}),
            domain=self.release.domain,
            record=record,
            plane=self.plane,
            intercept=float(self.found.answer[index]),
            scale=self.release.scale,
            added=partial(self._contributions_of, index),
        )

    def contributions(self, baseline: Any = None) -> ContributionsBatch:
        """The contributions of all records, compared with the average or a `baseline` record; InputError where there is no record."""
        if not len(self) or baseline is not None:
            return super().contributions(baseline)
        found, scale = self.found, self.release.scale
        return ContributionsBatch(
            names=feature_names(self.release.domain),
            values=found.added * scale.half_range,
            base=scale.answers(found.base),
            answer=scale.answers(found.answer),
            error=_errors_if_known(found.added_errors * scale.half_range),
            scale=scale,
            record=feature_values(self.release.domain, self.points),
            base_error=_errors_if_known(found.base_error * scale.half_range),
            answer_error=found.answer_error * scale.half_range,
            guarantee=self.release.guarantee,
            titles=feature_titles(self.release.domain),
            levels=ordered_levels(self.release.domain),
            details=self._origin,
        )

    def _contributions_of(self, index: int) -> Contributions:
        """`contributions()[index]`, without the other records'."""
        found, scale, domain = self.found, self.release.scale, self.release.domain
        half, base_error = scale.half_range, float(found.base_error[index])
        return Contributions(
            names=feature_names(domain),
            values=found.added[index] * half,
            base=scale.answer(float(found.base[index])),
            answer=scale.answer(float(found.answer[index])),
            error=_errors_if_known(found.added_errors[index] * half),
            scale=scale,
            record=feature_values_of(domain, self.points[index]),
            base_error=None if isnan(base_error) else base_error * half,
            answer_error=float(found.answer_error[index]) * half,
            guarantee=self.release.guarantee,
            titles=feature_titles(domain),
            details=self._origin,
        )

    @property
    def _origin(self) -> dict[str, Any]:
        return {"quantity": "plane", "source": "release", "plane": self.plane, **self.more}

    @cached_property
    def _free(self) -> Guarantee:
        return free_of_charge(self.release.guarantee)

    def details_of(self, index: int) -> dict[str, Any]:
        """The details of one answer."""
        found = self.found
        details: dict[str, Any] = {
            **self.more,
            "source": "release",
            "weight": self.weight.kind,
            "fingerprint": self.release.fingerprint,
        }
        if "columns" not in self.more:  # where features are drawn one by one, none shares another's effect
            details |= self.release.shared_effects
        if self.widths is not None:
            details["width"] = float(self.widths[index])
        details["error_parts"] = name_parts(found.parts[index])
        if np.isfinite(found.share[index]):
            details["effective_rows"] = round(float(found.share[index]) * self.release.size)
        if found.capped[index]:
            details["cap"] = f"These slopes were cut to the requested radius {self.radius:g}: the data say that they are longer."
        if self.anchors is not None:
            details |= {"quantity": ANCHORED, "anchor": float(self.anchors[index])}
        return details | ({"read_as": self.notes[index]} if self.notes and self.notes[index] else {})

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        left_out = f", {len(self.skipped)} records skipped" if self.skipped else ""
        return f"<{len(self)} explanations of {len(self.release.domain.names)} values{left_out}. {self.release.guarantee}>"


@lru_cache(maxsize=64)
def free_of_charge(total: Guarantee) -> Guarantee:
    """The cost of an answer from a release: none."""
    return Guarantee(0.0, total.delta, total.neighbours, subject="This answer")


def fit_in_batches(source: PlaneSource, points: Matrix, weight: Weight, anchors: Vector | None, radius: float | None) -> Planes:
    """One row for each point, in batches."""
    if len(points) <= BATCH:
        return source.fit(points, weight, anchors, radius)
    slices = [slice(start, start + BATCH) for start in _progress(len(points))]
    parts = [source.fit(points[part], weight, None if anchors is None else anchors[part], radius) for part in slices]
    return join_planes(parts)


def fit_by_width(source: PlaneSource, points: Matrix, widths: Vector, anchors: Vector | None, radius: float | None) -> Planes:
    """The same with a Gaussian weight of its own for each point; points of one width are answered together."""
    groups = [np.flatnonzero(widths == width) for width in np.unique(widths)]
    parts = [
        fit_in_batches(source, points[one], Gaussian(float(widths[one[0]])), None if anchors is None else anchors[one], radius)
        for one in groups
    ]
    if not parts:
        return source.fit(points, Gaussian(), anchors, radius)
    return join_planes(parts)[np.argsort(np.concatenate(groups))]


def _errors_if_known(errors: Any) -> Any:
    """Errors, or None where they are not known."""
    return None if np.isnan(errors).any() else errors


def anchors_of(given: Any, count: int, scale: AnswerScale) -> Vector | None:
    """The model's answers at `count` queries, as a caller gives them in the model's own units, as labels."""
    if given is None:
        return None
    try:
        anchors = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        anchors = np.full(count, np.nan)
    if anchors.shape != (count,) or not ((anchors >= scale.low) & (anchors <= scale.high)).all():
        raise ParameterError(
            f"anchor is the model's answer at each record, {_ANCHORS[scale.kind]}: one number from {scale.low:g} to {scale.high:g} a "
            "record. A label y from -1 to 1 is the answer release.scale.answers(y)"
        )
    return anchors if scale.kind == "label" else scale.labels(anchors)


def _progress(queries: int) -> Iterator[int]:
    """Where each batch starts; with a bar on a terminal when it takes long."""
    starts = range(0, queries, BATCH)
    return iter(starts if queries < _SLOW else with_bar(starts, "explaining"))
