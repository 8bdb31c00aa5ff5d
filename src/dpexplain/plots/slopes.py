"""Tables of what would change the answer: changes of one record's values, or slopes of encoded columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from dpexplain.core.answer_scale import AnswerScale
from dpexplain.plots.style import sign_colour

if TYPE_CHECKING:
    from rich.table import Table

HEADING = "What would change the answer"
_BAR = 24  # letters of the longest bar on a terminal


@dataclass(frozen=True, slots=True)
class Slope:
    """The effect of one change in the answer's own units; `error` is None where it is unknown."""

    name: str
    value: float
    error: float | None

    @property
    def colour(self) -> str:
        return sign_colour(self.value, self.error)

    def spread(self, scale: AnswerScale) -> str:
        return "unknown" if self.error is None else scale.spread(self.error)


def rich_table(slopes: Sequence[Slope], scale: AnswerScale, note: str) -> Table:
    """A table for a terminal, with the slopes in the order given."""
    from rich.table import Table
    from rich.text import Text

    table = Table(caption=note or None, caption_justify="left", box=None, pad_edge=False)
    table.add_column("feature")
    table.add_column(f"effect{_unit(scale)}", justify="right")
    table.add_column("± error", justify="right")
    table.add_column("")
    longest = _longest(slopes)
    for slope in slopes:
        bar = Text(("░" if slope.error is None else "█") * max(round(_BAR * abs(slope.value) / longest), 1), style=slope.colour)
        table.add_row(slope.name, scale.number(slope.value, signed=True), slope.spread(scale), bar)
    return table


def html_table(slopes: Sequence[Slope], scale: AnswerScale) -> str:
    """The same table as HTML, for notebooks."""
    longest, right = _longest(slopes), "scope='col' style='text-align:right'"
    head = f"<tr><th scope='col' style='text-align:left'>feature</th><th {right}>effect{_unit(scale)}</th><th {right}>± error</th><td></td></tr>"
    return f"<table>{head}{''.join(_html_row(slope, scale, longest) for slope in slopes)}</table>"


def _html_row(slope: Slope, scale: AnswerScale, longest: float) -> str:
    fill = f"{'border:1px dashed ' if slope.error is None else 'background:'}{slope.colour}"
    bar = f"<div style='{fill};height:0.8em;width:{12 * abs(slope.value) / longest:.2f}em'></div>"
    cells = f"<td>{scale.number(slope.value, signed=True)}</td><td>{slope.spread(scale)}</td><td>{bar}</td>"
    return f"<tr><td style='text-align:left'>{escape(slope.name)}</td>{cells}</tr>"


def _longest(slopes: Sequence[Slope]) -> float:
    return max((abs(slope.value) for slope in slopes), default=0.0) or 1.0


def _unit(scale: AnswerScale) -> str:
    return f", {scale.unit}" if scale.unit else ""
