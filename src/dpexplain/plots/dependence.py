"""How a model's average answer, or a feature's own contribution, changes with the feature's value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpexplain.core.answer_scale import AnswerScale
from dpexplain.core.arrays import Vector
from dpexplain.plots.steps import format_value
from dpexplain.plots.style import INK, MUTED, PaletteName, axis_unit, finish, new_axes, palette_of, shown_factor

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def dependence(
    name: str,
    values: Sequence[Any],
    answers: Vector,
    error: Vector,
    scale: AnswerScale,
    *,
    title: str = "",
    caption: str = "",
    palette: PaletteName = "blue-red",
    ax: Axes | None = None,
) -> Figure:
    """Average answers with ±2 standard errors, with the feature's value set in every record, the others unchanged."""
    figure, ax = new_axes(ax, 6.5, 3.6)
    factor, colour, numeric = shown_factor(scale), palette_of(palette).positive, _are_numbers(values)
    places = [float(value) for value in values] if numeric else list(range(len(values)))
    centre, reach = factor * answers, 2 * factor * error
    if numeric:
        ax.plot(places, centre, color=colour, linewidth=2)
        ax.fill_between(places, centre - reach, centre + reach, color=colour, alpha=0.18, linewidth=0)
    else:
        ax.errorbar(places, centre, yerr=reach, fmt="o", color=colour, ecolor=INK, capsize=2.5)
        _name_places(ax, values)
    label = "average answer, %" if scale.in_percent else "average answer"
    finish(figure, ax, title, caption, x=name, y=label, grid="y")
    return figure


def scatter(
    name: str,
    values: Sequence[Any],
    contributions: Vector,
    error: Vector | None,
    scale: AnswerScale,
    *,
    levels: Sequence[Any] | None = None,
    title: str = "",
    caption: str = "",
    palette: PaletteName = "blue-red",
    ax: Axes | None = None,
) -> Figure:
    """A dot for each record: what the feature adds, against its value there, with ±2 standard errors. Levels and categories have a position each."""
    figure, ax = new_axes(ax, 6.5, 3.8)
    factor, colour, numeric = shown_factor(scale), palette_of(palette).positive, _are_numbers(values)
    listed = list(dict.fromkeys(levels or sorted(set(values), key=str)))
    places = [float(value) if numeric else float(listed.index(value)) for value in values]
    reach = None if error is None else 2 * factor * error
    ax.errorbar(
        places, factor * contributions, yerr=reach, fmt="o", markersize=3.5, color=colour, ecolor=MUTED, elinewidth=0.7, alpha=0.8
    )
    if not numeric:
        _name_places(ax, listed)
    ax.axhline(0, color=INK, linewidth=0.8)
    finish(figure, ax, title, caption, x=name, y=f"contribution{axis_unit(scale)}", grid="y")
    return figure


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(value, (int, float, np.number)) and not isinstance(value, bool) for value in values)


def _name_places(ax: Axes, values: Sequence[Any]) -> None:
    """Write the values at 0, 1, 2, … of the axis, on a slant where there are many."""
    ax.set_xticks(
        range(len(values)), [format_value(value) for value in values], rotation=30 if len(values) > 4 else 0, ha="center"
    )
    for label in ax.get_xticklabels():
        label.set_parse_math(False)
