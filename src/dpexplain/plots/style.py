"""The common style of all figures: readable in print and by colour-blind readers. Matplotlib is loaded when something is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from dpexplain.core.answer_scale import AnswerScale
from dpexplain.errors import ParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

POSITIVE = "#2166ac"  # blue pushes towards the explained class
NEGATIVE = "#b2182b"  # red pushes away
UNCERTAIN = "#b8b8b8"
INK = "#222222"
MUTED = "#666666"
# for lines and points, which also differ in marker and dash
SERIES = ("#2166ac", "#e08214", "#1b7837", "#762a83", "#666666", "#b2182b")
MARKERS = "osD^vP"
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 2)))

LONGEST_NAME = 48  # letters of a name

PaletteName: TypeAlias = Literal["blue-red", "blue-orange"]


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours of the two signs. Zero is white."""

    positive: str
    negative: str

    def colour(self, value: float) -> str:
        return self.positive if value >= 0 else self.negative

    def tint(self, value: float) -> str:
        """White at 0, 0.7 of the full colour at ±1, as #rrggbb."""
        share = 0.7 * min(abs(value), 1.0)
        channels = (int(self.colour(value)[i : i + 2], 16) for i in (1, 3, 5))
        return "#" + "".join(f"{round(255 + share * (channel - 255)):02x}" for channel in channels)

    def map(self) -> LinearSegmentedColormap:
        """The colour map of values from -1 to 1."""
        from matplotlib.colors import LinearSegmentedColormap

        return LinearSegmentedColormap.from_list("signs", [self.negative, "#ffffff", self.positive])


BLUE_RED = Palette(POSITIVE, NEGATIVE)  # as in the paper's figures
PALETTES: dict[str, Palette] = {
    "blue-red": BLUE_RED,
    "blue-orange": Palette("#0072b2", "#d55e00"),  # Okabe & Ito: distinct in every kind of colour vision
}


def palette_of(name: str) -> Palette:
    if name not in PALETTES:
        raise ParameterError(f"palette must be one of {', '.join(map(repr, PALETTES))}, got {name!r}")
    return PALETTES[name]


def sign_colour(value: float, error: float | None, palette: Palette = BLUE_RED) -> str:
    """The colour of a value's sign; grey where ±2 standard errors cross zero."""
    return UNCERTAIN if error is not None and abs(value) <= 2 * error else palette.colour(value)


def readable_on(background: str) -> str:
    """Black or white, whichever stands out from #rrggbb more (relative luminance as WCAG 2 defines it)."""
    linear = [_linear(int(background[i : i + 2], 16) / 255) for i in (1, 3, 5)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#ffffff" if luminance < 0.18 else "#000000"


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else float(((channel + 0.055) / 1.055) ** 2.4)


def new_axes(ax: Axes | None, width: float, height: float) -> tuple[Figure, Axes]:
    """The figure and axes to draw on: the caller's, or new ones that are not registered in matplotlib's global state."""
    from matplotlib.figure import Figure

    if ax is not None:
        figure = ax.get_figure()
        if not isinstance(figure, Figure):
            raise ParameterError("ax must belong to a Figure, not to a SubFigure. Pass one made by figure.subplots()")
        return figure, ax
    from dpexplain.plots.picture import Picture

    picture = Picture(figsize=(width, height), layout="constrained")
    return picture, picture.add_subplot()


def name_rows(ax: Axes, names: Sequence[str]) -> None:
    """One name a row, from the bottom; long ones are cut. Names come from data, so a $ in them is a $ and no mathematics."""
    ax.set_yticks(range(len(names)), [name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…" for name in names])
    for label in ax.get_yticklabels():
        label.set_parse_math(False)


def heading(ax: Axes, title: str, size: float = 11) -> None:
    ax.set_title(title, loc="left", fontsize=size, color=INK, parse_math=False)


def caption_below(figure: Figure, caption: str) -> None:
    if caption:
        figure.supxlabel(caption, fontsize=7.5, color=MUTED, x=0.01, ha="left", wrap=True, parse_math=False)


def tidy(ax: Axes, **grid: Any) -> None:
    """Fewer lines: no box, a light grid behind the data."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color("#999999")
    ax.set_axisbelow(True)
    ax.grid(color="#e6e6e6", linewidth=0.8, **grid)
    ax.tick_params(colors=INK, labelsize=9)


def finish(figure: Figure, ax: Axes, title: str, caption: str, *, x: str = "", y: str = "", grid: str = "both") -> None:
    """Label the axes, and add what every figure has: a grid behind the data, a title, a caption."""
    ax.set_xlabel(x, color=MUTED, fontsize=9, parse_math=False)
    ax.set_ylabel(y, color=MUTED, fontsize=9, parse_math=False)
    tidy(ax, axis=grid)
    heading(ax, title)
    caption_below(figure, caption)


def shown_factor(scale: AnswerScale | None) -> float:
    """What numbers are multiplied by before they are shown: 100 where answers are read in per cent."""
    return 100.0 if scale is not None and scale.in_percent else 1.0


def axis_unit(scale: AnswerScale | None) -> str:
    """The end of an axis label about differences of answers."""
    return f", percentage {scale.unit}" if scale is not None and scale.unit else ""
