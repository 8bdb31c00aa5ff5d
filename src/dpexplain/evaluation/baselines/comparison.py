"""Private explanations and the usual baselines of one point in one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Group
from rich.table import Table

from dpexplain import plots
from dpexplain.answers.contributions import feature_names, frame_of, per_feature
from dpexplain.arguments import quote
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.plane import Plane
from dpexplain.core.weights import Weight
from dpexplain.data import PrivateData
from dpexplain.errors import ParameterError
from dpexplain.evaluation.baselines.inputs import column_spread, encoded_point
from dpexplain.evaluation.baselines.lime import lime
from dpexplain.evaluation.baselines.mim import mim
from dpexplain.evaluation.baselines.shap import shap_values
from dpexplain.evaluation.metrics.agreement import Agreement, agreement, strongest
from dpexplain.evaluation.metrics.fidelity import optimum

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METHODS = ("optimum", "lime", "shap", "mim")


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """One vector for each method, all about the same point and in the same rows; `reference` is the method that the others are compared with."""

    names: tuple[str, ...]
    methods: Mapping[str, Vector]
    reference: str
    k: int = 5

    def __post_init__(self) -> None:
        if self.reference not in self.methods:
            raise ParameterError(
                f"reference={quote(self.reference)} is not one of the methods. Use one of {sorted(self.methods)}"
            )
        for name, values in self.methods.items():
            if np.shape(values) != (len(self.names),):
                raise ParameterError(
                    f"{name}: values must be {len(self.names)} numbers, one for each name, got shape {np.shape(values)}"
                )

    def agreement(self, reference: str | None = None) -> dict[str, Agreement]:
        """Each method against the reference, or against another one of them."""
        held_against = self.methods[reference or self.reference]
        return {name: agreement(values, held_against, self.k) for name, values in self.methods.items()}

    def matrix(self, what: str) -> Matrix:
        """Every method against every other: "cosine", "rank_correlation", "top_k_overlap" or "sign_agreement"."""
        vectors = list(self.methods.values())
        return np.array([[getattr(agreement(one, other, self.k), what) for other in vectors] for one in vectors])

    def to_frame(self, backend: str | None = None) -> Any:
        """Names and one column for each method: pandas, polars or pyarrow, whichever is installed first or is named."""
        columns = {"name": list(self.names)} | {name: list(map(float, values)) for name, values in self.methods.items()}
        return frame_of(columns, backend)

    def plot(self, top: int = 10, *, title: str = "One answer, explained by several methods", ax: Axes | None = None) -> Figure:
        """One marker for each method, the reference first, each scaled to length 1."""
        first = {self.reference: self.methods[self.reference]}
        return plots.comparison(self.names, first | dict(self.methods), top=top, title=title, ax=ax)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} {one.cosine:.3f}" for name, one in self.agreement().items() if name != self.reference)
        return f"<Comparison of {len(self.names)} values; cosine to {self.reference}: {shown}>"

    def __rich__(self) -> Group:
        heading = "strongest first; each method as a share of its own largest value"
        return Group(heading, self._values(), "", f"agreement with {self.reference}", self._scores())

    def _values(self, most: int = 12) -> Table:
        """The strongest rows of the reference; each method scaled to its own largest, so that columns can be read side by side."""
        table = Table(box=None, pad_edge=False)
        table.add_column("")
        scaled = {name: values / (float(np.abs(values).max()) or 1.0) for name, values in self.methods.items()}
        for name in scaled:
            table.add_column(name, justify="right")
        for i in strongest(self.methods[self.reference], most):
            table.add_row(self.names[i], *(f"{values[i]:+.2f}" for values in scaled.values()))
        return table

    def _scores(self) -> Table:
        table = Table(box=None, pad_edge=False)
        for column in ("", "cosine", "rank correlation", f"top-{self.k} shared", "… and same sign"):
            table.add_column(column, justify="right" if column else "left")
        for name, one in self.agreement().items():
            numbers = (one.cosine, one.rank_correlation, one.top_k_overlap, one.sign_agreement)
            table.add_row(name, *(f"{value:.3f}" for value in numbers))
        return table


def baselines(
    data: PrivateData,
    query: Any,
    *,
    model: Any = None,
    private: Mapping[str, Any] | None = None,
    methods: Sequence[str] = METHODS,
    reference: str | None = None,
    per: str = "feature",
    weight: Weight | None = None,
    plane: Plane | None = None,
    anchor: float | None = None,
    radius: float | None = None,
    target: Any = 1,
    k: int = 5,
    seed: int = 0,
) -> Comparison:
    """The exact local optimum, LIME, SHAP and MIM at `query`, and `private` explanations (by name) beside them.

    per="feature": what each feature adds to this answer. A slope φ becomes Σ φ_j(z_j - mean_j) over the feature's columns, the mean taken over the
    rows; a SHAP value is such a contribution already. Only then are all methods about the same quantity. per="column": each method's own
    numbers. `reference` is the first method unless named; `plane`, `anchor` and `radius` define the optimum (`evaluation.optimum`).
    Offline only: it reads private rows without paying.
    """
    if unknown := set(methods) - set(_RUN):
        raise ParameterError(f"unknown methods {sorted(unknown)}. Choose among {list(_RUN)}")
    if per not in ("feature", "column"):
        raise ParameterError(f"per must be 'feature' or 'column', got {quote(per)}")
    asked = _AskedModel(data, encoded_point(data.domain, query), model, target, weight, plane, anchor, radius, seed)
    found = {name: np.asarray(getattr(one, "values", one), dtype=np.float64) for name, one in (private or {}).items()}
    found |= {name: _RUN[name](asked) for name in methods}
    first = reference or (methods[0] if methods else next(iter(found)))
    if per == "column":
        return Comparison(data.domain.names, found, first, k)
    moved = asked.point - column_spread(data).mean
    return Comparison(
        feature_names(data.domain), {name: _contributions(name, v, moved, data) for name, v in found.items()}, first, k
    )


@dataclass(frozen=True, slots=True)
class _AskedModel:
    data: PrivateData
    point: Vector
    model: Any
    target: Any
    weight: Weight | None
    plane: Plane | None
    anchor: float | None
    radius: float | None
    seed: int


_RUN = {
    "optimum": lambda a: optimum(a.data, a.point, plane=a.plane, anchor=a.anchor, weight=a.weight, radius=a.radius),
    "lime": lambda a: lime(a.data, a.point, model=a.model, target=a.target, seed=a.seed),
    "shap": lambda a: shap_values(a.data, a.point, model=a.model, target=a.target, seed=a.seed),
    "mim": lambda a: mim(a.data, a.point, model=a.model, target=a.target, weight=a.weight),
}


def _contributions(name: str, values: Vector, moved: Vector, data: PrivateData) -> Vector:
    return per_feature(data.domain, values if name == "shap" else values * moved)
