"""Contributions: what each value of a record adds to the model's answer, compared with the average; they add up to the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dpexplain import plots
from dpexplain.answers.json_text import JsonText
from dpexplain.arguments import quote, require_whole
from dpexplain.core.answer_scale import AnswerScale
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.domain import Domain, DomainLike, Ordinal
from dpexplain.errors import InputError, ParameterError
from dpexplain.plots.steps import Step, sentence, steps
from dpexplain.plots.style import PaletteName
from dpexplain.privacy.budget import Guarantee

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.console import Group

FORMAT, VERSION = "dpexplain.contributions", 1
AVERAGE = "the average"
FRAMES = ("pandas", "polars", "pyarrow")  # packages that `to_frame` can make data frames of
_JSON = frozenset({bool, int, float, str})


@dataclass(frozen=True, slots=True, eq=False)
class Contributions(JsonText):
    """What each feature's value adds: `base + sum(values) == answer`, all in the answer's own units (`scale`).

    - `base` is the answer for the average record, or for what `average` names instead.
    - `error` has the standard errors of `values` from the privacy noise, where they are known.
    - `record` has one raw value for each name, as it was asked; `titles` are names for people.
    - `details` says where the numbers come from: "quantity" ("plane", "shapley"), "source", "plane"; and what error to expect ("expected") where none is known.
    """

    names: tuple[str, ...]
    values: Vector
    base: float
    answer: float
    error: Vector | None = None
    scale: AnswerScale = field(default_factory=AnswerScale)
    record: tuple[Any, ...] | None = None
    average: str = AVERAGE
    base_error: float | None = None
    answer_error: float | None = None
    guarantee: Guarantee | None = None
    titles: tuple[str, ...] | None = None
    details: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _require_alike(len(self.names), self.values, self.error, self.record, self.titles)
        if not adds_up(self.base, float(self.values.sum()), self.answer, self.scale):
            raise ParameterError(
                f"base {self.base} and values with the sum {self.values.sum()} do not add up to the answer {self.answer}. Pass values that do"
            )
        for array in (self.values, self.error):
            if array is not None:
                array.setflags(write=False)

    def top(self, k: int = 5) -> list[tuple[str, float, float | None]]:
        """The k largest contributions as (name, value, error)."""
        require_whole("k", k, 0)
        order = np.argsort(-np.abs(self.values), kind="stable")[:k]
        return [(self.names[i], float(self.values[i]), None if self.error is None else float(self.error[i])) for i in order]

    def uncertain(self) -> tuple[bool, ...] | None:
        """For each value, whether its sign is in doubt (±2 errors cross zero); None where errors are unknown."""
        return uncertain_signs(self.values, self.error)

    @property
    def labels(self) -> tuple[str, ...]:
        """One text for people for each name: "age = 40"."""
        return labels_of(self.titles or self.names, self.record)

    @property
    def sentence(self) -> str:
        """The answer, the average and what makes the difference, in one sentence."""
        return sentence(self.answer, self.base, self.scale, self.average, exact=self.answer_error == 0)

    def steps(self, top: int = 10) -> list[Step]:
        """The way from the base to the answer: the largest contributions, then all others together."""
        return steps(self.labels, self.values, self.error, self.base, top)

    def plot(
        self, top: int = 10, *, title: str | None = None, palette: PaletteName = "blue-red", ax: Axes | None = None
    ) -> Figure:
        """A waterfall from the average to the answer, with error bars where errors are known. Returns the figure; `ax=` draws on yours."""
        return plots.waterfall(
            self.steps(top),
            self.base,
            self.answer,
            self.scale,
            average=self.average,
            title=self.sentence if title is None else title,
            caption=" ".join(filter(None, [self.details.get("expected"), self._note])),
            palette=palette,
            ax=ax,
        )

    def to_dict(self) -> dict[str, Any]:
        return self.to_dict_under(self.guarantee)

    def to_dict_under(self, guarantee: Guarantee | None) -> dict[str, Any]:
        """`to_dict` with another guarantee; None where whoever stores the contributions states it beside them."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "names": list(self.names),
            "values": self.values.tolist(),
            "error": None if self.error is None else self.error.tolist(),
            "base": self.base,
            "answer": self.answer,
            "base_error": self.base_error,
            "answer_error": self.answer_error,
            "scale": self.scale.to_dict(),
            "record": None if self.record is None else [plain_value(value) for value in self.record],
            "average": self.average,
            "titles": None if self.titles is None else list(self.titles),
            "guarantee": None if guarantee is None else guarantee.to_dict(),
            "details": self.details,
        }

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Self:
        """Read back what `to_dict` wrote."""
        if value.get("format") != FORMAT or value.get("version") != VERSION:
            raise InputError(
                f"this is not version {VERSION} of dpexplain contributions. Pass what to_dict() returned, or upgrade dpexplain if a newer version wrote it"
            )
        read = {name: value[name] for name in ("base", "answer", "base_error", "answer_error", "average", "details")}
        return cls(
            names=tuple(value["names"]),
            values=np.array(value["values"]),
            error=None if value["error"] is None else np.array(value["error"]),
            scale=AnswerScale.from_dict(value["scale"]),
            record=None if value["record"] is None else tuple(value["record"]),
            titles=None if value["titles"] is None else tuple(value["titles"]),
            guarantee=None if value["guarantee"] is None else Guarantee.from_dict(value["guarantee"]),
            **read,
        )

    def to_frame(self, backend: str | None = None) -> Any:
        """Name, value of the record, contribution and error as a data frame: pandas, polars or pyarrow, the first installed or the named."""
        error = np.full(len(self.values), np.nan) if self.error is None else self.error
        shown = self.record or (None,) * len(self.names)
        columns = {
            "name": list(self.names),
            "record": ["" if value is None else plots.steps.format_value(value) for value in shown],
            "contribution": self.values.tolist(),
            "error": error.tolist(),
        }
        return frame_of(columns, backend)

    def to_shap(self) -> Any:
        """The same as a `shap.Explanation`: a true base value and raw feature values, for shap's own plots (extra `[baselines]`)."""
        import shap

        return shap.Explanation(
            values=self.values.copy(),
            base_values=self.base,
            data=None if self.record is None else np.array(self.record, dtype=object),
            feature_names=list(self.names),
            error_std=None if self.error is None else self.error.copy(),
        )

    def __repr__(self) -> str:
        largest = ", ".join(f"{name} {self.scale.format(value, signed=True)}" for name, value, _ in self.top(3))
        return f"Contributions({self.scale.format(self.base)} → {self.scale.format(self.answer)}: {largest}, …)"

    def __rich__(self) -> Group:
        return plots.steps.rich_table(self.sentence, self.steps(12), self.base, self.answer, self.scale, self.average, self._note)

    def _repr_html_(self) -> str:
        return plots.steps.html_table(self.sentence, self.steps(12), self.base, self.answer, self.scale, self.average, self._note)

    @property
    def _note(self) -> str:
        return "" if self.guarantee is None else str(self.guarantee)


def adds_up(base: float, total: float, answer: float, scale: AnswerScale) -> bool:
    """Whether a base and contributions with this total lead to the answer."""
    return abs(base + total - answer) <= 1e-6 * scale.half_range


def uncertain_signs(values: Vector, error: Vector | None) -> tuple[bool, ...] | None:
    """For each value, whether ±2 errors cross zero; None where errors are unknown."""
    return None if error is None else tuple(bool(doubt) for doubt in np.abs(values) <= 2 * error)


def labels_of(titles: Sequence[str], record: Sequence[Any] | None) -> tuple[str, ...]:
    """Names with the values they have: "age = 40"."""
    if record is None:
        return tuple(titles)
    return tuple(f"{title} = {plots.steps.format_value(value)}" for title, value in zip(titles, record, strict=True))


def feature_names(domain: DomainLike) -> tuple[str, ...]:
    """One name for each block of encoded columns: a table's features, a text's words, an image's superpixels."""
    return domain.columns if isinstance(domain, Domain) else domain.names


def feature_titles(domain: DomainLike) -> tuple[str, ...]:
    """The same names for people: titles with units, where the domain has them."""
    if not isinstance(domain, Domain):
        return domain.titles
    known: tuple[str, ...] | None = domain.memory.get("feature titles")
    return known or domain.remember("feature titles", tuple(f.label_of(f.name) for f in domain.features))


def feature_values(domain: DomainLike, points: Matrix) -> list[tuple[Any, ...]]:
    """Encoded records (k, n) as raw values, one for each feature name; a word is present or not, a superpixel a number."""
    if not isinstance(domain, Domain):
        binary = [block.kind == "binary" for block in domain.blocks]
        return [tuple(bool(v) if yes else float(v) for v, yes in zip(point, binary, strict=True)) for point in points]
    columns = [column.tolist() for column in domain.decode(points).values()]
    return list(zip(*columns, strict=True))


def feature_values_of(domain: DomainLike, point: Vector) -> tuple[Any, ...]:
    """`feature_values` of one encoded record."""
    return domain.decode_point(point) if isinstance(domain, Domain) else feature_values(domain, point[None])[0]


def ordered_levels(domain: DomainLike) -> tuple[tuple[Any, ...] | None, ...]:
    """The levels of each ordinal feature from lowest to highest; None for every other feature."""
    if not isinstance(domain, Domain):
        return (None,) * len(domain.blocks)
    return tuple(tuple(feature.levels) if isinstance(feature, Ordinal) else None for feature in domain.features)


def per_feature(domain: DomainLike, columns: Matrix) -> Matrix:
    """Sums over the encoded columns of each feature, along the last axis."""
    return np.asarray(np.add.reduceat(columns, [block.start for block in domain.blocks], axis=-1))


def stored_contributions(
    answer: Mapping[str, Any], domain: DomainLike, scale: AnswerScale, guarantee: Guarantee, average: str
) -> Contributions:
    """Contributions that are stored with an answer, with their errors. `average` names what they are compared with."""
    point, added, half = np.array(answer["point"]), answer["added"], scale.half_range
    values, error = (np.array(added[name]) * half for name in ("values", "error"))
    return Contributions(
        names=feature_names(domain),
        values=values,
        base=scale.answer(added["base"]),
        answer=scale.answer(answer["intercept"]),
        error=error,
        scale=scale,
        record=feature_values(domain, point[None])[0],
        base_error=added["base_error"] * half,
        answer_error=added["answer_error"] * half,
        average=average,
        guarantee=guarantee,
        titles=feature_titles(domain),
        details={"quantity": "plane", "plane": str(answer["plane"]), "source": "moments"},
    )


def shapley_contributions(
    answer: Mapping[str, Any], domain: DomainLike, scale: AnswerScale, guarantee: Guarantee
) -> Contributions:
    """Contributions from the noisy SHAP values in a stored answer. They add up to the model's own answer, which fixes the base."""
    point = np.array(answer["point"])
    added, error = (scale.slopes(per_feature(domain, np.array(answer[name]))) for name in ("values", "error"))
    reached = float(scale.answers(answer["details"]["model_answer"]))
    return Contributions(
        names=feature_names(domain),
        values=added,
        base=reached - float(added.sum()),
        answer=reached,
        error=error,
        scale=scale,
        record=feature_values(domain, point[None])[0],
        base_error=float(np.sqrt(np.square(error).sum())),
        answer_error=0.0,
        guarantee=guarantee,
        titles=feature_titles(domain),
        details={"quantity": "shapley", "source": "rows"},
    )


def frame_of(columns: dict[str, Any], backend: str | None) -> Any:
    """Columns as a data frame of the named package, or of the first one installed."""
    import narwhals as nw

    if backend is not None and backend not in FRAMES:
        raise ParameterError(f"backend must be one of {', '.join(map(repr, FRAMES))}, got {quote(backend)}")
    chosen = backend or next(name for name in FRAMES if find_spec(name))
    return nw.from_dict(columns, backend=chosen).to_native()  # type: ignore[arg-type]


def _require_alike(count: int, *parts: Any) -> None:
    if any(part is not None and len(part) != count for part in parts):
        raise ParameterError(f"contributions need one value (error, record value, title) for each of the {count} names")


def plain_value(value: Any) -> Any:
    """A raw value in JSON's types."""
    if type(value) in _JSON:
        return value
    if isinstance(value, np.generic):
        value = value.item()
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
