"""A text with the words that matter highlighted: as HTML, and as a figure.

The stronger a word's effect, the fuller its colour; the line below it shows the sign without colour: solid towards the explained class,
dotted away from it. Words whose sign is in doubt (±2 errors cross zero) are grey.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from dpexplain.core.arrays import Vector
from dpexplain.errors import ParameterError
from dpexplain.plots.style import INK, UNCERTAIN, Palette, PaletteName, heading, new_axes, palette_of, readable_on

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Span = tuple[int, int, str]  # text[start:stop] is an occurrence of this name
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_SIZE, _SPACE, _LINE = 11.0, 3.5, 21.0  # points: letters, between words, from one line to the next


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the text, and its effect where it is a word of the explanation; None elsewhere."""

    text: str
    effect: float | None = None
    certain: bool = True


def words(text: str) -> list[Span]:
    """The place and the lower-case name of each word of a text. A word is a run of letters and digits, with apostrophes inside."""
    return [(found.start(), found.end(), found.group().lower()) for found in _WORD.finditer(text)]


def pieces(
    text: str, names: Sequence[str], values: Vector, error: Vector | None = None, spans: Iterable[Span] | None = None
) -> list[Piece]:
    """The text cut at its spans; the parts joined again are the text."""
    doubt = np.zeros(len(values), dtype=bool) if error is None else np.abs(values) <= 2 * np.asarray(error)
    known = {name: (float(value), not unsure) for name, value, unsure in zip(names, values, doubt, strict=True)}
    parts, end = [], 0
    for start, stop, name in words(text) if spans is None else spans:
        if not end <= start <= stop <= len(text):
            raise ParameterError("spans must be in order, within the text and apart. Pass (start, stop, name) for each word")
        if name in known:
            parts += [Piece(text[end:start]), Piece(text[start:stop], *known[name])]
            end = stop
    return [part for part in [*parts, Piece(text[end:])] if part.text]


def highlighted_html(
    text: str,
    names: Sequence[str],
    values: Vector,
    error: Vector | None = None,
    *,
    spans: Iterable[Span] | None = None,
    palette: PaletteName = "blue-red",
) -> str:
    """An HTML fragment: a paragraph with a <mark> for each word of the explanation, its effect as a tooltip. All text is escaped.

    `names` and `values` are the explanation's; `spans` says which part of the text stands for which name where `words` does not.
    """
    parts = pieces(text, names, values, error, spans)
    largest, colours = _largest(parts), palette_of(palette)
    marked = "".join(escape(p.text) if p.effect is None else _mark(p, p.effect, largest, colours) for p in parts)
    return f'<p style="line-height:1.7;white-space:pre-wrap">{marked}</p>'


def _mark(piece: Piece, effect: float, largest: float, palette: Palette) -> str:
    background = _background(piece, effect / largest, palette)
    line = "solid" if effect >= 0 else "dotted"
    colour = palette.colour(effect) if piece.certain else UNCERTAIN
    style = f"background:{background};color:{readable_on(background)};border-bottom:2px {line} {colour};padding:0 1px"
    title = f"{effect:+.4f}" + ("" if piece.certain else " (sign uncertain)")
    return f'<mark style="{style}" title="{title}">{escape(piece.text)}</mark>'


def _background(piece: Piece, strength: float, palette: Palette) -> str:
    return palette.tint(strength) if piece.certain else "#eeeeee"


def _largest(parts: Sequence[Piece]) -> float:
    return max((abs(part.effect) for part in parts if part.effect is not None), default=0.0) or 1.0


def highlighted(
    text: str,
    names: Sequence[str],
    values: Vector,
    error: Vector | None = None,
    *,
    spans: Iterable[Span] | None = None,
    title: str = "",
    palette: PaletteName = "blue-red",
    width: float = 7.0,
    ax: Axes | None = None,
) -> Figure:
    """The same as a figure, lines broken at `width` inches (or at the width of `ax`)."""
    parts = pieces(text, names, values, error, spans)
    room = 72 * (width - 0.3) if ax is None else _width_in_points(ax)
    lines = _lines(parts, room)
    height = _LINE * (len(lines) + 0.6 + 1.4 * bool(title))
    figure, ax = new_axes(ax, width, height / 72)
    ax.set_axis_off()
    ax.set_xlim(0, room)
    ax.set_ylim(_LINE * len(lines), -0.3 * _LINE)
    heading(ax, title)
    largest, colours = _largest(parts), palette_of(palette)
    for row, line in enumerate(lines):
        for x, extent, piece in line:
            _draw(ax, x, _LINE * (row + 0.65), extent, piece, largest, colours)
    return figure


def _width_in_points(ax: Axes) -> float:
    figure = new_axes(ax, 1, 1)[0]
    return float(ax.get_window_extent().width) * 72 / figure.dpi


Placed = tuple[float, float, Piece]


def _lines(parts: Sequence[Piece], room: float) -> list[list[Placed]]:
    """Pieces as (x, width, piece), broken at spaces and at the line breaks of the text."""
    lines: list[list[Placed]] = [[]]
    x = 0.0
    for cluster in _clusters(parts):
        text = cluster[0].text
        if text.isspace():
            x = 0.0 if "\n" in text else x + _SPACE * bool(x)
            lines += [[] for _ in range(text.count("\n"))]
            continue
        extents = [_extent(piece.text) for piece in cluster]
        if x and x + sum(extents) > room:
            lines, x = [*lines, []], 0.0
        for piece, extent in zip(cluster, extents, strict=True):
            lines[-1].append((x, extent, piece))
            x += extent
    return lines


def _clusters(parts: Sequence[Piece]) -> list[list[Piece]]:
    """Runs of pieces that no space parts, and the spaces between them."""
    clusters: list[list[Piece]] = []
    glued = False
    for part in parts:
        for text in re.findall(r"\s+|\S+", part.text):
            space = text.isspace()
            if glued and not space:
                clusters[-1].append(Piece(text, part.effect, part.certain))
            else:
                clusters.append([Piece(text, part.effect, part.certain)])
            glued = not space
    return clusters


def _extent(text: str) -> float:
    """Width in points, without drawing."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    return float(text_to_path.get_text_width_height_descent(text, FontProperties(size=_SIZE), ismath=False)[0])


def _draw(ax: Axes, x: float, y: float, extent: float, piece: Piece, largest: float, palette: Palette) -> None:
    from matplotlib.patches import Rectangle

    background = "#ffffff"
    if piece.effect is not None:
        background = _background(piece, piece.effect / largest, palette)
        line = palette.colour(piece.effect) if piece.certain else UNCERTAIN
        ax.add_patch(Rectangle((x - 0.5, y - 0.5 * _LINE), extent + 1, 0.7 * _LINE, color=background, linewidth=0))
        style = "-" if piece.effect >= 0 else ":"
        ax.plot([x, x + extent], [y + 0.24 * _LINE] * 2, color=line, linestyle=style, linewidth=1.6)
    colour = readable_on(background) if piece.effect is not None else INK
    ax.text(x, y, piece.text, fontsize=_SIZE, color=colour, va="baseline", parse_math=False)
