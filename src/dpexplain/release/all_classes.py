"""All classes of a model for the price of one: their label moments have the sensitivity of a single label. `proofs/label_moments.md`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from dpexplain.core.arrays import Matrix
from dpexplain.core.label_moments import LabelMoments
from dpexplain.data import PrivateData
from dpexplain.domain import Domain
from dpexplain.errors import ParameterError
from dpexplain.estimation.relabelled_moments import BoughtMoments
from dpexplain.mechanisms.door import Door
from dpexplain.mechanisms.gaussian import GaussianMechanism
from dpexplain.mechanisms.label_moments_plan import LabelMomentSum, label_mechanism
from dpexplain.mechanisms.release_plan import ReleasedStatistics, ReleasePlan
from dpexplain.privacy.events import PrivacyEvent
from dpexplain.progress import with_bar
from dpexplain.registration.labels import Labeller
from dpexplain.release.relabelling import label_moments_of, relabel

if TYPE_CHECKING:
    from dpexplain.release.release import Release

SHARE = 0.1  # of μ² for the label moments of all classes
_SOUND = 1 - 2.0**-40


@dataclass(frozen=True, slots=True)
class LabelsOfClasses:
    """One release of label moments for all classes, after the release that they belong to."""

    mechanism: GaussianMechanism[LabelMomentSum]
    labellers: tuple[Labeller, ...]
    size: int

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        return (self.mechanism.event(),)

    def add_to(self, made: Release, door: Door) -> Release:
        """The release with a further release for each class, by name."""
        asked = label_moments_of(made)
        released = door.release(self.mechanism, asked).reshape(len(self.labellers), -1)
        return replace(made, named=dict(self._relabel_classes(made, asked, released)))

    def _relabel_classes(self, made: Release, asked: LabelMoments, released: Matrix) -> Any:
        for labeller, moments in with_bar(list(zip(self.labellers, released, strict=True)), "labelling each class"):
            bought = BoughtMoments(asked, moments, self.mechanism.sigma, self.size, probabilities=True)
            yield str(labeller.target), relabel(made, labeller, bought)


@dataclass(frozen=True, slots=True, eq=False)
class ClassesPlan:
    """A plan that makes a release before it releases label moments of the classes: their centre depends on what was released."""

    release: ReleasePlan
    build: Callable[[ReleasedStatistics], Release]
    labels: LabelsOfClasses

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        return self.release.events + self.labels.events

    def run(self, door: Door) -> Release:
        return self.labels.add_to(self.build(self.release.run(door)), door)


def plan_classes(data: PrivateData, mu: float) -> LabelsOfClasses | None:
    """The plan that `target="all"` adds to a release, at a part of `mu`; None where one class was asked about."""
    facts = data.facts
    if not facts.targets:
        return None
    if facts.labeller is None or not isinstance(facts.domain, Domain) or not data.relabellable:
        raise ParameterError("target='all' is for tables with model=. Register one class at a time otherwise")
    labellers, decode = tuple(replace(facts.labeller, target=one) for one in facts.targets), facts.domain.decode

    def ask(rows: Matrix) -> Matrix:
        columns = decode(rows)
        return np.column_stack([labeller(columns) for labeller in labellers])

    share = mu * sqrt(SHARE) * _SOUND
    return LabelsOfClasses(
        label_mechanism(facts.domain.width, share, facts.setting, ask, len(labellers)),
        labellers,
        facts.setting.size,
    )


def left_for_release(mu: float) -> float:
    """The part of `mu` that `plan_classes` leaves for moments and reference."""
    return mu * sqrt(1 - SHARE) * _SOUND
