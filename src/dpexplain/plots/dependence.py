"""How a model's average answer, or a feature's own contribution, changes with the feature's value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpexplain.core.answer_scale import AnswerScale
from dpexplain.core.arrays import Vector
from dpexplain.plots.steps import format_value
from dpexplain.plots.style import INK, MUTED, PaletteName, caption_below, heading, new_axes, palette_of, tidy

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
    factor, colour = 100.0 if scale.in_percent else 1.0, palette_of(palette).positive
    numeric = all(isinstance(value, (int, float, np.number)) and not isinstance(value, bool) for value in values)
    places = [float(value) for value in values] if numeric else list(range(len(values)))
    centre, reach = factor * answers, 2 * factor * error
    if numeric:
        ax.plot(places, centre, color=colour, linewidth=2)
        ax.fill_between(places, centre - reach, centre + reach, color=colour, alpha=0.18, linewidth=0)
    else:
        ax.errorbar(places, centre, yerr=reach, fmt="o", color=colour, ecolor=INK, capsize=2.5)
        ax.set_xticks(places, [format_value(value) for value in values], rotation=30 if len(values) > 4 else 0, ha="center")
        for label in ax.get_xticklabels():
            label.set_parse_math(False)
    ax.set_xlabel(name, color=MUTED, fontsize=9, parse_math=False)
    ax.set_ylabel("average answer, %" if scale.in_percent else "average answer", color=MUTED, fontsize=9)
    tidy(ax, axis="y")
    heading(ax, title)
    caption_below(figure, caption)
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
    factor, colour = 100.0 if scale.in_percent else 1.0, palette_of(palette).positive
    numeric = all(isinstance(value, (int, float, np.number)) and not isinstance(value, bool) for value in values)
    listed = list(dict.fromkeys(levels or sorted(set(values), key=str)))
    places = [float(value) if numeric else float(listed.index(value)) for value in values]
    reach = None if error is None else 2 * factor * error
    ax.errorbar(
        places, factor * contributions, yerr=reach, fmt="o", markersize=3.5, color=colour, ecolor=MUTED, elinewidth=0.7, alpha=0.8
    )
    if not numeric:
        ax.set_xticks(
            range(len(listed)), [format_value(value) for value in listed], rotation=30 if len(listed) > 4 else 0, ha="center"
        )
        for label in ax.get_xticklabels():
            label.set_parse_math(False)
    ax.axhline(0, color=INK, linewidth=0.8)
    ax.set_xlabel(name, color=MUTED, fontsize=9, parse_math=False)
    unit = f", percentage {scale.unit}" if scale.unit else ""
    ax.set_ylabel(f"contribution{unit}", color=MUTED, fontsize=9)
    tidy(ax, axis="y")
    heading(ax, title)
    caption_below(figure, caption)
    return figure
