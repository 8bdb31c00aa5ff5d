"""Contributions as a waterfall: from the average at the top, one step in each row, to the record's answer at the bottom."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

from dpexplain.core.answer_scale import AnswerScale
from dpexplain.plots.steps import Step
from dpexplain.plots.style import (
    INK,
    LONGEST_NAME,
    MUTED,
    Palette,
    PaletteName,
    finish,
    name_rows,
    new_axes,
    palette_of,
    sign_colour,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEIGHT = 0.62  # of a bar; rows are 1 apart


def waterfall(
    found: Sequence[Step],
    base: float,
    answer: float,
    scale: AnswerScale,
    *,
    average: str = "the average",
    title: str = "",
    caption: str = "",
    palette: PaletteName = "blue-red",
    ax: Axes | None = None,
) -> Figure:
    """Blue raises the answer, red lowers it, grey is uncertain: its interval of ±2 errors contains zero. Bars are outlined where errors are unknown.

    Numbers are shown beside the bars, in percentage points or in the model's own units.
    """
    figure, ax = new_axes(ax, 7.5, 1.5 + 0.36 * (len(found) + 2))
    colours, last = palette_of(palette), len(found) + 1
    for row, step in enumerate(found, start=1):
        _draw(ax, last - row, step, scale, colours)
    for row, place in ((last, base), (0, answer)):
        ax.plot([place, place], [row - HEIGHT / 2, row + HEIGHT / 2], color=INK, linewidth=2.2)
        ax.annotate(
            scale.format(place), (place, row), (6, 0), textcoords="offset points", va="center", fontsize=9.5, weight="bold"
        )
    name_rows(ax, ["this record", *(step.label for step in reversed(found)), average])
    ax.set_ylim(-0.7, last + 0.7)
    _ruler(ax, scale)
    steps = f"; steps in percentage {scale.unit}" if scale.unit else ""
    longest = max(len(name) for name in [average, *(step.label for step in found)])
    finish(figure, ax, fill(title, _title_width(longest)), caption, x=f"the model's answer{steps}", grid="x")
    return figure


def _title_width(longest: int) -> int:
    """Letters of a line that fits above the axes, which are narrower where names are long."""
    return min(max(84 - round(0.85 * min(longest, LONGEST_NAME)), 36), 68)


def _draw(ax: Axes, row: int, step: Step, scale: AnswerScale, palette: Palette) -> None:
    colour = sign_colour(step.value, step.error, palette)
    look: dict[str, Any] = (
        {"color": colour} if step.error is not None else {"facecolor": f"{colour}2e", "edgecolor": colour, "linestyle": "--"}
    )
    ax.barh(row, step.value, left=step.start, height=HEIGHT, **look)
    end, reach = step.start + step.value, 0.0
    if step.error is not None:
        reach = 2 * step.error
        ax.errorbar(end, row, xerr=reach, fmt="none", ecolor=INK, elinewidth=1, capsize=2.5)
    ax.plot([end, end], [row - HEIGHT / 2, row - 1 + HEIGHT / 2], color=MUTED, linewidth=0.7)
    beside = max(step.start, end + reach)
    ax.annotate(
        scale.number(step.value, signed=True),
        (beside, row),
        (5, 0),
        textcoords="offset points",
        va="center",
        fontsize=9,
        color=INK,
    )


def _ruler(ax: Axes, scale: AnswerScale) -> None:
    """Answers along the axis, with room for the numbers at its right end."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    low, high = ax.get_xlim()
    ax.set_xlim(low - 0.03 * (high - low), high + 0.12 * (high - low))
    ax.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    first, second, *_ = ax.xaxis.get_majorticklocs()
    ax.xaxis.set_major_formatter(FuncFormatter(lambda place, _: scale.place(place, second - first)))
