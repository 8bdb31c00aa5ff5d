"""Explanations of one point by several methods, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpexplain.core.arrays import Vector
from dpexplain.errors import ParameterError
from dpexplain.plots.style import INK, MARKERS, SERIES, finish, name_rows, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def comparison(
    names: Sequence[str],
    methods: Mapping[str, Vector],
    errors: Mapping[str, Vector] | None = None,
    *,
    top: int = 10,
    title: str = "",
    caption: str = "",
    ax: Axes | None = None,
) -> Figure:
    """One row for each of the features strongest in the first method, one marker for each method.

    Methods have different units, so each explanation is scaled to length 1, its errors with it; the legend has its cosine to the first
    method's. `errors` are standard errors of the methods that have them, drawn as ±2.
    """
    scaled = {name: np.asarray(values, dtype=np.float64) / _length(values) for name, values in methods.items()}
    if not scaled or any(values.shape != (len(names),) for values in scaled.values()):
        raise ParameterError(f"methods must be at least one, each with {len(names)} values, one for each name")
    first = next(iter(scaled.values()))
    order = np.argsort(-np.abs(first), kind="stable")[:top][::-1]
    figure, ax = new_axes(ax, 7.0, 1.4 + 0.36 * len(order))
    offsets = np.linspace(0.24, -0.24, len(scaled)) if len(scaled) > 1 else [0.0]
    for k, ((method, values), offset) in enumerate(zip(scaled.items(), offsets, strict=True)):
        error = (errors or {}).get(method)
        spread = None if error is None else 2 * np.asarray(error)[order] / _length(methods[method])
        label = method if k == 0 else f"{method} (cosine {float(values @ first):.2f})"
        style: dict[str, Any] = {"marker": MARKERS[k % len(MARKERS)], "color": SERIES[k % len(SERIES)], "markersize": 5}
        ax.errorbar(values[order], np.arange(len(order)) + offset, xerr=spread, linestyle="none", capsize=2, label=label, **style)
    name_rows(ax, [names[i] for i in order])
    ax.axvline(0, color=INK, linewidth=0.8)
    ax.legend(frameon=False, fontsize=8.5, loc="best")
    finish(figure, ax, title, caption, x="effect, each explanation scaled to length 1")
    return figure


def _length(values: Vector) -> float:
    return float(np.linalg.norm(values)) or 1.0
