"""Faithfulness and stability, as Quantus and OpenXAI define them; for private and other explanations alike.

Every function takes an explanation `values` (one number for each encoded column, or an `Explanation`), the model as a function of encoded rows
(labels in [-1, 1]), the domain and the query. Features move as a whole: a category is replaced by a category. `kind` says what the values are:
"slope", the label's change per unit of a column, as our φ, LIME and MIM; or "contribution", a share of this answer, as SHAP.

| metric | better | what |
|---|---|---|
| `deletion`, `insertion` | lower, higher | area under the answer as features are taken away from z, or given to the baseline, strongest first |
| `pgi`, `pgu` | higher, lower | gap of the answer when the k strongest features are perturbed, or all others |
| `infidelity` | lower | squared error of the change that the explanation predicts |
| `max_sensitivity`, `lipschitz` | lower | how much the explanation moves when the query does |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpexplain.arguments import quote
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.domain.interface import Block, DomainLike
from dpexplain.errors import ParameterError
from dpexplain.evaluation.baselines.inputs import Model, encoded_point
from dpexplain.evaluation.metrics.agreement import strongest
from dpexplain.evaluation.metrics.nearby import Nearby
from dpexplain.noise.seeded import SeededNoise

Kind = Literal["slope", "contribution"]
_NEAR = Nearby()


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """The answer, with the sign of z's class, after 0, 1, …, d features; `area` is its mean by the trapezoid rule."""

    answers: Vector

    @property
    def area(self) -> float:
        return float((self.answers[1:] + self.answers[:-1]).mean() / 2)


def deletion(values: Any, model: Model, domain: DomainLike, query: Any, baseline: Any, *, kind: Kind = "slope") -> Curve:
    """Features of z become the baseline's, the one that supports z's class most first. A faithful explanation makes the curve fall early.

    `baseline` is one encoded row, or several, over which answers are averaged (Quantus' PixelFlipping; Petsiuk et al. 2018).
    """
    point, rows = encoded_point(domain, query), _rows(baseline)
    order = _order(values, model, domain, point, rows, kind)
    return _curve(model, domain.blocks, order, start=np.tile(point, (len(rows), 1)), end=rows, sign=_sign(model, point))


def insertion(values: Any, model: Model, domain: DomainLike, query: Any, baseline: Any, *, kind: Kind = "slope") -> Curve:
    """The same backwards: z's features enter the baseline, the strongest first. A faithful explanation makes the curve rise early."""
    point, rows = encoded_point(domain, query), _rows(baseline)
    order = _order(values, model, domain, point, rows, kind)
    return _curve(model, domain.blocks, order, start=rows, end=np.tile(point, (len(rows), 1)), sign=_sign(model, point))


def pgi(
    values: Any, model: Model, domain: DomainLike, query: Any, k: int = 3, *, near: Nearby = _NEAR, kind: Kind = "slope"
) -> float:
    """Prediction gap on important features: mean |f(z) - f(z')|, z' perturbed in the k strongest features (OpenXAI).

    The strongest are those whose perturbation moves the answer most if the slopes are right, or the largest contributions.
    """
    point = encoded_point(domain, query)
    top = _top(values, domain, point, k, near, kind)
    return _gap(model, point, near.draw(point, domain, top))


def pgu(
    values: Any, model: Model, domain: DomainLike, query: Any, k: int = 3, *, near: Nearby = _NEAR, kind: Kind = "slope"
) -> float:
    """Prediction gap on unimportant features: the same, all but the k strongest perturbed."""
    point = encoded_point(domain, query)
    top = _top(values, domain, point, k, near, kind)
    return _gap(model, point, near.draw(point, domain, ~top))


def infidelity(
    values: Any,
    model: Model,
    domain: DomainLike,
    query: Any,
    *,
    near: Nearby = _NEAR,
    kind: Kind = "slope",
    baseline: Any = None,
    rescaled: bool = False,
) -> float:
    """Mean of (predicted change - (f(z) - f(z')))² over perturbed z' (Yeh et al. 2019).

    A slope predicts φ·(z - z'). A contribution describes a feature's absence: z' then takes random features, each with probability ½, from rows of the
    `baseline`, and the prediction is the sum of their contributions. `rescaled` first multiplies the explanation by the best number, for
    explanations that have a direction but no unit, such as MIM.
    """
    point, phi = encoded_point(domain, query), vector(values)
    if kind == "slope":
        moved = near.draw(point, domain)
        predicted = (point - moved) @ phi
    else:
        predicted, moved = _without_features(phi, domain.blocks, point, _rows(baseline), near)
    change = float(model(point[None])[0]) - model(moved)
    size = float(predicted @ predicted)
    factor = float(predicted @ change) / size if rescaled and size > 0 else 1.0
    return float(np.square(factor * predicted - change).mean())


def max_sensitivity(explain: Callable[[Vector], Any], domain: DomainLike, query: Any, *, near: Nearby = _NEAR) -> float:
    """max ‖φ(z') - φ(z)‖ / ‖φ(z)‖ over perturbed z' (Yeh et al. 2019), `explain` a function of encoded points.

    A private `explain` pays for every call, and its noise counts as instability, because a user sees both together.
    """
    changes, _, length = _changes(explain, domain, query, near)
    return float(changes.max() / length) if length > 0 else 0.0


def lipschitz(explain: Callable[[Vector], Any], domain: DomainLike, query: Any, *, near: Nearby = _NEAR) -> float:
    """max ‖φ(z') - φ(z)‖ / ‖z' - z‖ (Alvarez-Melis & Jaakkola 2018; Quantus' local Lipschitz estimate)."""
    changes, distances, _ = _changes(explain, domain, query, near)
    moved = distances > 0
    return float((changes[moved] / distances[moved]).max()) if moved.any() else 0.0


def at_points(source: Any, domain: Any) -> Callable[[Vector], Vector]:
    """A release or an explainer as a function of encoded points."""

    def explain(point: Vector) -> Vector:
        columns = domain.decode(point[None])
        return vector(source.explain({name: column[0] for name, column in columns.items()}))

    return explain


def vector(values: Any) -> Vector:
    """The numbers of an explanation, or of an array."""
    return np.asarray(getattr(values, "values", values), dtype=np.float64)


def feature_strength(values: Any, blocks: Sequence[Block], moved: Matrix, kind: Kind) -> Matrix:
    """One number a feature, for one or several ways to move: Σ φ_j·moved_j over its columns for slopes, Σ φ_j for contributions."""
    if kind not in ("slope", "contribution"):
        raise ParameterError(f"kind must be 'slope' or 'contribution', got {quote(kind)}")
    phi = vector(values)
    parts = phi * moved if kind == "slope" else np.broadcast_to(phi, moved.shape)
    return np.add.reduceat(parts, [block.start for block in blocks], axis=-1)


def _rows(baseline: Any) -> Matrix:
    if baseline is None:
        raise ParameterError(
            "contributions need a baseline. Pass baseline=, encoded rows that stand for the absence of a feature"
        )
    return np.atleast_2d(np.asarray(baseline, dtype=np.float64))


def _sign(model: Model, point: Vector) -> float:
    return 1.0 if float(model(point[None])[0]) >= 0 else -1.0


def _order(values: Any, model: Model, domain: DomainLike, point: Vector, rows: Matrix, kind: Kind) -> list[int]:
    """Features by how strongly they support z's class, strongest first."""
    strength = feature_strength(values, domain.blocks, point - rows.mean(axis=0), kind)
    return [int(i) for i in np.argsort(-_sign(model, point) * strength, kind="stable")]


def _curve(model: Model, blocks: Sequence[Block], order: list[int], start: Matrix, end: Matrix, sign: float) -> Curve:
    rows, answers = start.copy(), [float(model(start).mean())]
    for i in order:
        columns = slice(blocks[i].start, blocks[i].stop)
        rows[:, columns] = end[:, columns]
        answers.append(float(model(rows).mean()))
    return Curve(sign * np.array(answers))


def _top(values: Any, domain: DomainLike, point: Vector, k: int, near: Nearby, kind: Kind) -> NDArray[np.bool_]:
    """For each feature, whether it is one of the k whose perturbation moves the answer most."""
    expected = np.abs(feature_strength(values, domain.blocks, point - near.draw(point, domain), kind)).mean(axis=0)
    return np.isin(np.arange(len(expected)), strongest(expected, k))


def _gap(model: Model, point: Vector, moved: Matrix) -> float:
    """Mean |f(z) - f(z')| over the records z' in `moved`."""
    return float(np.abs(float(model(point[None])[0]) - model(moved)).mean())


def _without_features(phi: Vector, blocks: Sequence[Block], point: Vector, rows: Matrix, near: Nearby) -> tuple[Vector, Matrix]:
    """(sum of the absent features' contributions, records without them)."""
    strength = feature_strength(phi, blocks, point, "contribution")
    absent = SeededNoise(near.seed).uniform(near.samples * len(blocks)).reshape(near.samples, -1) < 0.5
    widths = [block.stop - block.start for block in blocks]
    return absent @ strength, np.where(np.repeat(absent, widths, axis=1), rows[np.arange(near.samples) % len(rows)], point)


def _changes(explain: Callable[[Vector], Any], domain: DomainLike, query: Any, near: Nearby) -> tuple[Vector, Vector, float]:
    """(‖φ(z') - φ(z)‖ and ‖z' - z‖ for each perturbed z', ‖φ(z)‖)."""
    point = encoded_point(domain, query)
    own, moved = vector(explain(point)), near.draw(point, domain)
    changes = np.array([np.linalg.norm(vector(explain(one)) - own) for one in moved])
    return changes, np.linalg.norm(moved - point, axis=1), float(np.linalg.norm(own))
