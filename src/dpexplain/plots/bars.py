"""An explanation as horizontal bars, the strongest first, with error bars of two standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpexplain.core.answer_scale import AnswerScale
from dpexplain.core.arrays import Vector
from dpexplain.plots.style import INK, PaletteName, axis_unit, finish, name_rows, new_axes, palette_of, shown_factor, sign_colour

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
    factor = shown_factor(scale)
    values, error = factor * np.asarray(values), None if error is None else factor * np.asarray(error)
    order = np.argsort(-np.abs(values), kind="stable")[:top][::-1]
    figure, ax = new_axes(ax, 7.0, 1.3 + 0.32 * len(order))
    shown = values[order]
    spread = None if error is None else 2 * error[order]
    signs, known = palette_of(palette), [None] * len(order) if error is None else error[order].tolist()
    colours = [sign_colour(value, doubt, signs) for value, doubt in zip(shown.tolist(), known, strict=True)]
    drawn = ax.barh(range(len(order)), shown, color=colours, height=0.7)
    if spread is None:
        _outline(drawn)
    else:
        ax.errorbar(shown, range(len(order)), xerr=spread, fmt="none", ecolor=INK, elinewidth=1, capsize=2.5)
    name_rows(ax, [names[i] for i in order])
    ax.axvline(0, color=INK, linewidth=0.8)
    label = f"effect on the model's output{axis_unit(scale)}{'' if spread is not None else UNKNOWN}"
    finish(figure, ax, title, caption, x=label, grid="x")
    return figure


def _outline(drawn: BarContainer) -> None:
    for bar in drawn:
        colour = bar.get_facecolor()
        bar.set(facecolor=(*colour[:3], 0.18), edgecolor=colour, linestyle="--", linewidth=1.2)
