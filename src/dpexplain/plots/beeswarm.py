"""Contributions of many records at once: a swarm of dots for each feature, or the mean size of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpexplain.core.answer_scale import AnswerScale
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.plots.style import INK, MUTED, PaletteName, axis_unit, finish, name_rows, new_axes, palette_of, shown_factor

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BINS, _WIDTH = 100, 0.8  # across the axis; the thickness of a row's swarm


def beeswarm(
    names: Sequence[str],
    values: Matrix,
    records: Sequence[tuple[Any, ...]] | None,
    scale: AnswerScale,
    *,
    levels: Sequence[Sequence[Any] | None] | None = None,
    top: int = 10,
    title: str = "",
    caption: str = "",
    palette: PaletteName = "blue-red",
    ax: Axes | None = None,
) -> Figure:
    """One row for each of the `top` features by mean absolute contribution, one dot for each record.

    Dots are coloured by the record's value where it is a number, yes/no or one of the feature's ordered `levels`, from low to high; categories
    are grey.
    """
    order = np.argsort(-np.abs(values).mean(axis=0), kind="stable")[:top][::-1]
    figure, ax = new_axes(ax, 7.5, 1.5 + 0.42 * len(order))
    shown = shown_factor(scale) * values
    colours, coloured = palette_of(palette).map(), None
    for row, i in enumerate(order):
        at = row + _offsets(values[:, i], float(np.ptp(values)) or 1.0)
        ordered = None if levels is None else levels[i]
        shade = None if records is None else shades([record[i] for record in records], ordered)
        if shade is None:
            ax.scatter(shown[:, i], at, s=9, color=MUTED, linewidths=0)
        else:
            look: dict[str, Any] = {"c": shade, "cmap": colours, "vmin": 0, "vmax": 1, "linewidths": 0.2, "edgecolors": MUTED}
            coloured = ax.scatter(shown[:, i], at, s=9, **look)
    name_rows(ax, [names[i] for i in order])
    ax.set_ylim(-0.7, len(order) - 0.3)
    if coloured is not None:
        bar = figure.colorbar(coloured, ax=ax, ticks=[0, 1], aspect=40, pad=0.02)
        bar.ax.set_yticklabels(["low", "high"], fontsize=8)
        bar.set_label("the record's value", fontsize=8, color=MUTED)
    ax.axvline(0, color=INK, linewidth=0.8)
    finish(figure, ax, title, caption, x=f"contribution to the model's answer{axis_unit(scale)}", grid="x")
    return figure


def importance(
    names: Sequence[str],
    means: Vector,
    scale: AnswerScale,
    error: Vector | None = None,
    *,
    top: int = 10,
    title: str = "",
    caption: str = "",
    palette: PaletteName = "blue-red",
    ax: Axes | None = None,
) -> Figure:
    """Mean absolute contributions as bars, the largest first; ±2 standard errors where they are given."""
    order = np.argsort(-means, kind="stable")[:top][::-1]
    figure, ax = new_axes(ax, 7.5, 1.4 + 0.34 * len(order))
    drawn = shown_factor(scale) * means[order]
    spread = None if error is None else 2 * shown_factor(scale) * error[order]
    ax.barh(range(len(order)), drawn, xerr=spread, color=palette_of(palette).positive, height=0.66, ecolor=INK, capsize=2.5)
    for row, i in enumerate(order):
        reach = 0.0 if spread is None else float(spread[row])
        place = (float(drawn[row]) + reach, row)
        ax.annotate(scale.spread(float(means[i])), place, (5, 0), textcoords="offset points", va="center", fontsize=9, color=INK)
    name_rows(ax, [names[i] for i in order])
    ax.margins(x=0.12)
    ax.axvline(0, color=INK, linewidth=0.8)
    finish(figure, ax, title, caption, x=f"mean absolute contribution{axis_unit(scale)}", grid="x")
    return figure


def shades(values: Sequence[Any], levels: Sequence[Any] | None = None) -> Vector | None:
    """Numbers and yes/no as their rank from 0 to 1, ordered levels as their place among all of them; None for categories."""
    if levels is not None and len(levels) > 1 and all(value in levels for value in values):
        return np.array([list(levels).index(value) for value in values]) / (len(levels) - 1)
    if not all(isinstance(value, (bool, int, float, np.number, np.bool_)) for value in values):
        return None
    numbers = np.array([float(value) for value in values])
    _, rank = np.unique(numbers, return_inverse=True)
    return np.asarray(rank / max(int(rank.max()), 1), dtype=np.float64)


def _offsets(values: Vector, extent: float) -> Vector:
    """The offset of each dot from its row's line, so that dots at the same position do not overlap; no randomness."""
    bins = np.round(values / extent * _BINS).astype(np.int64)
    _, which, counts = np.unique(bins, return_inverse=True, return_counts=True)
    order = np.argsort(which, kind="stable")
    place = np.empty(len(values))
    place[order] = np.concatenate([np.arange(count) for count in counts]) if len(values) else 0.0
    sides = np.where(place % 2 == 0, 1.0, -1.0) * np.ceil(place / 2)
    return np.asarray(_WIDTH / 2 * sides / max(float(np.abs(sides).max()), 4.0))
