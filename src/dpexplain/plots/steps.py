"""Contributions as steps from the average to the answer: in words, as a terminal's table and as HTML. The figure is in `waterfall`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from dpexplain.core.answer_scale import AnswerScale
from dpexplain.core.arrays import Vector
from dpexplain.plots.style import sign_colour

if TYPE_CHECKING:
    from rich.console import Group
    from rich.text import Text

_BAR = 22  # letters of the longest bar on a terminal


@dataclass(frozen=True, slots=True)
class Step:
    """One contribution: from `start` to `start + value`. `error` is None where it is unknown; `rest` marks several values together."""

    label: str
    start: float
    value: float
    error: float | None
    rest: bool = False

    @property
    def colour(self) -> str:
        return sign_colour(self.value, self.error)


def steps(labels: Sequence[str], values: Vector, error: Vector | None, base: float, top: int) -> list[Step]:
    """The `top` largest contributions in order of size, then the others as one step, whose error is not the sum of theirs."""
    order = [int(i) for i in np.argsort(-np.abs(values), kind="stable")]
    most = top if len(order) > top + 1 else len(order)
    found, at = [], base
    for i in order[:most]:
        found.append(Step(labels[i], at, float(values[i]), None if error is None else float(error[i])))
        at += float(values[i])
    if most < len(order):
        found.append(Step(f"{len(order) - most} other values", at, float(values[order[most:]].sum()), None, rest=True))
    return found


def sentence(answer: float, base: float, scale: AnswerScale, average: str, *, exact: bool = False) -> str:
    """The first sentence about an answer, which every output shows.

    Where a plane passes an end of the scale, the sentence names that end, and then states where the steps start or what they add up to.
    """
    within, start = (min(max(place, scale.low), scale.high) for place in (answer, base))
    about = "" if exact else "about "
    here, there = scale.format(within), scale.format(start)
    alike = here == there and (start == base or scale.format(answer) == scale.format(base))
    end = "together these values make no difference" if alike else "these values make the difference"
    beyond = (
        "" if start == base else f"start at {scale.format(base)}",
        "" if within == answer else f"add up to {scale.format(answer)}",
    )
    passed = f" They {' and '.join(filter(None, beyond))}: a straight line passes the end of the scale." if any(beyond) else ""
    return f"The model's answer here is {about}{here}; {average} is {there}; {end}.{passed}"


def format_value(value: Any) -> str:
    """A raw value as text."""
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return "missing"
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (float, np.floating)):
        return f"{value:,.6g}"
    return str(value)


def rich_table(
    heading: str, found: Sequence[Step], base: float, answer: float, scale: AnswerScale, average: str, note: str
) -> Group:
    """What a terminal shows: a sentence, then one line for each step with a bar that begins where the last one ended."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, caption=note or None, caption_justify="left")
    table.add_column("")
    table.add_column(scale.unit or "contribution", justify="right")
    table.add_column("± error", justify="right")
    table.add_column("")
    low, high = _extent(found, base, answer)
    table.add_row(average, Text(scale.format(base), style="bold"), "", _mark(base, low, high))
    for step in found:
        table.add_row(step.label, scale.number(step.value, signed=True), _spread(step, scale), _terminal_bar(step, low, high))
    table.add_row("this record", Text(scale.format(answer), style="bold"), "", _mark(answer, low, high))
    return Group(Text(heading), Text(""), table)


def html_table(
    heading: str, found: Sequence[Step], base: float, answer: float, scale: AnswerScale, average: str, note: str
) -> str:
    """What a notebook shows: the same as a fragment of HTML, readable on light and dark ground."""
    low, high = _extent(found, base, answer)
    right = "scope='col' style='text-align:right;white-space:nowrap'"
    head = f"<tr><td></td><th {right}>{scale.unit or 'contribution'}</th><th {right}>± error</th><td></td></tr>"
    rows = "".join(_html_row(step, low, high, scale) for step in found)
    first, last = _html_end(average, base, low, high, scale), _html_end("this record", answer, low, high, scale)
    small = f"<p style='font-size:smaller'>{escape(note)}</p>" if note else ""
    sentence = escape(heading).replace(" %", "&nbsp;%")
    return f"<p>{sentence}</p><table>{head}{first}{rows}{last}</table>{small}"


def _extent(found: Sequence[Step], base: float, answer: float) -> tuple[float, float]:
    """The smallest and largest value on the way; never equal."""
    places = [base, answer, *(step.start + step.value for step in found)]
    low, high = min(places), max(places)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _spread(step: Step, scale: AnswerScale) -> str:
    if step.error is None:
        return "" if step.rest else "unknown"
    return scale.spread(step.error)


def _terminal_bar(step: Step, low: float, high: float) -> Text:
    from rich.text import Text

    first, last = sorted(round(_BAR * (place - low) / (high - low)) for place in (step.start, step.start + step.value))
    block = "░" if step.error is None else "█"
    return Text(" " * min(first, _BAR - 1) + block * max(last - first, 1), style=step.colour)


def _mark(place: float, low: float, high: float) -> Text:
    from rich.text import Text

    return Text(" " * min(round(_BAR * (place - low) / (high - low)), _BAR - 1) + "│")


def _html_row(step: Step, low: float, high: float, scale: AnswerScale) -> str:
    left = 100 * (min(step.start, step.start + step.value) - low) / (high - low)
    width = 100 * abs(step.value) / (high - low)
    fill = f"{'border:1px dashed ' if step.error is None else 'background:'}{step.colour}"
    bar = (
        f"<div style='{fill};height:0.8em;box-sizing:border-box;min-width:2px;margin-left:{left:.1f}%;width:{width:.1f}%'></div>"
    )
    number, spread = scale.number(step.value, signed=True), _spread(step, scale)
    return _cells(step.label, number, spread, bar)


def _html_end(name: str, place: float, low: float, high: float, scale: AnswerScale) -> str:
    left = 100 * (place - low) / (high - low)
    mark = f"<div style='border-left:2px solid;height:1em;margin-left:{min(left, 99.0):.1f}%'></div>"
    return _cells(name, f"<b>{escape(scale.format(place))}</b>", "", mark, bold=True)


def _cells(name: str, number: str, spread: str, bar: str, *, bold: bool = False) -> str:
    label = f"<b>{escape(name)}</b>" if bold else escape(name)
    right = "style='text-align:right;white-space:nowrap'"
    cells = f"<td {right}>{number}</td><td {right}>{spread}</td><td style='width:45%;min-width:5em;padding:0'>{bar}</td>"
    return f"<tr><td style='text-align:left'>{label}</td>{cells}</tr>"
