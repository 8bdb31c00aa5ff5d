"""One look for every figure: readable in print, safe for colour-blind readers. Matplotlib is loaded when something is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POSITIVE = "#2166ac"  # blue pushes towards the explained class
NEGATIVE = "#b2182b"  # red pushes away
UNCERTAIN = "#b8b8b8"
INK = "#222222"
MUTED = "#666666"


def new_axes(ax: Axes | None, width: float, height: float) -> tuple[Figure, Axes]:
    """The figure and axes to draw on: the caller's, or new ones that no global state knows of."""
    from matplotlib.figure import Figure

    if ax is not None:
        figure = ax.get_figure()
        assert isinstance(figure, Figure)
        return figure, ax
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def tidy(ax: Axes, **grid: Any) -> None:
    """Fewer lines: no box, a light grid behind the data."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color("#999999")
    ax.set_axisbelow(True)
    ax.grid(color="#e6e6e6", linewidth=0.8, **grid)
    ax.tick_params(colors=INK, labelsize=9)
