"""What a service sends of many answers at once is what each of them says of itself, to the last bit."""

import json
from dataclasses import replace

import numpy as np
import orjson
import pytest

import dpexplain as dpx
from dpexplain.errors import ParameterError
from dpexplain.noise.seeded import SeededNoise
from dpexplain.release.answer_dicts import AnswerTemplate
from dpexplain.service.release_answers import ReleaseAnswers

DOMAIN = dpx.Domain(
    [
        dpx.Numeric("age", 17, 97, title="Age", unit="years", missing=40),
        dpx.Ordinal("school", levels=["none", "some", "all"]),
        dpx.Categorical("trade", values=["sales", "craft", "care"], optional=True),
        dpx.Binary("married"),
        dpx.Date("since", "2020-01-01", "2025-01-01"),
    ]
)
RECORDS = [
    {"age": 40, "school": "some", "trade": "craft", "married": True, "since": "2021-05-01"},
    {"age": None, "school": "none", "trade": None, "married": False, "since": "2024-12-31"},
    {"age": 97, "school": "all", "trade": "care", "married": "no", "since": "2020-01-01"},
]
MORE = {"targets": ["a", "b"]}


def table():
    rng = np.random.default_rng(0)
    return {
        "age": rng.uniform(17, 97, 2000),
        "school": rng.choice(["none", "some", "all"], 2000),
        "trade": rng.choice(["sales", "craft", "care"], 2000),
        "married": rng.random(2000) < 0.5,
        "since": rng.choice(["2020-01-01", "2022-06-01"], 2000),
    }


def table_release(labels, **options):
    data = dpx.PrivateData(table(), DOMAIN, labels=labels(table()), **options)
    return dpx.release(data, dpx.Budget(1, 1e-6), noise=SeededNoise(1))


def text_release():
    domain, rng = dpx.TextDomain(["good", "bad", "plain"]), np.random.default_rng(0)
    texts = [" ".join(word for word in domain.names if rng.random() < 0.5) for _ in range(2000)]
    labels = np.array([1.0 if "good" in one else -1.0 for one in texts])
    return dpx.release(dpx.PrivateData(texts, domain, labels=labels), dpx.Budget(1, 1e-6), noise=SeededNoise(1))


def image_release():
    rows = np.random.default_rng(0).random((2000, 2, 2))
    data = dpx.PrivateData(rows, dpx.ImageDomain((2, 2), bounds=(0, 1)), labels=np.where(rows[:, 0, 0] > 0.5, 1.0, -1.0))
    return dpx.release(data, dpx.Budget(1, 1e-6), noise=SeededNoise(1))


def yes_no(rows):
    return np.where(rows["married"], 1.0, -1.0)


def income(rows):
    return 3e4 + 400 * rows["age"]


MADE = {
    "labels": lambda: (table_release(yes_no), RECORDS),
    "values": lambda: (table_release(income, output="value", bounds=(0, 1e5)), RECORDS),
    "texts": lambda: (text_release(), ["good", "bad plain", "nothing"]),
    "images": lambda: (image_release(), list(np.random.default_rng(1).random((3, 2, 2)))),
}


@pytest.fixture(scope="module", params=MADE)
def case(request):
    return MADE[request.param]()


def said(answers, ids, more):
    return [answers.explanation_at(i, None, more, name).to_dict() for i, name in enumerate(ids)]


@pytest.mark.parametrize("plane", [None, "paper"])
@pytest.mark.parametrize("count", [1, 3])
def test_answers_of_a_batch_are_written_as_one_by_one(case, plane, count):
    release, records = case
    first = release.explain_many(records[-1:], plane=plane)
    answers, ids = release.explain_many(records[:count], plane=plane), [f"q{i}" for i in range(count)]
    for more in ({}, MORE):
        filled, expected = AnswerTemplate(first).fill(answers, ids, more), said(answers, ids, more)
        assert filled == expected
        assert list(filled[0]) == list(expected[0])
        assert orjson.dumps(filled) == orjson.dumps(expected)
        json.dumps(filled, allow_nan=False)


def test_unknown_errors_of_one_answer_are_stated_for_that_one():
    release = table_release(yes_no)
    answers = release.explain_many(RECORDS)
    errors = answers.found.added_errors.copy()
    errors[1, 0] = np.nan
    answers = replace(answers, found=replace(answers.found, added_errors=errors))
    filled = AnswerTemplate(release.explain_many(RECORDS[:1])).fill(answers, ["a", "b", "c"], {})
    assert filled == said(answers, ["a", "b", "c"], {})
    assert [one["contributions"]["error"] is None for one in filled] == [False, True, False]


def test_numbers_that_do_not_add_up_are_not_sent():
    release = table_release(yes_no)
    answers = release.explain_many(RECORDS)
    wrong = replace(answers, found=replace(answers.found, base=answers.found.base + 0.01))
    with pytest.raises(ParameterError, match="do not add up"):
        AnswerTemplate(answers).fill(wrong, ["a", "b", "c"], {})


class Grades:
    classes_ = np.array(["no", "perhaps", "yes"])

    def predict_proba(self, table):
        age, married = np.asarray(table["age"], dtype=float) / 97, np.asarray(table["married"], dtype=float)
        odds = np.exp(np.stack([age, married, 1 - married * age], axis=1))
        return odds / odds.sum(axis=1, keepdims=True)


def test_each_target_has_its_own_statement():
    domain = dpx.Domain([dpx.Numeric("age", 17, 97), dpx.Binary("married")])
    rows = {name: table()[name][:500] for name in ("age", "married")}
    data = dpx.PrivateData(rows, domain, model=Grades(), target="all")
    release = dpx.release(data, dpx.Budget(1, 1e-6), reference=1024, noise=SeededNoise(1))
    one, other = ({"age": 40, "married": True}, {"age": 60, "married": False})
    asked = [(one, "a", "no"), (other, "b", "yes"), (other, "c", "no"), (one, "d", "nobody")]
    *found, unknown = ReleaseAnswers(release).answer_each(asked)
    assert isinstance(unknown, ParameterError)
    for composed, (record, name, target) in zip(found, asked, strict=False):
        alone, answer = release.explain(record, target=target), composed.to_dict()
        assert composed.cost == alone.cost
        assert answer["request_id"] == name
        assert answer["values"] == pytest.approx(alone.values, rel=1e-9, abs=1e-12)
        assert answer["contributions"]["answer"] == pytest.approx(alone.contributions().answer)
        assert answer["details"].keys() == alone.details.keys()
        assert answer["details"]["fingerprint"] == alone.details["fingerprint"]
