"""An explanation as horizontal bars, the strongest first, with error bars of two standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpexplain.core.answer_scale import AnswerScale
from dpexplain.core.arrays import Vector
from dpexplain.plots.style import (
    INK,
    MUTED,
    UNCERTAIN,
    Palette,
    PaletteName,
    caption_below,
    heading,
    name_rows,
    new_axes,
    palette_of,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer
    from matplotlib.figure import Figure

UNKNOWN = " (error unknown: any sign may be noise)"


def bars(
    names: Sequence[str],
    values: Vector,
    error: Vector | None = None,
    *,
    top: int = 12,
    title: str = "",
    caption: str = "",
    palette: PaletteName = "blue-red",
    scale: AnswerScale | None = None,
    ax: Axes | None = None,
) -> Figure:
    """The `top` strongest values as bars. Blue is towards the explained class, red away from it; grey is uncertain: ±2 errors cross zero.

    Where errors are unknown, bars are outlined and the axis states it: any sign may be noise. With a `scale`, values are differences of
    answers in its units, shown in percentage points where answers are probabilities.
    """
    factor = 100.0 if scale is not None and scale.in_percent else 1.0
    values, error = factor * np.asarray(values), None if error is None else factor * np.asarray(error)
    order = np.argsort(-np.abs(values), kind="stable")[:top][::-1]
    figure, ax = new_axes(ax, 7.0, 1.3 + 0.32 * len(order))
    shown = values[order]
    spread = None if error is None else 2 * error[order]
    drawn = ax.barh(range(len(order)), shown, color=colours(shown, spread, palette_of(palette)), height=0.7)
    if spread is None:
        _outline(drawn)
    else:
        ax.errorbar(shown, range(len(order)), xerr=spread, fmt="none", ecolor=INK, elinewidth=1, capsize=2.5)
    name_rows(ax, [names[i] for i in order])
    ax.axvline(0, color=INK, linewidth=0.8)
    unit = f", percentage {scale.unit}" if scale is not None and scale.unit else ""
    ax.set_xlabel(f"effect on the model's output{unit}{'' if spread is not None else UNKNOWN}", color=MUTED, fontsize=9)
    tidy(ax, axis="x")
    heading(ax, title)
    caption_below(figure, caption)
    return figure


def _outline(drawn: BarContainer) -> None:
    for bar in drawn:
        colour = bar.get_facecolor()
        bar.set(facecolor=(*colour[:3], 0.18), edgecolor=colour, linestyle="--", linewidth=1.2)


def colours(values: Vector, spread: Vector | None, palette: Palette) -> list[str]:
    """One colour for each bar."""
    certain = np.ones(len(values), dtype=bool) if spread is None else np.abs(values) > spread
    return [palette.colour(float(v)) if sure else UNCERTAIN for v, sure in zip(values, certain, strict=True)]
