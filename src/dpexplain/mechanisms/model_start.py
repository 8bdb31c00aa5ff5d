"""A start for descents from the model itself: one plane, fitted to its answers at public points. It reads no row, so it costs nothing.

A descent of finite length shrinks its answer towards its start. From 0, slopes that the noise hides (of rare categories, of numbers that hardly vary) come
out too short; from the model's plane they stay near the slopes that the model has over the declared domain. The points are a Sobol' sequence over the
domain, numbers uniform and categories equally frequent, because how rows are spread is private. They are the same in every process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import scipy

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.layout import Layout
from dpexplain.core.plane import Plane
from dpexplain.estimation.reference import NUMBER_STEPS, Reference, sobol
from dpexplain.mechanisms.descent import Guide
from dpexplain.mechanisms.gradient import Gradient
from dpexplain.mechanisms.plane_choice import QUIET, travel_of, unit_noise
from dpexplain.mechanisms.setting import Given, Setting, WithModel

POINTS = 2048
_FEWEST, _A_COLUMN = 1024, 4  # points in all and for each column: fewer do not determine a plane
_DETERMINED = 1e-6  # of the largest eigenvalue
_SHORTEST = 0.4  # of the walk from 0
_TELLING = 0.2  # standard deviation of a plane over the domain, in labels, from which on its start is relied on


@dataclass(frozen=True, slots=True, eq=False)
class ModelPlane:
    """level + slopes·(x - centre): the plane nearest to the model's answers over the declared domain. `spread` is its standard deviation there."""

    slopes: Vector
    centre: Vector
    level: float
    spread: float

    @classmethod
    def fit(cls, points: Matrix, answers: Vector) -> ModelPlane:
        """Fit by least squares, of least norm: the slopes of a category's columns then have mean 0."""
        centre, level = points.mean(axis=0), float(answers.mean())
        apart = points - centre
        values, vectors = scipy.linalg.eigh(apart.T @ apart)
        axes = vectors[:, values > _DETERMINED * values[-1]]
        along = apart @ axes
        slopes = axes @ ((along.T @ (answers - level)) / np.square(along).sum(axis=0))
        return cls(slopes, centre, level, float((apart @ slopes).std()))

    def state(self, gradient: Gradient) -> Vector:
        """The state of a descent at this plane: slopes over scaled columns, and the plane's answer at the query where it is free there."""
        slopes = gradient.setting.into_scaled(self.slopes)
        if gradient.dimension == len(slopes):
            return slopes
        return np.append(slopes, self.level + float(self.slopes @ (gradient.local.point - self.centre)))

    def guide(self, gradient: Gradient, mu: float, way: float = 1.0) -> Guide | None:
        """Shorter steps in all directions but the plane's own, for a descent at accuracy μ that would walk the share `way`. None for a level plane."""
        slopes = gradient.setting.into_scaled(self.slopes)
        length = float(np.linalg.norm(slopes))
        if length == 0:
            return None
        shorter = min(self.walk_share(unit_noise(gradient) / mu), way)
        direction = np.zeros(gradient.dimension)
        direction[: len(slopes)] = slopes / length
        return Guide(direction, len(slopes), travel_of(gradient, mu, shorter) / travel_of(gradient, mu, way))

    def walk_share(self, noise: float) -> float:
        """How far to walk in directions that the plane does not have, as a share of the walk from 0.

        The more noise, the more a good start is worth. A plane that hardly varies over the domain tells little.
        """
        least = max(1 / (1 + (noise / QUIET) ** 2), _SHORTEST)
        return 1 - (1 - least) * min(self.spread / _TELLING, 1.0)


@dataclass(slots=True, eq=False)
class AskedPlane:
    """The model's plane over a domain. The model is asked when the plane is first needed, and once."""

    model: Callable[[Matrix], Vector]
    _found: dict[tuple[Layout, int], ModelPlane | None] = field(default_factory=dict, repr=False)

    def plane(self, setting: Setting) -> ModelPlane | None:
        """None where no domain is declared, where it has too many columns, and where the model cannot answer about its points."""
        layout = setting.layout
        count = min(POINTS, 1 << (setting.size.bit_length() - 1))  # at most as many questions as registering the rows took
        if layout is None or count < max(_FEWEST, _A_COLUMN * layout.width):
            return None
        key = layout, count
        if key not in self._found:
            self._found[key] = self._ask(layout, count)
        return self._found[key]

    def _ask(self, layout: Layout, count: int) -> ModelPlane | None:
        points = spread_points(layout, count)
        try:
            answers = np.asarray(self.model(points), dtype=np.float64)
        except Exception:  # whatever a foreign model raises about points that no row may have: answers must not depend on it
            return None
        if answers.shape != (count,) or not np.isfinite(answers).all():
            return None
        return ModelPlane.fit(points, np.clip(answers, -1.0, 1.0))


@dataclass(frozen=True, slots=True)
class StartsFromModel(WithModel[Given]):
    """A mechanism together with the black box, whose plane is its start. All that the model is asked about is public, so asking costs nothing."""

    public: AskedPlane = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        WithModel.__post_init__(self)
        object.__setattr__(self, "public", AskedPlane(self.model))

    def anchor_of(self, plane: Plane | None, point: Vector) -> float | None:
        """The model's answer at the point, where planes of this kind go through it."""
        return self.label_of(point) if plane == "anchored" else None


def spread_points(layout: Layout, count: int) -> Matrix:
    """Encoded public points, spread evenly over the declared domain; (count, n)."""
    sizes = np.array(layout.stops) - np.array(layout.starts)
    cells = np.where(layout.is_number, NUMBER_STEPS, np.maximum(sizes, 2))[:, None]  # a binary column is on or off
    codes = np.floor(sobol(layout.attributes, count) * cells).astype(np.int64)
    return Reference(codes, np.empty(0), np.empty(0)).points(layout)
