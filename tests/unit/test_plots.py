"""Figures by their parts: what is drawn, in which colour, on whose axes. Never by their pixels."""

import io

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from dpexplain import plots
from dpexplain.errors import ParameterError
from dpexplain.plots.style import NEGATIVE, POSITIVE, UNCERTAIN, palette_of, readable_on
from dpexplain.plots.text import pieces

TEXT = "A <b>bad</b> film, but\nwonderful & moving: Wonderful! It's $5 or $6."
NAMES, VALUES = ["bad", "film", "wonderful", "it's"], np.array([-0.8, 0.1, 0.4, 0.05])


def drawn(figure):
    """That it renders at all, without a warning."""
    figure.savefig(io.BytesIO(), format="png", dpi=40)
    return figure


def test_bars_are_ordered_coloured_by_sign_and_grey_in_doubt():
    figure = Figure()
    axes = figure.subplots()
    assert plots.bars(["a", "b", "c"], np.array([0.1, -0.5, 0.3]), np.array([0.01, 0.1, 0.2]), ax=axes) is figure
    bars = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    assert [to_hex(bar.get_facecolor()) for bar in bars] == [POSITIVE, UNCERTAIN, NEGATIVE]  # the strongest is on top
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "c", "b"]
    assert len(drawn(figure).axes) == 1


def test_palettes_and_what_is_read_on_them():
    safe = palette_of("blue-orange")
    assert safe.tint(0.0) == "#ffffff"
    assert safe.tint(5.0) == safe.tint(1.0) != safe.tint(-1.0)
    assert readable_on("#2166ac") == "#ffffff"
    assert readable_on("#eeeeee") == "#000000"
    with pytest.raises(ParameterError, match="blue-orange"):
        plots.bars(["a"], np.ones(1), palette="rainbow")


def test_pieces_join_to_the_text_and_carry_effects():
    parts = pieces(TEXT, NAMES, VALUES)
    assert "".join(part.text for part in parts) == TEXT
    marked = [(part.text, part.effect) for part in parts if part.effect is not None]
    assert marked == [("bad", -0.8), ("film", 0.1), ("wonderful", 0.4), ("Wonderful", 0.4), ("It's", 0.05)]


def test_spans_say_what_stands_for_what():
    parts = pieces("so very good", ["very good"], np.array([0.5]), spans=[(3, 12, "very good")])
    assert [(part.text, part.effect) for part in parts] == [("so ", None), ("very good", 0.5)]
    with pytest.raises(ParameterError, match="in order"):
        pieces("abc", ["a"], np.ones(1), spans=[(0, 2, "a"), (1, 3, "a")])


def test_html_escapes_everything_and_shows_signs():
    html = plots.highlighted_html(TEXT, NAMES, VALUES, np.array([0.1, 0.1, 0.1, 0.1]))
    assert "<b>" not in html
    assert "&lt;b&gt;" in html
    assert "&amp; moving" in html
    assert html.count("<mark") == html.count("</mark>") == 5
    assert 'title="-0.8000"' in html
    assert f"dotted {NEGATIVE}" in html
    assert f"solid {POSITIVE}" in html
    assert html.count("(sign uncertain)") == 2  # film and it's
    attack = plots.highlighted_html('"><script>alert(1)</script>', ["script"], np.ones(1))
    assert "<script" not in attack
    assert "&lt;<mark" in attack


def test_highlighted_text_breaks_lines_and_marks_words():
    figure = drawn(plots.highlighted(TEXT * 4, NAMES, VALUES, title="Why?", width=4))
    (axes,) = figure.axes
    marks = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    assert len(marks) == 20
    assert len({round(mark.get_y(), 3) for mark in marks}) > 4
    edge = axes.get_xlim()[1]
    assert all(mark.get_x() + mark.get_width() <= edge + 2 for mark in marks)
    assert "$5" in [text.get_text() for text in axes.texts]


def test_highlighted_text_on_own_axes_and_without_known_words():
    figure = Figure(figsize=(5, 2))
    axes = figure.subplots(1, 2)
    assert plots.highlighted("nothing known here", NAMES, VALUES, ax=axes[1]) is figure
    assert not axes[1].patches
    assert len(axes[1].texts) == 3
    drawn(figure)
