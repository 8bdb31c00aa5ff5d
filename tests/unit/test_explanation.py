"""The answer object: order, text, tables, pictures, and the way back from JSON."""

import io
import json

import numpy as np
import pytest
from matplotlib.figure import Figure
from rich.console import Console

import dpexplain as dpx
from dpexplain.errors import InputError
from dpexplain.privacy.relation import Neighbours

GUARANTEE = dpx.Guarantee(0.1, 1e-6, Neighbours())


def make(error=(0.01, 0.3, 0.01)):
    return dpx.Explanation(
        values=np.array([0.2, -0.5, 0.1]),
        names=("age", "<b>work</b>", "married"),
        point=np.array([0.4, 1.0, 0.0]),
        cost=dpx.Guarantee(0.05, 1e-6, Neighbours(), subject="This answer"),
        guarantee=GUARANTEE,
        error=None if error is None else np.array(error),
        request_id="r-1",
        details={"gradients": 5},
    )


def test_top_is_sorted_by_strength():
    assert make().top(2) == [("<b>work</b>", -0.5, 0.3), ("age", 0.2, 0.01)]
    assert make(None).top(1) == [("<b>work</b>", -0.5, None)]


def test_signs_in_doubt_are_marked():
    assert make().uncertain() == (False, True, False)
    assert make(None).uncertain() is None


def test_json_round_trip_is_exact():
    one = make()
    two = dpx.Explanation.from_json(one.to_json())
    assert two.to_dict() == one.to_dict()
    assert (two.values == one.values).all()
    assert str(two.guarantee) == str(one.guarantee)
    with pytest.raises(InputError, match="not version 1 of a dpexplain explanation"):
        dpx.Explanation.from_dict({"format": "other"})
    assert json.loads(make(None).to_json())["error"] is None


@pytest.mark.parametrize(
    "damage", [lambda text: "", lambda text: text[:-20], lambda text: "[" * 100_000, lambda text: "[1]", lambda text: "9" * 5_000]
)
def test_text_that_is_no_answer_is_refused_with_the_remedy(damage):
    with pytest.raises(InputError, match=r"Pass what to_json\(\) returned|not version 1"):
        dpx.Explanation.from_json(damage(make().to_json()))


@pytest.mark.parametrize("part", ["values", "names", "guarantee", "cost"])
def test_stored_answers_without_a_part_are_refused(part):
    stored = {name: value for name, value in make().to_dict().items() if name != part}
    with pytest.raises(InputError, match=r"Pass what to_json\(\) returned"):
        dpx.Explanation.from_json(json.dumps(stored))


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_frames_of_any_kind(backend):
    frame = make().to_frame(backend)
    assert type(frame).__module__.startswith(backend)
    assert list(frame["name"].to_pylist() if backend == "pyarrow" else frame["name"]) == ["age", "<b>work</b>", "married"]


def test_slopes_are_not_handed_to_shap_as_if_they_added_up():
    with pytest.raises(InputError, match="has no contributions"):
        make().to_shap()


def test_pictures_are_returned_not_shown():
    figure = make().plot(top=2)
    assert isinstance(figure, Figure)
    assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == ["age", "<b>work</b>"]
    figure.savefig(io.BytesIO())
    mine = Figure().add_subplot()
    assert make(None).plot(ax=mine) is mine.get_figure()


def test_an_unknown_error_is_shown_as_unknown():
    axes = make(None).plot().axes[0]
    assert "error unknown" in axes.get_xlabel()
    assert all(bar.get_linestyle() == "--" and bar.get_facecolor()[3] < 0.5 for bar in axes.patches)
    assert "unknown" not in make().plot().axes[0].get_xlabel()
    assert make(None)._repr_html_().count("<td>unknown</td>") == 3
    console = Console(file=io.StringIO(), width=100)
    console.print(make(None))
    assert console.file.getvalue().count("unknown") == 3


def test_html_is_escaped_and_terminals_get_a_table():
    html = make()._repr_html_()
    assert "&lt;b&gt;work" in html
    assert "<b>work" not in html
    console = Console(file=io.StringIO(), width=100)
    console.print(make())
    assert "-0.5000" in console.file.getvalue()
    assert "Everything released so far" in console.file.getvalue()
    assert repr(make()).startswith("Explanation(<b>work</b> -0.500, age +0.200")


def test_answers_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        make().values[0] = 1
