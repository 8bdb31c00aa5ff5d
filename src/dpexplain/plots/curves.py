"""Curves over queries and steps: the budget as it is spent, convergence of an algorithm, and histograms of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dpexplain.core.arrays import Vector
from dpexplain.errors import ParameterError
from dpexplain.plots.style import DASHES, NEGATIVE, SERIES, finish, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Named: TypeAlias = ArrayLike | Mapping[str, ArrayLike]  # one series, or several by name


def budget(spent: Named, limit: float | None = None, *, title: str = "", caption: str = "", ax: Axes | None = None) -> Figure:
    """Total ε after each query, as a step curve, and the `limit` it stays below. It needs only what the answers state.

    `spent` is `[answer.guarantee.epsilon for answer in answers]`, or several such lists by name.
    """
    figure, ax = new_axes(ax, 6.0, 3.2)
    for name, totals, style in _series(spent):
        ax.step(np.arange(len(totals) + 1), np.append(0.0, totals), where="post", label=name, **style)
    if limit is not None:
        ax.axhline(limit, color=NEGATIVE, linewidth=1.2)
        ax.annotate("budget", (1, limit), xycoords=("axes fraction", "data"), ha="right", va="bottom", color=NEGATIVE, fontsize=9)
    ax.set_ylim(bottom=0)
    ax.margins(x=0)
    _name_series(ax, spent)
    finish(figure, ax, title, caption, x="queries answered", y="ε spent in total")
    return figure


def convergence(
    curves: Named,
    steps: ArrayLike | None = None,
    *,
    quantity: str = "relative excess",
    log: bool = True,
    title: str = "",
    caption: str = "",
    ax: Axes | None = None,
) -> Figure:
    """`quantity` over steps (1, 2, … or as given), one line for each curve. For offline experiments: the exact quantity is private."""
    figure, ax = new_axes(ax, 6.0, 3.4)
    for name, values, style in _series(curves):
        at = np.arange(1, len(values) + 1) if steps is None else np.asarray(steps)[: len(values)]
        ax.plot(at, values, label=name, **style)
    if log:
        ax.set_yscale("log")
    _name_series(ax, curves)
    finish(figure, ax, title, caption, x="step", y=quantity)
    return figure


def histogram(
    values: Named,
    bins: int = 30,
    *,
    quantity: str = "loss",
    log: bool = False,
    normalised: bool = False,
    title: str = "",
    caption: str = "",
    ax: Axes | None = None,
) -> Figure:
    """How `quantity` (a loss, a number of iterations) is spread over queries, as outlines over common bins; medians in the legend.

    `normalised` outlines have the share of their own queries in each bin, so that series of unlike length can be compared.

    For offline experiments: exact losses are private, and so are exact iteration counts where they follow from them.
    """
    series = list(_series(values))
    pooled = np.concatenate([numbers for _, numbers, _ in series])
    if log and not (pooled > 0).all():
        raise ParameterError("log=True needs positive values. Leave it out, or leave zeros out")
    edges = _edges(pooled, bins, log)
    figure, ax = new_axes(ax, 6.0, 3.4)
    for name, numbers, style in series:
        label = f"{name} (median {np.median(numbers):.3g})"
        counts = np.histogram(numbers, edges)[0] / (len(numbers) if normalised else 1)
        ax.stairs(counts, edges, label=label, color=style["color"], linestyle=style["linestyle"], linewidth=1.6)
        ax.stairs(counts, edges, fill=True, alpha=0.15, color=style["color"])
    if log:
        ax.set_xscale("log")
    _name_series(ax, values)
    finish(figure, ax, title, caption, x=quantity, y="share of queries" if normalised else "queries")
    return figure


def _edges(values: Vector, bins: int, log: bool) -> Vector:
    low, high = float(values.min()), float(values.max())
    if low == high:  # all alike: one bin around it
        low, high = (low * 0.9, low * 1.1) if log else (low - 0.5, high + 0.5)
    return np.geomspace(low, high, bins + 1) if log else np.linspace(low, high, bins + 1)


def _series(given: Named) -> list[tuple[str, Vector, dict[str, Any]]]:
    """Each series with its name and look."""
    named = given if isinstance(given, Mapping) else {"": given}
    arrays = {name: np.asarray(values, dtype=np.float64) for name, values in named.items()}
    if not arrays or any(array.ndim != 1 or not array.size for array in arrays.values()):
        raise ParameterError("the curves are missing or empty. Pass a list of numbers, or several lists by name")
    looks: Sequence[dict[str, Any]] = [
        {"color": SERIES[k % len(SERIES)], "linestyle": DASHES[k % len(DASHES)], "linewidth": 1.8} for k in range(len(arrays))
    ]
    return [(name, array, look) for (name, array), look in zip(arrays.items(), looks, strict=True)]


def _name_series(ax: Axes, given: Named) -> None:
    """Add a legend, where series have names."""
    if isinstance(given, Mapping):
        ax.legend(frameon=False, fontsize=8.5)
