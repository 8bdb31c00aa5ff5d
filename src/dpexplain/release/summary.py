"""A model as a whole, from the reference records of a release: how much each feature adds, and how the average answer changes with it. Free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpexplain import plots
from dpexplain.answers.contributions import frame_of
from dpexplain.answers.contributions_batch import ContributionsBatch
from dpexplain.arguments import quote
from dpexplain.core.answer_scale import AnswerScale
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.errors import ParameterError
from dpexplain.estimation.background import unseen_variance
from dpexplain.plots.style import PaletteName
from dpexplain.privacy.budget import Guarantee
from dpexplain.progress import with_bar
from dpexplain.registration.labels import Labeller
from dpexplain.release.reference_data import ReferenceData
from dpexplain.release.reference_shapley import ShapleyReference, in_own_units, prepare

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

QUESTIONS = 1 << 19  # to a model, about, for all of them
_POINTS, _VALUES = 9, 12  # of a curve over numbers; categories
_COMPARED = 512  # background records at most
Kind = Literal["bar", "beeswarm", "dependence", "scatter"]


@dataclass(frozen=True, slots=True, eq=False)
class Dependence:
    """Average answers over the reference with one of `values` of a feature in every record, the others unchanged (partial dependence)."""

    name: str
    values: tuple[Any, ...]
    answers: Vector
    error: Vector

    def to_dict(self) -> dict[str, Any]:
        plain = [value.item() if isinstance(value, np.generic) else value for value in self.values]
        return {"name": self.name, "values": plain, "answers": self.answers.tolist(), "error": self.error.tolist()}


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """Mean absolute contribution of each feature over the reference, with standard errors; contributions of some records; dependences.

    All in the answer's own units. Private for the explanation data by post-processing.
    """

    importance: Vector
    error: Vector
    contributions: ContributionsBatch
    dependences: tuple[Dependence, ...]
    scale: AnswerScale
    guarantee: Guarantee

    @property
    def names(self) -> tuple[str, ...]:
        return self.contributions.names

    def top(self, k: int = 5) -> list[tuple[str, float, float]]:
        """The k most important features as (name, mean absolute contribution, error)."""
        order = np.argsort(-self.importance, kind="stable")[:k]
        return [(self.names[i], float(self.importance[i]), float(self.error[i])) for i in order]

    def dependence(self, feature: str) -> Dependence:
        """The curve of one feature, by its name."""
        for one in self.dependences:
            if one.name == feature:
                return one
        raise ParameterError(f"there is no feature {feature!r}. Name one of {', '.join(self.names[:20])}")

    def plot(
        self,
        kind: Kind = "bar",
        feature: str | None = None,
        *,
        top: int = 10,
        title: str | None = None,
        palette: PaletteName = "blue-red",
        ax: Axes | None = None,
    ) -> Figure:
        """Mean absolute contributions ("bar"), one dot for each record ("beeswarm"), the average answer against one `feature` ("dependence"), or
        the feature's contribution against its value, one dot for each reference record ("scatter")."""
        look: dict[str, Any] = {"palette": palette, "ax": ax}
        if kind == "beeswarm" or kind == "scatter":
            return self.contributions.plot(top, kind=kind, feature=feature, title=title, **look)
        look |= {"caption": str(self.guarantee)}
        if kind == "dependence":
            curve = self.dependence(self.top(1)[0][0] if feature is None else feature)
            shown = (self.contributions.titles or self.names)[self.names.index(curve.name)]
            heading = f"The average answer against {shown}" if title is None else title
            return plots.dependence(shown, curve.values, curve.answers, curve.error, self.scale, title=heading, **look)
        if kind != "bar":
            raise ParameterError(f"kind must be 'bar', 'beeswarm', 'dependence' or 'scatter', got {quote(kind)}")
        heading = "How much each feature adds to the model's answers" if title is None else title
        names = self.contributions.titles or self.names
        return plots.importance(names, self.importance, self.scale, self.error, top=top, title=heading, **look)

    def to_frame(self, backend: str | None = None) -> Any:
        """One row for each feature: name, mean absolute contribution, standard error."""
        columns = {"name": list(self.names), "importance": self.importance.tolist(), "error": self.error.tolist()}
        return frame_of(columns, backend)

    def to_dict(self) -> dict[str, Any]:
        return {
            "names": list(self.names),
            "importance": self.importance.tolist(),
            "error": self.error.tolist(),
            "scale": self.scale.to_dict(),
            "dependences": [one.to_dict() for one in self.dependences],
            "guarantee": self.guarantee.to_dict(),
        }

    def __repr__(self) -> str:
        largest = ", ".join(f"{name} {self.scale.spread(value)}" for name, value, _ in self.top(3))
        return f"<Summary of {len(self.names)} features: {largest}, … {self.guarantee}>"


def summarise(
    reference: ReferenceData, labeller: Labeller, records: int, background: int | None, scale: AnswerScale, guarantee: Guarantee
) -> Summary:
    """Summarise a model over `records` reference records, drawn by weight, each compared with the background."""
    over = prepare(reference, labeller, background, QUESTIONS // records, most=_COMPARED)
    positions = reference.positions_by_weight(records)
    points = reference.encoded[positions]
    queries = reference.columns_at(positions)
    found = mean_sizes(over, queries, labeller(queries), reference.changes_at(positions))
    batch = in_own_units(over, points, (found.values, found.errors, found.answers), scale, guarantee)
    return Summary(scale.slopes(found.sizes), scale.slopes(found.size_errors), batch, dependences(over, scale), scale, guarantee)


@dataclass(frozen=True, slots=True, eq=False)
class MeanSizes:
    """Contributions of some records with errors, and the mean of their absolute values over the records; in labels."""

    values: Matrix
    errors: Matrix
    answers: Vector
    sizes: Vector
    size_errors: Vector


def mean_sizes(over: ShapleyReference, queries: dict[str, NDArray[Any]], answers: Vector, changes: Matrix) -> MeanSizes:
    """The mean sizes over records of equal weight.

    `changes` are of the queries' log weights in each rehearsal of the noise, (K, queries): noise moves the contributions of each record, and which
    records there are. So do codes that noise may have hidden: contributions of a background record beside the queries are those of the queries beside
    it, with the other sign. The mean size is the background's average of `signed`, which has the errors of any other average over it.
    """
    values, errors, rare, hidden = [], [], [], []
    signed, backwards = np.zeros((2, len(over.at_records), len(over.columns)))
    background, ignored = over.background, over.trees is not None
    for i in with_bar(range(len(answers)), "explaining", len(answers)):
        each = over.record_values({name: column[i : i + 1] for name, column in queries.items()}, float(answers[i]))
        value, error = background.average_by_feature(each, ignored=ignored)
        values.append(value)
        errors.append(error)
        hidden.append(background.hidden_shifts(each) * np.sign(value))
        rare.append(background.unseen_variance(each, ignored=ignored))
        signed += each * np.sign(value) / len(answers)
        backwards -= each / len(answers)
    found = np.array(values)
    sizes, spread = np.abs(found), np.abs(found).var(axis=0)
    variance = spread / max(len(sizes) - 1, 1) + background.drawing_variance(signed) + background.position_variance(signed)
    variance += background.shifts(signed).with_queries(changes, sizes).variance(spread)
    variance += np.mean(rare, axis=0) + unseen_variance(found, np.full(len(found), 1 / len(found)), ignored=ignored)
    variance += np.square(np.mean(hidden, axis=0) + background.hidden_shifts(np.abs(backwards))).sum(axis=0)
    return MeanSizes(found, np.array(errors), answers, sizes.mean(axis=0), np.sqrt(variance))


def dependences(over: ShapleyReference, scale: AnswerScale) -> tuple[Dependence, ...]:
    """The curve of each feature, over values that the reference has."""
    found = []
    for name, column in with_bar(list(over.columns.items()), "asking the model", len(over.columns)):
        grid = grid_of(column)
        count = len(over.at_records)
        asked = {other: np.tile(values, len(grid)) for other, values in over.columns.items()} | {name: np.repeat(grid, count)}
        answers, error = over.background.average(over.labeller(asked).reshape(len(grid), count).T)
        found.append(Dependence(name, tuple(grid.tolist()), scale.answers(answers), scale.slopes(error)))
    return tuple(found)


def grid_of(column: NDArray[Any]) -> NDArray[Any]:
    """Some of a column's values: quantiles of many numbers, else the most frequent values in order; None is left out."""
    known = column if column.dtype.kind != "O" else column[[value is not None for value in column]]
    if known.dtype.kind in "fiu":
        values, _counts = np.unique(known, return_counts=True)
        if len(values) > _VALUES:
            return np.unique(np.quantile(known, np.linspace(0.02, 0.98, _POINTS), method="nearest"))
        return np.asarray(values)
    listed = known.tolist()
    counts_of = {value: listed.count(value) for value in dict.fromkeys(listed)}
    often = sorted(counts_of, key=lambda value: -counts_of[value])[:_VALUES]
    chosen = [next(i for i, value in enumerate(listed) if value == one) for one in sorted(often, key=str)]
    return known[chosen]
