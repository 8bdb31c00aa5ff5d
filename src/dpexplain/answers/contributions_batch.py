"""Contributions of many records, stored as arrays. Indexing returns the `Contributions` of one record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from dpexplain import plots
from dpexplain.answers.contributions import AVERAGE, Contributions, frame_of
from dpexplain.arguments import quote
from dpexplain.core.answer_scale import AnswerScale
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.errors import ParameterError
from dpexplain.plots.style import MUTED, PaletteName
from dpexplain.privacy.budget import Guarantee

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class ContributionsBatch(Sequence[Contributions]):
    """Row i: `base[i] + values[i].sum() == answer[i]`. Fields mean what they do for one record's `Contributions`."""

    names: tuple[str, ...]
    values: Matrix
    base: Vector
    answer: Vector
    error: Matrix | None = None
    scale: AnswerScale = field(default_factory=AnswerScale)
    record: Sequence[tuple[Any, ...]] | None = None
    average: str = AVERAGE
    base_error: Vector | None = None
    answer_error: Vector | None = None
    guarantee: Guarantee | None = None
    titles: tuple[str, ...] | None = None
    details: dict[str, Any] = field(default_factory=dict)
    levels: tuple[tuple[Any, ...] | None, ...] | None = None  # of ordinal features, in order; for the colours of plots

    def __post_init__(self) -> None:
        count = len(self.values)
        rows = (self.base, self.answer, self.error, self.record, self.base_error, self.answer_error)
        if self.values.shape != (count, len(self.names)) or any(part is not None and len(part) != count for part in rows):
            raise ParameterError("contributions of many records need one row for each record and one column for each name")
        away = np.abs(self.base + self.values.sum(axis=1) - self.answer)
        if not (away <= 1e-6 * self.scale.half_range).all():
            raise ParameterError("a base and its row of values do not add up to the answer. Pass values that do")

    @overload
    def __getitem__(self, index: int) -> Contributions: ...

    @overload
    def __getitem__(self, index: slice) -> ContributionsBatch: ...

    def __getitem__(self, index: int | slice) -> Contributions | ContributionsBatch:
        parts = {
            name: getattr(self, name) for name in ("values", "base", "answer", "error", "record", "base_error", "answer_error")
        }
        chosen: dict[str, Any] = {name: None if part is None else part[index] for name, part in parts.items()}
        if isinstance(index, slice):
            return replace(self, **chosen)
        for name in ("base", "answer", "base_error", "answer_error"):
            chosen[name] = None if chosen[name] is None else float(chosen[name])
        shared: dict[str, Any] = {
            "scale": self.scale,
            "average": self.average,
            "guarantee": self.guarantee,
            "titles": self.titles,
        }
        return Contributions(self.names, details=dict(self.details), **chosen, **shared)

    def __len__(self) -> int:
        return len(self.values)

    def importance(self) -> list[tuple[str, float]]:
        """Mean absolute contribution of each feature over the records, the largest first."""
        mean = np.abs(self.values).mean(axis=0) if len(self) else np.zeros(len(self.names))
        return [(self.names[i], float(mean[i])) for i in np.argsort(-mean, kind="stable")]

    def plot(
        self,
        top: int = 10,
        *,
        kind: Literal["beeswarm", "bar", "scatter"] = "beeswarm",
        feature: str | None = None,
        title: str | None = None,
        palette: PaletteName = "blue-red",
        ax: Axes | None = None,
    ) -> Figure:
        """A dot for each record and feature, coloured by the feature's value ("beeswarm"); mean absolute contributions ("bar"); or the
        contribution of one `feature`, by default the largest, against its value ("scatter", SHAP's dependence plot)."""
        if kind not in ("beeswarm", "bar", "scatter"):
            raise ParameterError(f"kind must be 'beeswarm', 'bar' or 'scatter', got {quote(kind)}")
        if not len(self):
            raise ParameterError("there are no records to draw. Explain at least one")
        names = self.titles or self.names
        if kind == "scatter":
            return self._scatter(feature, title, {"caption": self._note, "palette": palette, "ax": ax})
        look: dict[str, Any] = {"top": top, "caption": self._note, "palette": palette, "ax": ax}
        if kind == "bar":
            heading = f"Mean absolute contribution over {len(self):,} records" if title is None else title
            return plots.importance(names, np.abs(self.values).mean(axis=0), self.scale, title=heading, **look)
        heading = f"What the values of {len(self):,} records add to the model's answer" if title is None else title
        return plots.beeswarm(names, self.values, self.record, self.scale, levels=self.levels, title=heading, **look)

    def _scatter(self, feature: str | None, title: str | None, look: dict[str, Any]) -> Figure:
        name = self.importance()[0][0] if feature is None else feature
        if name not in self.names:
            raise ParameterError(f"there is no feature {name!r}. Name one of {', '.join(self.names[:20])}")
        if self.record is None:
            raise ParameterError(
                "the records' values are unknown, so contributions cannot be plotted against them. Explain records instead of encoded points"
            )
        i, own = self.names.index(name), [record[self.names.index(name)] for record in self.record]
        shown = (self.titles or self.names)[i]
        heading = f"What {shown} adds to the model's answer, {len(self):,} records" if title is None else title
        error = None if self.error is None else self.error[:, i]
        levels = None if self.levels is None else self.levels[i]
        return plots.scatter(shown, own, self.values[:, i], error, self.scale, levels=levels, title=heading, **look)

    def to_frame(self, backend: str | None = None) -> Any:
        """One row for each record: answer, base, then the contribution of each feature under the feature's name."""
        taken = {"answer", "base"} & set(self.names)
        columns = {"answer_" if "answer" in taken else "answer": self.answer.tolist()}
        columns |= {"base_" if "base" in taken else "base": self.base.tolist()}
        return frame_of(columns | {name: self.values[:, i].tolist() for i, name in enumerate(self.names)}, backend)

    def to_dict(self) -> dict[str, Any]:
        return {"contributions": [one.to_dict() for one in self]}

    def to_shap(self) -> Any:
        """All of them as one `shap.Explanation` with true base values and raw feature values (extra `[baselines]`)."""
        import shap

        data = None if self.record is None else np.array([tuple(row) for row in self.record], dtype=object)
        return shap.Explanation(
            values=self.values.copy(),
            base_values=self.base.copy(),
            data=None if data is None else data.reshape(self.values.shape),
            feature_names=list(self.names),
            error_std=None if self.error is None else self.error.copy(),
        )

    def __repr__(self) -> str:
        return f"<Contributions of {len(self.names)} features for {len(self):,} records. {self._note}>"

    def _repr_html_(self) -> str:
        """The mean absolute contributions, then the first records in one sentence each."""
        largest = self.importance()[:12]
        most = max((value for _, value in largest), default=0.0) or 1.0
        rows = "".join(_html_row(name, value, most, self.scale) for name, value in largest)
        sentences = "".join(f"<li>{escape(one.sentence)}</li>" for one in self[:5])
        head = f"<p>Mean absolute contribution over {len(self):,} records, in {self.scale.unit or 'the answer’s units'}</p>"
        return f"{head}<table>{rows}</table><ol start='0'>{sentences}</ol><p style='font-size:smaller'>{escape(self._note)}</p>"

    @property
    def _note(self) -> str:
        """What the records are compared with, where it is not the average, and the guarantee."""
        compared = "" if self.average == AVERAGE else f"Compared with {self.average}."
        return " ".join(filter(None, [compared, "" if self.guarantee is None else str(self.guarantee)]))


def _html_row(name: str, value: float, most: float, scale: AnswerScale) -> str:
    bar = f"<div style='background:{MUTED};height:0.8em;width:{100 * value / most:.1f}%'></div>"
    cells = f"<td style='text-align:right'>{scale.spread(value)}</td><td style='width:14em'>{bar}</td>"
    return f"<tr><td style='text-align:left'>{escape(name)}</td>{cells}</tr>"
