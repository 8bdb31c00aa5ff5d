"""A bound on how far one record can move the gradient at a public φ. It is below the bound for the whole ball. Proof: `proofs/reach.md`.

The bound sup 2α(d)d(kd + 1) of `sensitivity.gradient` is attained by a record that lies along φ. But the φ at which a gradient is asked is
public, and records of a domain cannot lie anywhere: a text that differs from z in j words has φ·u at most the sum of the j largest of ±φ. So

    reach(φ) = sup over records 2α(‖u‖)‖u‖ |φ·u + c - y|,    c = 0, or the model's answer f(z) in anchored explanations,

is bounded here from φ, z, the weight and the domain's layout. Codes (one-hot blocks and binaries) change ‖u‖² by whole units, each at a gain in
φ·u of its own; numbers change it by any s² ≤ Σ max(z, 1-z)². With C_j the sum of the j largest gains and N(s) ≥ φ·u over the numbers,

    reach(φ) ≤ max over ±φ, j and cells [s, s⁺] of  2 sup{α(d)d : j + s² ≤ d² ≤ j + s⁺²} · (C_j + N(s⁺) + 1 ± c).

u and φ are over columns multiplied by their public scales (`proofs/scale.md`): a unit of codes of scale t is t², and a number's range [0, t].
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from math import hypot, inf, sqrt
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpexplain.core import sensitivity
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.free_plane import intercept_unit
from dpexplain.core.layout import Indices, Layout, is_code
from dpexplain.core.weights import Weight

_CELLS, _RATIO = 100, 1.05  # of lengths s of the numbers' part, finer where they are short
_ROUND_UP = 1 + 2.0**-30
_NEAR = 0.02  # by how much shares along a path may be too large: it saves most of the work
LEAST_SHARE = 0.25  # of the bound for the whole ball: so rounding errors weigh at most four times as much
LEAST_FREE_SHARE = 1 / 16  # of a plane that is free at z, whose ball is larger


@dataclass(frozen=True, slots=True, eq=False)
class Codes:
    """One-hot blocks and binary columns around z, whose own blocks are one-hot or zero."""

    columns: Indices
    starts: Indices  # where each block begins among the columns
    own: Vector  # z
    held: NDArray[np.bool_]  # blocks in which z has a category
    paired: NDArray[np.bool_]  # … and can change by two units, to another category
    scale: float = 1.0  # of all these columns: a unit is its square

    @property
    def arrays(self) -> tuple[Indices, Indices, Vector, Indices, float]:
        """What a compiled loop takes; the kind of a block is 0 where z has no category, 1 where it has, 2 where it is paired."""
        return self.columns, self.starts, self.own, self.held.astype(np.int64) + self.paired, self.scale

    @property
    def units(self) -> int:
        """The most that ‖u‖² can be."""
        return len(self.starts) + int(self.paired.sum())

    def gains(self, phis: Matrix) -> Matrix:
        """C_0, C_1, … for each row φ: at most how much φ·u gains where ‖u‖² = j.

        A block can leave z's category (one unit, gain -φ_z) and enter another (two units, gain φ_j - φ_z). Where the second unit gains more
        than the first, each is taken to gain the mean of both. Then gains fall from unit to unit, and the j largest of all are a bound.
        """
        if not len(self.columns):
            return np.zeros((len(phis), 1))
        inside = phis[:, self.columns] * self.scale
        leaving = -np.add.reduceat(inside * self.own, self.starts, axis=1)
        whole = np.maximum.reduceat(inside, self.starts, axis=1) + leaving
        first = np.where(self.held, leaving, whole)
        first = np.where(self.paired, np.maximum(leaving, whole / 2), first)
        units = np.concatenate([first, (whole - first)[:, self.paired]], axis=1)
        falling = -np.sort(-units, axis=1)
        return np.concatenate([np.zeros((len(phis), 1)), np.cumsum(falling, axis=1)], axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """Columns in [0, scale] around z."""

    columns: Indices
    own: Vector  # z
    scale: Vector
    edges: Vector  # s₀ = 0, s₁, …: cells of ‖u‖

    @property
    def arrays(self) -> tuple[Indices, Vector, Vector, Vector]:
        """What a compiled loop takes."""
        return self.columns, self.own, self.scale, self.edges

    def gains(self, phis: Matrix) -> Matrix:
        """N(s⁺) of each cell for each row φ: φ·u is at most ‖φ‖s⁺, and at most what every column at its better end gives."""
        inside = phis[:, self.columns]
        most = np.maximum(-inside * self.own, inside * (self.scale - self.own)).sum(axis=1, keepdims=True)
        return np.asarray(np.minimum(np.linalg.norm(inside, axis=1, keepdims=True) * self.edges[1:], most))


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """A bound on what one record adds to the gradient sum at φ, in any norm that `proofs/shape.md` allows."""

    codes: Codes
    numbers: Numbers
    pulls: Matrix  # (units + 1, cells): 2 sup α(d)d
    anchor: float  # c
    everywhere: float  # the bound for the whole ball
    steepness: float  # sup α(d)d²
    least: float = LEAST_SHARE
    _arrays: tuple[Any, Any] = field(init=False)  # what the compiled loop takes of the codes and numbers

    def __post_init__(self) -> None:
        object.__setattr__(self, "_arrays", (self.codes.arrays, self.numbers.arrays))

    @classmethod
    def around_point(cls, point: Vector, layout: Layout, weight: Weight, radius: float, anchor: float = 0.0) -> Reach:
        codes, numbers, (low, high), within = _geometry(layout, np.asarray(point, dtype=np.float64).tobytes())
        pulls = 2 * weight.largest_pull(low, high)
        everywhere = sensitivity.gradient(weight, radius, 1 + abs(anchor), within)
        return cls(codes, numbers, pulls, anchor, everywhere, sensitivity.quadratic(weight, within))

    def share(self, phi: Vector) -> float:
        """reach(φ) as a share of the bound for the whole ball, at least `least`."""
        return min(max(self.bound_at(phi) / self.everywhere, self.least), 1.0)

    def bound_at(self, phi: Vector) -> float:
        """A bound on reach(φ)."""
        return self._bound(phi, self.anchor)

    def state_distance(self, phi: Vector, other: Vector) -> float:
        """How far two states are from each other; reach changes by at most 2·`steepness` times that."""
        return sqrt(float((phi - other) @ (phi - other)))

    def _bound(self, phi: Vector, offset: float) -> float:
        from dpexplain.core._reach_kernels import largest_pull  # numba takes long to load

        return largest_pull(phi, offset, *self._arrays, self.pulls) * _ROUND_UP

    def bound_by_arrays(self, phi: Vector, offset: float) -> float:
        """`_bound` by NumPy, to compare with."""
        both, labels = np.array([phi, -phi]), np.array([1 + offset, 1 - offset])
        gains = self.codes.gains(both)[:, :, None] + self.numbers.gains(both)[:, None, :]
        return float((self.pulls * (gains + labels[:, None, None]).max(axis=0)).max()) * _ROUND_UP


@dataclass(slots=True, eq=False)
class SharePath:
    """`Reach.share` for the points of one path: within `_NEAR` of where it was computed last, that and how far φ has moved are a bound.

    reach is Lipschitz with constant sup 2α(d)d², because ‖u‖·|φ·u - φ'·u| ≤ d²‖φ - φ'‖.
    """

    reach: Reach
    _where: Vector | None = None
    _known: float = 1.0

    def __call__(self, phi: Vector) -> float:
        moved = inf
        if self._where is not None:
            slope = 2 * self.reach.steepness / self.reach.everywhere * _ROUND_UP
            moved = slope * self.reach.state_distance(phi, self._where)
        if moved > _NEAR:
            self._where, self._known, moved = phi, self.reach.share(phi), 0.0
        return min(self._known + moved, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class FreeReach(Reach):
    """The same for a plane a + φ·u that is free at z, at its state (φ, a): a takes the anchor's place, and the constant s makes pulls longer.

    2α(d)√(d² + s²) on a cell is at most 2√((sup αd)² + s²(sup α)²). `proofs/free_plane.md`. States are apart by ‖(φ - φ', (a - a')/t)‖, t = `unit`.
    """

    unit: float = 1.0

    @classmethod
    def with_constant(cls, point: Vector, layout: Layout, weight: Weight, radius: float, constant: float) -> Self:
        codes, numbers, (low, high), within = _geometry(layout, np.asarray(point, dtype=np.float64).tobytes())
        pulls = 2 * np.hypot(weight.largest_pull(low, high), constant * weight.largest_weight(low)) * _ROUND_UP
        everywhere = sensitivity.free_gradient(weight, radius, constant, within)
        unit = intercept_unit(weight, within)
        steepness = sensitivity.free_steepness(weight, constant, unit, within)
        return cls(codes, numbers, pulls, 0.0, everywhere, steepness, LEAST_FREE_SHARE, unit)

    def bound_at(self, phi: Vector) -> float:
        """A bound at the state (φ, a)."""
        return self._bound(phi[:-1], float(phi[-1]))

    def state_distance(self, phi: Vector, other: Vector) -> float:
        moved = phi - other
        return hypot(sqrt(float(moved[:-1] @ moved[:-1])), float(moved[-1]) / self.unit)


@lru_cache(maxsize=64)  # a plan asks several times, with other weights and radii
def _geometry(layout: Layout, entries: bytes) -> tuple[Codes, Numbers, tuple[Matrix, Matrix], float]:
    """Codes, numbers and cells around the point with these entries, and how far a record can be from it."""
    point = np.frombuffer(entries)
    codes, loose = _codes(point, layout)
    numbers = _numbers(point, loose, layout)
    return codes, numbers, _cells(codes, numbers), layout.diameter(point)


def _cells(codes: Codes, numbers: Numbers) -> tuple[Matrix, Matrix]:
    """(least, largest) distance of each cell: units of codes by lengths of the numbers' part."""
    units, squared = codes.scale**2 * np.arange(codes.units + 1.0)[:, None], np.square(numbers.edges)
    return np.sqrt(units + squared[:-1]) / _ROUND_UP, np.sqrt(units + squared[1:]) * _ROUND_UP


def _codes(point: Vector, layout: Layout) -> tuple[Codes, Indices]:
    """The codes whose columns at z are one-hot or zero, and the columns of all other attributes, which are bounded as numbers.

    Units are counted, so codes have the scale that most of their columns have; those of another scale are bounded as numbers, too.
    """
    scale = _common_scale(layout)
    blocks = [layout.columns(a) for a in layout.codes if not layout.scales or layout.scales[a] == scale]
    fitting = [b for b in blocks if is_code(point[b])]
    sizes = np.array([b.stop - b.start for b in fitting], dtype=np.int64)
    columns = np.concatenate([np.arange(b.start, b.stop) for b in fitting]) if fitting else np.zeros(0, dtype=np.int64)
    held = np.array([point[b].sum() == 1 for b in fitting], dtype=bool)
    starts = np.cumsum(sizes) - sizes
    others = np.ones(layout.width, dtype=bool)
    others[columns] = False
    loose = np.flatnonzero(others)
    return Codes(columns, starts, point[columns], held, held & (sizes > 1), scale), loose


def _common_scale(layout: Layout) -> float:
    """The scale that most columns of codes have."""
    if not layout.scales or not layout.codes:
        return 1.0
    widths: dict[float, int] = {}
    for a in layout.codes:
        widths[layout.scales[a]] = widths.get(layout.scales[a], 0) + layout.stops[a] - layout.starts[a]
    return max(widths, key=lambda scale: widths[scale])


def _numbers(point: Vector, columns: Indices, layout: Layout) -> Numbers:
    scale = np.ones(len(columns)) if layout.scale is None else layout.scale[columns]
    own = scale * point[columns]
    longest = float(np.linalg.norm(np.maximum(np.abs(own), np.abs(scale - own))))
    falling = longest * _RATIO ** -np.arange(_CELLS - 1.0, -1.0, -1.0) if len(columns) else np.zeros(1)
    return Numbers(columns, own, scale, np.concatenate([[0.0], falling]))
