"""An explanation: named numbers with their cost and guarantee, as text, tables and plots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from dpexplain import plots
from dpexplain.answers.baseline import contributions_against, declared_baseline, is_compared
from dpexplain.answers.changes import Change, changes_of
from dpexplain.answers.contributions import Contributions, frame_of, uncertain_signs
from dpexplain.answers.json_text import JsonText
from dpexplain.arguments import quote, require_whole
from dpexplain.core.answer_scale import AnswerScale
from dpexplain.core.arrays import Vector
from dpexplain.domain import DomainLike, ImageDomain
from dpexplain.errors import InputError, ParameterError
from dpexplain.plots.style import PaletteName
from dpexplain.privacy.budget import Guarantee

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.console import Group

FORMAT, VERSION = "dpexplain.explanation", 1
_HEADING = "What would change the model's answer here"
_NO_CONTRIBUTIONS = (
    "this answer has no contributions: only fitted and anchored planes estimate the model's answers, and add up to one. Ask with plane='fitted', "
    "or explain from a release. The effect of changing each value is in `values`"
)
_NO_DOMAIN = (
    "this explanation was read from a file, which does not have the domain that a baseline is read by. Ask the release or explainer again, "
    "and pass baseline= to the contributions of its answer"
)
_NO_CHANGES = (
    "this answer does not contain changes of single values, which are computed for planes over a table or words only. "
    "Ask the release or explainer again, or use the slopes of encoded columns in `values`"
)
STATED = 12  # changes that a table or a document shows


@dataclass(frozen=True, slots=True, eq=False)
class Explanation(JsonText):
    """A local linear explanation φ of a black box at `point`: one number for each encoded column.

    - `values` are slopes in labels, one for each of `names`; `error` is the standard error of each as an estimate of the exact answer, where it is known.
    - `cost` is what this answer added to the total, `guarantee` the total. `copied` answers were reused from a nearby query, at no cost.
    - `plane` is the plane that was fitted ("fitted", "anchored", "paper") and `intercept` its value at the point, a label in [-1, 1] like the slopes; both
      are None for quantities that are not planes.
    - `scale` converts labels to the model's own units. `added` has the contributions, or computes them when they are asked for.
    - `domain` and `record` (the query as it was asked, where it is at hand) are for pictures; they do not travel in `to_dict`.
    """

    values: Vector
    names: tuple[str, ...]
    point: Vector
    cost: Guarantee
    guarantee: Guarantee
    error: Vector | None = None
    copied: bool = False
    request_id: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    domain: DomainLike | None = None
    record: Any = None
    plane: str | None = None
    intercept: float | None = None
    scale: AnswerScale = field(default_factory=AnswerScale)
    added: Contributions | Callable[[], Contributions] | None = None

    def __post_init__(self) -> None:
        for array in (self.values, self.point, self.error):
            if array is not None:
                array.setflags(write=False)

    @property
    def targets(self) -> tuple[str, ...]:
        """Other classes, or models, that the same release explains: `release.explain(record, target=…)`."""
        return tuple(self.details.get("targets", ()))

    def top(self, k: int = 5) -> list[tuple[str, float, float | None]]:
        """The k strongest effects as (name, value, error)."""
        require_whole("k", k, 0)
        return [(self.names[i], float(self.values[i]), self._error(int(i))) for i in self._order()[:k]]

    @property
    def notes(self) -> dict[str, str]:
        """How missing, undeclared or out-of-bounds values of the record were read."""
        found: dict[str, str] = self.details.get("read_as", {})
        return found

    @property
    def expectation(self) -> str:
        """What error to expect where no error bars are known, a guess from public numbers; empty where there is none."""
        return str(self.details.get("expected", {}).get("text", ""))

    @property
    def _caption(self) -> str:
        """The notes about values that were not read as given, whether a cap binds and which features share effects, what error to expect where that is
        a guess, then the guarantee."""
        facts = [f"{name}: {how}." for name, how in self.notes.items()] + [
            self.details.get("cap"),
            *(self.details.get("shared", {}).get(part) for part in ("text", "remedy")),
            self.expectation,
            str(self.guarantee),
        ]
        return " ".join(filter(None, facts))

    @property
    def _titles(self) -> tuple[str, ...]:
        """Names for people, where the domain has them."""
        return self.names if self.domain is None else self.domain.titles

    def contributions(self, baseline: Any = None) -> Contributions:
        """What each feature's value adds to the model's answer: they add up from what the record is compared with, `.average`, to the answer.

        That is the average where the answer knows one, and for answers by a descent the baseline of the explainer, or else the middle of the declared
        ranges. `baseline` is another record to compare with. InputError for what is no plane, and for the paper's plane, which is 0 at every record.
        """
        if baseline is not None:
            return self._contributions_against(baseline)
        if self.added is None:
            raise InputError(_NO_CONTRIBUTIONS)
        return self._with_expectation(self.added if isinstance(self.added, Contributions) else self.added())

    def _with_expectation(self, found: Contributions) -> Contributions:
        """Where no errors are known, with what is expected of them."""
        return (
            found
            if found.error is not None or not self.expectation
            else replace(found, details=found.details | {"expected": self.expectation})
        )

    def _contributions_against(self, baseline: Any) -> Contributions:
        if not is_compared(self.plane, self.intercept):
            raise InputError(_NO_CONTRIBUTIONS)
        if self.domain is None:
            raise InputError(_NO_DOMAIN)
        stated = {
            "point": self.point,
            "values": self.values,
            "error": self.error,
            "intercept": self.intercept,
            "plane": self.plane,
        }
        compared = declared_baseline(baseline, self.domain)
        return self._with_expectation(contributions_against(compared, stated, self.domain, self.scale, self.guarantee))

    def changes(self, most: int | None = None) -> list[Change]:
        """What a change of each of the record's values would add to the answer, in the answer's own units, the `most` largest first.

        A category changes from the record's own value to another, a number goes through its whole range. InputError for what is not a plane, and
        for an explanation that was read from a file, which does not have the domain.
        """
        if not self._knows_changes or self.domain is None:
            raise InputError(_NO_CHANGES)
        error = None if self.error is None else self.scale.slopes(self.error)
        return changes_of(self.domain, self.point, self.scale.slopes(self.values), error, most)

    @property
    def _knows_changes(self) -> bool:
        return self.plane is not None and self.domain is not None and not isinstance(self.domain, ImageDomain)

    def uncertain(self) -> tuple[bool, ...] | None:
        """For each value, whether its sign is in doubt (±2 errors cross zero); None where errors are unknown."""
        return uncertain_signs(self.values, self.error)

    def _order(self) -> Sequence[int]:
        return [int(i) for i in np.argsort(-np.abs(self.values), kind="stable")]

    def _error(self, index: int) -> float | None:
        return None if self.error is None else float(self.error[index])

    def plot(
        self,
        top: int = 12,
        *,
        kind: Literal["contributions", "slopes"] | None = None,
        title: str | None = None,
        palette: PaletteName = "blue-red",
        ax: Axes | None = None,
    ) -> Figure:
        """The waterfall of contributions where there are some, otherwise slopes as bars; `kind` chooses. An image gets a heat map.

        Error bars are drawn where errors are known. Returns the figure; `ax=` draws on yours. An image that is not at hand is shown by its
        superpixels. `palette="blue-orange"` is for readers with colour blindness.
        """
        look: dict[str, Any] = {"palette": palette, "ax": ax}
        if kind not in (None, "contributions", "slopes"):
            raise ParameterError(f"kind must be 'contributions' or 'slopes', got {quote(kind)}")
        if isinstance(self.domain, ImageDomain):
            return self._overlay(self.domain, {"title": title or _HEADING, "caption": self._caption, **look})
        if kind == "contributions" or (kind is None and self.added is not None):
            return self.contributions().plot(top, title=title, **look)
        look |= {"title": title or _HEADING, "caption": self._caption, "scale": self.scale}
        found = self._slopes(top)
        error = None if self.error is None else np.array([one.error for one in found], dtype=np.float64)
        return plots.bars([one.name for one in found], np.array([one.value for one in found]), error, top=top, **look)

    def _overlay(self, domain: ImageDomain, look: dict[str, Any]) -> Figure:
        image = domain.image(self.point) if self.record is None else domain.picture(self.record)
        error = None if self.error is None else domain.image(self.error)
        return plots.overlay(domain.image(self.values), image, error, **look)

    def to_dict(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "version": VERSION,
            "names": list(self.names),
            "values": self.values.tolist(),
            "error": None if self.error is None else self.error.tolist(),
            "point": self.point.tolist(),
            "copied": self.copied,
            "cost": self.cost.to_dict(),
            "guarantee": self.guarantee.to_dict(),
            "request_id": self.request_id,
            "details": self.details,
            "plane": self.plane,
            "intercept": self.intercept,
            "scale": self.scale.to_dict(),
            "contributions": None if self.added is None else self.contributions().to_dict_under(None),
            "changes": [one.to_dict() for one in self.changes(STATED)] if self._knows_changes else None,
        }

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Self:
        """Read back what `to_dict` wrote."""
        if value.get("format") != FORMAT or value.get("version") != VERSION:
            raise InputError(
                f"this is not version {VERSION} of a dpexplain explanation. Pass what to_dict() returned, or upgrade dpexplain if a newer version wrote it"
            )
        guarantee, added = Guarantee.from_dict(value["guarantee"]), value.get("contributions")
        return cls(
            values=np.array(value["values"]),
            names=tuple(value["names"]),
            point=np.array(value["point"]),
            cost=Guarantee.from_dict(value["cost"], "This answer"),
            guarantee=guarantee,
            error=None if value["error"] is None else np.array(value["error"]),
            copied=value["copied"],
            request_id=value["request_id"],
            details=value["details"],
            plane=value.get("plane"),
            intercept=value.get("intercept"),
            scale=AnswerScale.from_dict(value.get("scale")),
            added=None if added is None else replace(Contributions.from_dict(added), guarantee=guarantee),
        )

    def to_frame(self, backend: str | None = None) -> Any:
        """Names, values and errors as a data frame: pandas, polars or pyarrow, whichever is installed first or is named."""
        error = np.full(len(self.values), np.nan) if self.error is None else self.error
        columns = {"name": list(self.names), "value": self.values.tolist(), "error": error.tolist()}
        return frame_of(columns, backend)

    def to_shap(self) -> Any:
        """Contributions as a `shap.Explanation`: a true base value and raw feature values (extra `[baselines]`).

        InputError where there are none: slopes do not add up to an answer, and shap's plots would show them as if they did.
        """
        return self.contributions().to_shap()

    def __repr__(self) -> str:
        strongest = ", ".join(f"{name} {value:+.3f}" for name, value, _ in self.top(3))
        return f"Explanation({strongest}, … {len(self.names)} values; {self.guarantee})"

    def __rich__(self) -> Group:
        """The contributions where there are some, then what would change."""
        from rich.console import Group
        from rich.text import Text

        slopes = plots.slopes.rich_table(self._slopes(), self.scale, self._caption)
        if self.added is None:
            return Group(slopes)
        added = replace(self.contributions(), guarantee=None)
        return Group(added.__rich__(), Text(f"\n{plots.slopes.HEADING}"), slopes)

    def _repr_html_(self) -> str:
        slopes = plots.slopes.html_table(self._slopes(), self.scale)
        small = f"<p style='font-size:smaller'>{escape(self._caption)}</p>"
        if self.added is None:
            return f"{slopes}{small}"
        added = replace(self.contributions(), guarantee=None)
        details = f"<details><summary>{plots.slopes.HEADING}</summary>{slopes}</details>"
        return f"{added._repr_html_()}{details}{small}"

    def _slopes(self, k: int = STATED) -> list[plots.slopes.Slope]:
        """The k largest changes of this record's values, or slopes where changes are not known, in the answer's own units."""
        if self._knows_changes:
            return [plots.slopes.Slope(one.text, one.value, one.error) for one in self.changes(k)]
        factor = self.scale.half_range
        rows = ((i, self._error(i)) for i in self._order()[:k])
        return [
            plots.slopes.Slope(self._titles[i], factor * float(self.values[i]), None if e is None else factor * e)
            for i, e in rows
        ]
