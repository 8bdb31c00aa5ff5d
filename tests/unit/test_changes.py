"""What would change an answer, from the record's own values, on every surface."""

import json
from io import StringIO

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.answers.changes import changes_of
from dpexplain.errors import InputError
from dpexplain.noise.seeded import SeededNoise

DOMAIN = dpx.Domain(
    [
        dpx.Numeric("age", 17, 97, title="Age", unit="years"),
        dpx.Ordinal("school", levels=["none", "some", "all"]),
        dpx.Categorical("trade", values=["sales", "craft", "care"], optional=True),
        dpx.Binary("married"),
        dpx.Binary("sex", values=("F", "M")),
        dpx.Date("since", "2020-01-01", "2025-01-01"),
    ]
)
SLOPES, ERRORS = np.array([1.0, 0.5, 0.3, -0.2, 0.1, 0.4, -0.6, 0.05]), np.arange(1.0, 9.0) / 100
RECORD = {"age": 40, "school": "some", "trade": "craft", "married": True, "sex": "M", "since": "2021-05-01"}


def changes_by_text(record):
    return {change.text: change for change in changes_of(DOMAIN, DOMAIN.encode_query(record), SLOPES, ERRORS)}


def test_categories_change_from_the_records_own_value_and_numbers_through_their_range():
    changes = changes_by_text(RECORD)
    values = {text: round(one.value, 9) for text, one in changes.items()}
    assert values == {
        "Age (years): 17 → 97": 1.0,
        "sex: M → F": 0.6,
        "trade: craft → sales": 0.5,
        "school: none → all": 0.5,
        "married: yes → no": -0.4,
        "trade: craft → care": 0.3,
        "since: 2020-01-01 → 2025-01-01": 0.05,
    }
    assert changes["trade: craft → sales"].error == pytest.approx(0.03 + 0.04)  # at most the sum of both
    assert changes["married: yes → no"].error == pytest.approx(0.06)


def test_other_values_of_the_record_are_other_changes():
    changes = changes_by_text(RECORD | {"married": False, "sex": "F", "trade": None})
    assert changes["married: no → yes"].value == pytest.approx(0.4)
    assert changes["sex: F → M"].value == pytest.approx(-0.6)
    assert changes["trade: none of them → craft"].value == pytest.approx(-0.2)


def test_words_are_added_or_taken_out():
    domain = dpx.TextDomain(["good", "bad"])
    one, other = changes_of(domain, np.array([1.0, 0.0]), np.array([0.5, -0.8]), None)
    assert (one.text, one.value, one.error) == ("bad: added", -0.8, None)
    assert (other.text, other.value) == ("good: taken out", -0.5)


@pytest.fixture(scope="module")
def explanation():
    domain = dpx.Domain([dpx.Numeric("age", 17, 97), dpx.Categorical("trade", values=["sales", "craft", "care"])])
    rng = np.random.default_rng(0)
    table = {"age": rng.uniform(17, 97, 3000), "trade": rng.choice(["sales", "craft", "care"], 3000)}
    answers = 0.2 + 0.005 * (table["age"] - 17) + 0.3 * (table["trade"] == "craft")
    data = dpx.PrivateData(table, domain, labels=answers, output="probability")
    release = dpx.release(data, dpx.Budget(1, 1e-6), noise=SeededNoise(1))
    return release.explain({"age": 40, "trade": "sales"})


def test_all_surfaces_state_changes_in_the_answers_units(explanation):
    from rich.console import Console

    largest = explanation.changes()[0]
    assert (largest.name, largest.before, largest.after) == ("age", "17", "97")
    assert largest.value == pytest.approx(0.4, abs=0.15)
    craft = next(one for one in explanation.changes() if one.after == "craft")
    assert craft.before == "sales"
    assert craft.value == pytest.approx(0.3, abs=0.1)
    stated = json.loads(explanation.to_json())["changes"]
    assert stated == [one.to_dict() for one in explanation.changes()]
    console = Console(width=120, record=True, file=StringIO())
    console.print(explanation)
    assert "trade: sales → craft" in console.export_text()
    assert "trade: sales → craft" in explanation._repr_html_()
    figure = explanation.plot(kind="slopes")
    assert "trade: sales → craft" in [label.get_text() for label in figure.axes[0].get_yticklabels()]


def test_an_explanation_from_a_file_does_not_know_the_domain(explanation):
    again = dpx.Explanation.from_json(explanation.to_json())
    with pytest.raises(InputError, match="Ask the release"):
        again.changes()
    assert again.to_dict()["changes"] is None
    assert again._repr_html_()
