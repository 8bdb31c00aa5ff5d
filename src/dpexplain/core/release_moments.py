"""The two statistics that a release measures, and the sensitivity of each. Proof: `proofs/release_moments.md`.

Stage 1 asks for the columns' means around public centres c, and for the numbers' second moments. Stage 2 asks for moments around the
centre that stage 1 released, of rows whose feature vector is scaled to length one: with v = x - centre,

    F(x, y) = (√g₀, √g₀ y, √g₁ v, √g₂ yv, √g₃ vᵢvⱼ for i < j in different attributes, √g₄ (vⱼ² - varianceⱼ) for numbers, √g₅ (1 - Σₐ x) for codes a),
    Σ w(x) F(x, y)    with    w(x) = 1/‖F(x, 1)‖,

so no record can move the sum by more than 1, wherever it lies. w does not depend on y. Where a model can be asked, y is compared with a public plane
first (`core/expected_labels.py`).
Products of two columns of one code are known to be 0 and are not asked for. The last group counts records without a value of a code of several
columns: it is 0 for all others, so that it takes nothing from tables without missing values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt
from typing import NamedTuple

import numpy as np

from dpexplain.core import sensitivity
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.expected_labels import ExpectedLabels
from dpexplain.core.layout import Layout
from dpexplain.core.marginals import NumberCounts
from dpexplain.core.moments import RawSums

SQUARES_SCALE = 2.0  # of the second moments in stage 1
SQUARES_CENTRE = 0.125  # (x - 1/2)² lies in [0, 1/4]
_LABEL_SHARE = 2.0  # how much more of the budget the moments yv get
_SECOND_SHARE = 4.0  # … and the products: their noise counts ‖φ‖² times, and free slopes are two or three units long
_SECOND_SHARE_COMPARED = 3.0  # … where labels are compared with a plane: slopes are nearer to it than to 0
_ABSENT_SHARE = 4.0  # … and a missing value, where there is one
_TINY = 1e-12
_TOGETHER = 4096  # rows that are weighed at a time: they stay in the processor's cache
SMALLEST_VARIANCE = 1e-4
WIDEST_PAID = 256  # columns up to which a paid answer takes these moments by default
SIGNIFICANT = 4.0  # standard errors of missing mass before a code is taken to have unknown values


class StageBounds(NamedTuple):
    """How many numbers each stage releases, and how far one record moves their sums."""

    centre_dimension: int
    centre: float
    moments_dimension: int
    moments: float
    moments_terms: float  # Σ|terms| of one record, for summation error


def stage_bounds(layout: Layout) -> StageBounds:
    asked = CentreMoments(layout)
    terms = sensitivity.normalised_terms(len(layout.numbers), _ABSENT_SHARE * len(layout.choices))
    return StageBounds(
        asked.dimension, asked.sensitivity(), normalised_dimension(layout), sensitivity.normalised_moments(), terms
    )


@dataclass(frozen=True, slots=True)
class CentreMoments:
    """A bounded query: the vector (Σ v, 2 Σ (v² - 1/8) over numbers) with v = x - public centre."""

    layout: Layout

    @property
    def dimension(self) -> int:
        return self.layout.width + len(self.layout.numbers)

    def sensitivity(self) -> float:
        return sensitivity.centre_moments(self.layout)


@dataclass(frozen=True, slots=True)
class Scales:
    """g₀ … g₅: how much of a row's length each group of moments gets.

    Minimising Σ cₖ/gₖ, the noise each group ends up with, under Σ gₖrₖ² = 1 for typical group norms rₖ gives gₖ ∝ √cₖ/rₖ.
    """

    zeroth: float
    first: float
    label: float
    second: float
    squares: float
    absent: float = 0.0
    # what ‖F(x, 1)‖² multiplies its parts with, in the order of `squared_length`
    of_lengths: Vector = field(init=False, compare=False)

    def __post_init__(self) -> None:
        parts = [2 * self.zeroth, self.first + self.label, self.second, self.squares, self.absent]
        object.__setattr__(self, "of_lengths", np.array(parts))

    @classmethod
    def balance(cls, layout: Layout, variance: Vector, second: float = _SECOND_SHARE) -> Scales:
        spread = layout.per_attribute(variance)
        total, numbers = float(spread.sum()), variance[layout.numbers]
        products = max((total**2 - float(spread @ spread)) / 2, 0.0)
        return cls(
            zeroth=1.0,
            first=1 / sqrt(max(total, _TINY)),
            label=_LABEL_SHARE / sqrt(max(total, _TINY)),
            second=second / sqrt(products) if products > _TINY else 0.0,
            squares=1 / sqrt(2 * float(numbers @ numbers)) if numbers.size else 0.0,
            absent=_ABSENT_SHARE,
        )

    def squared_length(self, norms: Matrix, deviations: Vector, absent: Vector) -> Vector:
        """‖F(x, 1)‖² from each row's ‖v_a‖² per attribute a, (attributes, m), Σ(v² - variance)² over its numbers, and how many codes have no value.

        These are multiplied with `of_lengths`: 1, ‖v‖², products across attributes, deviations, missing values.
        """
        total = products = np.zeros(norms.shape[1])
        for norm in norms:  # Σ_{a<b} without cancellation
            products = products + total * norm
            total = total + norm
        constant, *factors = self.of_lengths.tolist()
        parts = zip(factors, (total, products, deviations, absent), strict=True)
        return np.asarray(constant + sum(factor * part for factor, part in parts))


@dataclass(frozen=True, slots=True)
class NormalisedMoments:
    """A bounded query: Σ w(x)F(x, y) around `centre`."""

    layout: Layout
    centre: Vector
    variance: Vector
    # what labels are compared with before they are summed; None: they are summed as they are
    expected: ExpectedLabels | None = None
    # how numbers are distributed, where that was released: for public points, sums do not depend on it
    margins: NumberCounts | None = None
    scales: Scales = field(init=False)

    def __post_init__(self) -> None:
        second = _SECOND_SHARE if self.expected is None else _SECOND_SHARE_COMPARED
        object.__setattr__(self, "scales", Scales.balance(self.layout, self.variance, second))

    @classmethod
    def after(cls, released: Vector, layout: Layout, size: int, sigma: float) -> NormalisedMoments:
        """The query of stage 2 around what stage 1 released, with noise `sigma` on each number."""
        return cls(layout, *centre_of(released, layout, size, sigma))

    def sensitivity(self) -> float:
        return sensitivity.normalised_moments()

    @property
    def plane(self) -> ExpectedLabels:
        """What labels are compared with."""
        return ExpectedLabels.zero(self.layout.width) if self.expected is None else self.expected

    def sums(self, raw: RawSums) -> NormalisedSums:
        """The sums that `vector` scales, from weighted sums around `centre` as rows answer this query."""
        numbers = self.layout.numbers
        cross = np.where(self.layout.same_attribute(), 0.0, raw.S2)
        squares = np.diag(raw.S2)[numbers] - self.variance[numbers] * raw.S0
        known = self.layout.per_attribute(raw.S1 + self.centre * raw.S0)[self.layout.choices]
        return NormalisedSums(raw.S0, raw.t0, raw.S1, raw.t1, cross, squares, raw.S0 - known)

    def vector(self, raw: RawSums) -> Vector:
        """The statistic Σ wF, from what rows answer to this query."""
        return self.sums(raw).vector(self.scales, self.layout)

    def weights(self, points: Matrix) -> Vector:
        """w(x) of each row."""
        out, numbers = np.empty(len(points)), self.layout.numbers
        for start in range(0, len(points), _TOGETHER):
            some = points[start : start + _TOGETHER]
            squares = np.square(some - self.centre)
            deviations = np.square(squares[:, numbers] - self.variance[numbers]).sum(axis=1)
            absent = np.square(1 - self.layout.per_attribute(some.T)[self.layout.choices]).sum(axis=0)
            lengths = self.scales.squared_length(self.layout.per_attribute(squares.T), deviations, absent)
            out[start : start + _TOGETHER] = 1 / np.sqrt(lengths)
        return out


@dataclass(frozen=True, slots=True)
class NormalisedSums:
    """(Σw, Σwy, Σwv, Σwyv, Σwvvᵀ across attributes, Σw(v² - variance) of numbers, Σw(1 - Σx) of codes). Private until released.

    Several together have one more axis, the first.
    """

    w0: Vector | float
    t0: Vector | float
    s1: Vector
    t1: Vector
    s2: Matrix  # symmetric; only entries across attributes mean anything
    squares: Vector
    absent: Vector

    def vector(self, scales: Scales, layout: Layout) -> Vector:
        """Σ wF, each number once: a symmetric pair is one number, so no √2 enters."""
        i, j = layout.pairs
        zeroth = sqrt(scales.zeroth) * np.stack([self.w0, self.t0], axis=-1)
        first, label = sqrt(scales.first) * self.s1, sqrt(scales.label) * self.t1
        second, squares = sqrt(scales.second) * self.s2[..., i, j], sqrt(scales.squares) * self.squares
        return np.concatenate([zeroth, first, label, second, squares, sqrt(scales.absent) * self.absent], axis=-1)

    @classmethod
    def from_vector(cls, values: Vector, scales: Scales, layout: Layout) -> NormalisedSums:
        n, (i, j) = layout.width, layout.pairs
        sizes = np.cumsum([2, n, n, len(i), len(layout.numbers)])
        zeroth, first, label, second, squares, absent = np.split(values, sizes, axis=-1)
        s2 = np.zeros((*values.shape[:-1], n, n))
        s2[..., i, j] = s2[..., j, i] = second / sqrt(scales.second) if scales.second else 0.0
        zeroth = zeroth / sqrt(scales.zeroth)
        unscaled = squares / sqrt(scales.squares) if squares.size else squares
        first, label = first / sqrt(scales.first), label / sqrt(scales.label)
        return cls(zeroth[..., 0], zeroth[..., 1], first, label, s2, unscaled, absent / sqrt(scales.absent))


def centre_of(released: Vector, layout: Layout, size: int, sigma: float) -> tuple[Vector, Vector]:
    """(centre, variance) for stage 2 from stage 1's noisy vector. Any values are valid there; better ones waste less."""
    first, squares = released[: layout.width], released[layout.width :] / SQUARES_SCALE
    raw = layout.centre + first / size
    mean = np.clip(raw, 0.0, 1.0)
    for a in layout.codes:
        block = layout.columns(a)
        k = block.stop - block.start
        known = 1 - float(raw[block].sum()) <= SIGNIFICANT * sqrt(k) * sigma / size + 1e-9  # no mass is missing
        if k > 1 and (known or float(mean[block].sum()) > 1):
            mean[block] = (mean[block] + 1e-9) / float((mean[block] + 1e-9).sum())
    variance = np.maximum(mean * (1 - mean), SMALLEST_VARIANCE)
    numbers = layout.numbers
    seconds = squares / size + SQUARES_CENTRE
    variance[numbers] = np.clip(seconds - np.square(mean[numbers] - 0.5), SMALLEST_VARIANCE, 0.25)
    return mean, variance


def normalised_dimension(layout: Layout) -> int:
    """How many numbers stage 2 releases."""
    return 2 + 2 * layout.width + len(layout.pairs[0]) + len(layout.numbers) + len(layout.choices)
