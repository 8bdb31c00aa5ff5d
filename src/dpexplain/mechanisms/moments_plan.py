"""The moments of a release: Gaussian releases, from which every explanation follows by post-processing. `proofs/release_moments.md`.

Stage 1 takes a twentieth of μ² and finds the centre and the spread of the columns; stage 2 releases moments of normalised rows around that centre.
Between them, where there is a model to ask, histograms show how numbers are distributed (`proofs/marginals.md`), so that it is asked about points that
look like rows, and counts show how far labels are from the plane that its answers suggest (`proofs/expected_labels.md`). All noise scales are known
before a row is read: no bound depends on what was found before.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import nextafter, sqrt
from typing import ClassVar

import numpy as np

from dpexplain.core.arrays import Vector
from dpexplain.core.expected_labels import BINS, LabelDistances
from dpexplain.core.layout import Layout
from dpexplain.core.marginals import NumberCounts
from dpexplain.core.release_moments import CentreMoments, NormalisedMoments, NormalisedSums, stage_bounds
from dpexplain.core.sensitivity import label_distances
from dpexplain.estimation.denoise import NoisySketch as NoisySketch
from dpexplain.estimation.label_expectation import NoisyCounts, choose_scale, expect_labels
from dpexplain.estimation.public_points import PublicModel
from dpexplain.mechanisms.door import Door
from dpexplain.mechanisms.gaussian import GaussianMechanism
from dpexplain.mechanisms.histogram_counts import (
    HistogramCounts,
    number_counts_share,
    plan_number_counts,
    release_number_counts,
)
from dpexplain.mechanisms.ports import Rows
from dpexplain.mechanisms.released_centres import ReleasedCentres
from dpexplain.mechanisms.setting import Setting
from dpexplain.privacy.events import PrivacyEvent

CENTRE_SHARE = 0.05
_LEAST_DISTANCE_SHARE, _MOST_DISTANCE_SHARE = 0.005, 0.05  # where there is a model to ask
_COUNT_ERROR = 0.001  # of the rows: counts that are known to this need not be known better
_NOISIEST = 0.02  # of the rows: counts with more noise are useless


@dataclass(frozen=True, slots=True, eq=False)
class CentreSum:
    """The bounded query of stage 1: sums around the public centre."""

    what: ClassVar[str] = "release: centre"
    asked: CentreMoments
    sensitivity: float
    dimension: int

    def evaluate(self, rows: Rows, at: None = None) -> Vector:
        del at
        return rows.centre(self.asked)


@dataclass(frozen=True, slots=True, eq=False)
class NormalisedSum:
    """The bounded query of stage 2: moments of rows scaled to length one, around any centre and with any spread."""

    what: ClassVar[str] = "release: moments"
    sensitivity: float
    dimension: int

    def evaluate(self, rows: Rows, at: NormalisedMoments) -> Vector:
        return at.vector(rows.normalised(at))


@dataclass(frozen=True, slots=True, eq=False)
class DistanceCounts:
    """The bounded query between the stages: how far labels are from a plane. Counts are exact, so no summation error is added."""

    what: ClassVar[str] = "release: distances of labels"
    sensitivity: float
    dimension: int

    def evaluate(self, rows: Rows, at: LabelDistances) -> Vector:
        return rows.label_distances(at)


@dataclass(frozen=True, slots=True)
class LabelComparison:
    """Finds the plane that labels are compared with, by a model's answers about public points, and its scale, by noisy counts of the rows' distances."""

    model: PublicModel
    levels: tuple[int, ...]  # of `move_to_levels`
    distances: GaussianMechanism[DistanceCounts]

    def run(self, query: NormalisedMoments, size: int, sigma: float, door: Door) -> NormalisedMoments:
        """The query of stage 2, whose noise is `sigma`, with labels that are compared if that makes their noise smaller."""
        plane = expect_labels(query, self.model, self.levels)
        if plane is None:
            return query
        counts = door.release(self.distances, LabelDistances(plane))
        return replace(query, expected=choose_scale(query, plane, NoisyCounts(counts, self.distances.sigma, size), sigma))


@dataclass(frozen=True, slots=True)
class SketchPlan:
    """A plan with two releases, and up to two between them where there is a model to ask; made from public information only."""

    layout: Layout
    size: int
    centre: GaussianMechanism[CentreSum]
    moments: GaussianMechanism[NormalisedSum]
    numbers: GaussianMechanism[HistogramCounts] | None = None
    comparison: LabelComparison | None = None
    events: tuple[PrivacyEvent, ...] = field(init=False)

    def __post_init__(self) -> None:
        counted = () if self.numbers is None else (self.numbers.event(),)
        compared = () if self.comparison is None else (self.comparison.distances.event(),)
        object.__setattr__(self, "events", (self.centre.event(), *counted, *compared, self.moments.event()))

    def run(self, door: Door, margins: NumberCounts | None = None) -> NoisySketch:
        """`margins` were released elsewhere."""
        return self.run_around(door.release(self.centre), door, margins=margins)

    def run_around(
        self, centre: Vector, door: Door, centres: ReleasedCentres | None = None, margins: NumberCounts | None = None
    ) -> NoisySketch:
        """All after stage 1, which released `centre`. With `centres`, sums are taken around the mean of those where there are some."""
        around = (centres or ReleasedCentres()).choose_query(centre, self.centre.sigma, self.query_around)
        query = self._learn_between(around.query if margins is None else replace(around.query, margins=margins), door)
        released = door.release(self.moments, query)
        sums = NormalisedSums.from_vector(released, query.scales, self.layout)
        return NoisySketch(sums, query, self.moments.sigma, around.sigma / self.size)

    def query_after(self, centre: Vector, door: Door) -> NormalisedMoments:
        """The query of stage 2 after stage 1 released this."""
        return self._learn_between(self.query_around(centre, self.centre.sigma), door)

    def query_around(self, centre: Vector, sigma: float) -> NormalisedMoments:
        """The same before anything else is known, around what was released with noise `sigma`."""
        return NormalisedMoments.after(centre, self.layout, self.size, sigma)

    def _learn_between(self, query: NormalisedMoments, door: Door) -> NormalisedMoments:
        """The query after the releases between the stages."""
        if self.numbers is not None:
            query = replace(query, margins=release_number_counts(self.numbers, door))
        return query if self.comparison is None else self.comparison.run(query, self.size, self.moments.sigma, door)


def plan_sketch(
    layout: Layout, mu: float, setting: Setting, model: PublicModel | None = None, *, margins_known: bool = False
) -> SketchPlan:
    """A plan that costs at most `mu`: the μ² of its releases sum up to μ².

    A `model` is asked about public points, for which numbers are counted unless that happens elsewhere (`margins_known`), and labels are compared with
    its answers.
    """
    sound = nextafter(mu, 0.0) * (1 - 2.0**-50)
    if model is None:
        return _plan_stages(layout, sound, setting, 0.0)
    numbers = 0.0 if margins_known else number_counts_share(layout, mu, setting)
    distances = distance_share(mu, setting)
    return replace(
        _plan_stages(layout, sound, setting, numbers + distances),
        numbers=plan_number_counts(layout, sound * sqrt(numbers), setting) if numbers else None,
        comparison=_plan_comparison(model, sound * sqrt(distances), setting) if distances else None,
    )


@lru_cache(maxsize=64)  # all questions of a service have the same plan
def _plan_stages(layout: Layout, mu: float, setting: Setting, counted: float) -> SketchPlan:
    """The two stages, which leave the share `counted` of μ² to something else."""
    bounds = stage_bounds(layout)
    centre = setting.sensitivity_of_sum(bounds.centre, terms=3 * bounds.centre)
    moments = setting.sensitivity_of_sum(bounds.moments, bounds.moments_terms)
    return SketchPlan(
        layout,
        setting.size,
        GaussianMechanism(CentreSum(CentreMoments(layout), centre, bounds.centre_dimension), mu * sqrt(CENTRE_SHARE)),
        GaussianMechanism(NormalisedSum(moments, bounds.moments_dimension), mu * sqrt(1 - (CENTRE_SHARE + counted))),
    )


def distance_share(mu: float, setting: Setting) -> float:
    """The share of μ² for counts of distances, from public numbers: less where there are many rows for their noise, and none where there are too few."""
    noise = setting.neighbours.multiplier / (setting.size * mu)  # of a count that all of μ² pays for, as a share of the rows
    if noise > _NOISIEST * sqrt(_MOST_DISTANCE_SHARE):
        return 0.0
    return float(np.clip((noise / _COUNT_ERROR) ** 2, _LEAST_DISTANCE_SHARE, _MOST_DISTANCE_SHARE))


def _plan_comparison(model: PublicModel, mu: float, setting: Setting) -> LabelComparison:
    counts = DistanceCounts(label_distances() * setting.neighbours.multiplier, BINS)
    return LabelComparison(model, setting.levels, GaussianMechanism(counts, mu))
