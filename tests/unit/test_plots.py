"""Figures by their parts: what is drawn, in which colour, on whose axes. Never by their pixels."""

import io
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from dpexplain import plots
from dpexplain.answers.contributions import Contributions
from dpexplain.core.answer_scale import AnswerScale
from dpexplain.errors import ParameterError
from dpexplain.plots.highlighted_text import pieces
from dpexplain.plots.style import NEGATIVE, POSITIVE, UNCERTAIN, palette_of, readable_on

TEXT = "A <b>bad</b> film, but\nwonderful & moving: Wonderful! It's $5 or $6."
NAMES, VALUES = ["bad", "film", "wonderful", "it's"], np.array([-0.8, 0.1, 0.4, 0.05])


def draw(figure):
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
    assert len(draw(figure).axes) == 1


def test_names_are_no_mathematics():
    names = [r"price $\frac$", "$_$", "x" * 300]
    figure = draw(plots.bars(names, [1.0, 2.0, -3.0], [0.1, 0.1, 0.1], title="$x", caption="$_$"))
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == [names[0], "$_$", "x" * 47 + "…"]
    draw(plots.comparison(names, {"a": [1.0, 2.0, 3.0]}))


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
    figure = draw(plots.highlighted(TEXT * 4, NAMES, VALUES, title="Why?", width=4))
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
    draw(figure)


def test_an_overlay_leaves_doubtful_cells_out_and_shares_a_scale():
    values, error = np.array([[0.5, -0.2], [0.1, 0.0]]), np.full((2, 2), 0.15)
    axes = draw(plots.overlay(values, np.arange(16).reshape(4, 4), error, limit=1.0)).axes[0]
    image, heat = axes.images
    assert image.get_array().max() == 1.0
    assert heat.get_array().tolist() == [[0.5, 0.0], [0.0, 0.0]]
    assert heat.get_clim() == (-1.0, 1.0)
    assert to_hex(heat.get_cmap()(1.0)) == POSITIVE
    assert to_hex(heat.get_cmap()(0.0)) == NEGATIVE
    opacity = np.asarray(heat.get_alpha())
    assert opacity[0, 0] > 0.5
    assert opacity[1, 1] == 0.0


def test_an_overlay_adds_channels_and_takes_axes():
    figure = Figure()
    axes = figure.subplots()
    colour = np.stack([np.ones((3, 5)), -0.5 * np.ones((3, 5)), np.zeros((3, 5))], axis=2)
    assert (
        plots.overlay(colour, np.zeros((3, 5, 3)), np.zeros_like(colour), scale=False, palette="blue-orange", ax=axes) is figure
    )
    assert (axes.images[-1].get_array() == 0.5).all()
    draw(figure)
    with pytest.raises(ParameterError, match="image plane"):
        plots.overlay(np.ones(4))


def test_a_comparison_scales_each_method_and_tells_cosines():
    methods = {"private": np.array([3.0, -4.0, 0.0]), "lime": np.array([30.0, 40.0, 0.0])}
    figure = draw(plots.comparison(["a", "b", "c"], methods, {"private": np.array([0.5, 0.5, 0.5])}, top=2))
    (axes,) = figure.axes
    first, second = [container.lines[0] for container in axes.containers]
    np.testing.assert_allclose(first.get_xdata(), [0.6, -0.8])
    np.testing.assert_allclose(second.get_xdata(), [0.6, 0.8])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["private", "lime (cosine -0.28)"]
    with pytest.raises(ParameterError, match="3 values"):
        plots.comparison(["a", "b", "c"], {"private": np.ones(2)})


def test_the_budget_starts_at_nothing_and_shows_its_limit():
    (axes,) = draw(plots.budget([0.1, 0.2, 0.3], limit=0.5)).axes
    curve, limit = axes.lines
    assert curve.get_ydata().tolist() == [0.0, 0.1, 0.2, 0.3]
    assert limit.get_ydata()[0] == 0.5
    assert axes.get_legend() is None
    (axes,) = draw(plots.budget({"one": [0.1], "two": [0.2]})).axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["one", "two"]


def test_curves_and_histograms():
    (axes,) = draw(plots.convergence({"a": [1.0, 0.1], "b": [1.0, 0.5, 0.2]}, steps=[1, 10, 100])).axes
    assert [line.get_xdata().tolist() for line in axes.lines] == [[1, 10], [1, 10, 100]]
    assert axes.get_yscale() == "log"
    (axes,) = draw(plots.histogram({"a": [1.0, 2.0, 2.0], "b": [10.0]}, bins=9, quantity="iterations")).axes
    outlines = [patch for patch in axes.patches if not patch.get_fill()]
    assert [sum(patch.get_data().values) for patch in outlines] == [3, 1]
    assert axes.get_legend().get_texts()[0].get_text() == "a (median 2)"
    (axes,) = draw(plots.histogram({"a": [1.0, 2.0, 2.0], "b": [10.0]}, bins=9, normalised=True)).axes
    assert [sum(patch.get_data().values) for patch in axes.patches if not patch.get_fill()] == pytest.approx([1, 1])
    assert axes.get_ylabel() == "share of queries"
    draw(plots.histogram([5.0, 5.0], log=True))
    with pytest.raises(ParameterError, match="positive"):
        plots.histogram([0.0, 1.0], log=True)
    with pytest.raises(ParameterError, match="empty"):
        plots.convergence({})


def test_the_documented_examples_run():
    page = (Path(__file__).parents[2] / "docs/plots.md").read_text(encoding="utf-8")
    names = {}
    for example in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(example, "docs/plots.md", "exec"), names)
    assert names["html"].count("<mark") == 2


def test_ordered_levels_are_coloured_by_their_place_and_categories_are_grey():
    from dpexplain.plots.beeswarm import shades

    np.testing.assert_allclose(shades(["low", "high", "middle"], ["low", "middle", "high"]), [0, 1, 0.5])
    assert shades(["low", "high"]) is None
    assert shades(["low", None], ["low", "middle", "high"]) is None
    values = np.array([[0.1, -0.2], [0.2, 0.1], [-0.1, 0.0]])
    records = [("low", "red"), ("high", "blue"), ("middle", "red")]
    drawn = plots.beeswarm(["level", "colour"], values, records, AnswerScale(), levels=[("low", "middle", "high"), None])
    swarms = drawn.axes[0].collections
    assert sorted(swarm.get_array() is not None for swarm in swarms) == [False, True]


def test_titles_of_waterfalls_fit_above_axes_that_long_names_make_narrow():
    for length in (5, 24, 31, 48, 90):
        name = "n" * length
        added = Contributions(
            (name, "b"),
            np.array([0.1, 0.3]),
            0.024,
            0.424,
            scale=AnswerScale.of("probability"),
            average="the middle of all ranges",
        )
        figure = added.plot()
        figure.draw_without_rendering()
        title = figure.axes[0].title if figure.axes[0].title.get_text() else figure.axes[0]._left_title
        assert title.get_window_extent().x1 <= figure.bbox.x1
