"""The public interface, used as it is documented: the whole path from rows to answers in one go."""

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import dpexplain as dpx
from dpexplain import evaluation, weights
from dpexplain.privacy import gdp, paper

DOMAIN = dpx.Domain(
    [
        dpx.Numeric("age", 17, 97),
        dpx.Numeric("hours", 1, 99),
        dpx.Ordinal("education", levels=["none", "school", "college", "degree"]),
        dpx.Categorical("work", values=["private", "public", "self", "none"]),
        dpx.Binary("married"),
    ]
)
RECORD = {"age": 40, "hours": 45, "education": "degree", "work": "private", "married": True}


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(4)
    return pd.DataFrame(
        {
            "age": rng.integers(17, 97, 8000),
            "hours": rng.integers(1, 99, 8000),
            "education": rng.choice(["none", "school", "college", "degree"], 8000),
            "work": rng.choice(["private", "public", "self", "none"], 8000),
            "married": rng.random(8000) < 0.5,
        }
    )


@pytest.fixture(scope="module")
def data(frame):
    encoded = DOMAIN.encode(frame)
    forest = RandomForestClassifier(10, max_depth=5, random_state=0).fit(encoded, encoded[:, 0] + encoded[:, 2] > 1)
    return dpx.PrivateData(frame, DOMAIN, model=lambda rows: forest.predict_proba(DOMAIN.encode(rows)))


def test_domains_describe_themselves(frame):
    assert DOMAIN.width == 8
    assert DOMAIN.names[3] == "work=private"
    assert DOMAIN.encode(frame).shape == (8000, 8)
    assert dpx.Domain.from_dict(DOMAIN.to_dict()) == DOMAIN
    assert dpx.Domain.encoded(12).width == 12


def test_pay_once_explain_forever(data, frame, tmp_path):
    release = dpx.release(data, dpx.Budget(epsilon=1.0, delta=1e-6))
    explanation = release.explain(RECORD)
    assert explanation.cost.epsilon == 0
    assert explanation.guarantee.epsilon == pytest.approx(1.0, rel=1e-3)
    assert explanation.error.shape == explanation.values.shape == (8,)
    assert len(release.explain_many(frame[:50])) == 50
    release.save(tmp_path / "income.dpx")
    loaded = dpx.load(tmp_path / "income.dpx")
    assert (loaded.explain(RECORD).values == explanation.values).all()
    assert "income" not in release.publish(tmp_path / "income.html").read_text(encoding="utf-8")[:100]
    assert data.spent.epsilon >= explanation.guarantee.epsilon


def test_interactive_answers_are_paid_durably(data, tmp_path):
    ledger, budget = f"sqlite:///{tmp_path / 'income.ledger'}", dpx.Budget(epsilon=1.0, delta=1e-6)
    mechanism = dpx.Adaptive(epsilon=0.01, delta=1e-7, steps=300)
    explainer = dpx.Explainer(data, budget, mechanism=mechanism, ledger=ledger)
    explanation = explainer.explain(RECORD)
    assert explanation.names == DOMAIN.names
    assert len(explanation.top(5)) == 5
    c = explanation.contributions()
    assert c.names == DOMAIN.columns
    assert c.base + c.values.sum() == pytest.approx(c.answer)
    assert c.average == "the middle of all ranges"
    c.plot(), explanation.plot(), c.to_frame(), c.to_dict(), explanation.to_frame(), explanation.to_json()
    assert explanation.contributions(baseline=RECORD | {"age": 50}).values[1:].tolist() == [0.0] * 4
    if importlib.util.find_spec("shap"):
        pytest.importorskip("shap")  # its import warns
        assert explanation.to_shap().base_values == c.base
    assert 0 < explainer.spent.epsilon < explainer.remaining.epsilon <= 1
    free = dpx.NonInteractive(explainer.history).explain(RECORD)
    assert free.cost.epsilon == 0
    again = dpx.Explainer(data, budget, mechanism=mechanism, ledger=ledger)
    assert again.spent.mu == explainer.spent.mu
    assert len(again.history) == 1


@pytest.mark.slow
def test_streamed_labels_are_explained_by_any_model_over_the_records(frame, tmp_path, monkeypatch):
    """Rows that are scanned with a label have no model: contributions, SHAP, a summary and another model's release come from the records."""
    monkeypatch.chdir(tmp_path)
    Path("rows").mkdir()
    frame.assign(y=frame["age"] + 20 * frame["married"] > 60).to_parquet("rows/1.parquet")
    data = dpx.PrivateData.scan("rows/*.parquet", DOMAIN, label="y")
    release = dpx.release(data, dpx.Budget(epsilon=1.0, delta=1e-6), reference=4096)
    other_model = LogisticRegression().fit(DOMAIN.encode(frame), frame["married"])
    f = make_pipeline(FunctionTransformer(DOMAIN.encode), other_model)
    c = release.explain(RECORD).contributions()
    assert c.base + c.values.sum() == pytest.approx(c.answer)
    shap = release.shapley(RECORD, model=f)
    assert shap.base + shap.values.sum() == pytest.approx(shap.answer)
    assert len(release.shapley_many(frame[:20], model=f)) == 20
    assert release.summary(model=f).top(1)[0][0] == "married"
    second = release.relabel(f)
    third = release.refine(data, f, spend=dpx.Budget(0.05, 1e-6))
    for one in (second, third):
        assert one.explain(RECORD).contributions().top(1)[0][0] == "married"
    assert third.guarantee.epsilon > release.guarantee.epsilon


@pytest.mark.slow
def test_every_class_is_explained_for_the_price_of_one(frame):
    model = LogisticRegression().fit(DOMAIN.encode(frame), np.where(frame["age"] > 50, "approved", "refused"))
    f = make_pipeline(FunctionTransformer(DOMAIN.encode), model)
    data = dpx.PrivateData(frame, DOMAIN, model=f, target="all")
    release = dpx.release(data, dpx.Budget(1.0, 1e-6), reference=4096)
    assert release.explain(RECORD, target="approved").contributions().values[0] < 0


@pytest.mark.parametrize(
    "mechanism", [dpx.Basic(0.1, 1e-6, 20), dpx.Adaptive(0.1, 1e-6, steps=20), dpx.Enhanced(0.1, 1e-6, steps=20)]
)
def test_every_mechanism_answers(data, mechanism):
    explanation = dpx.Explainer(data, dpx.Budget(1.0, 1e-6), mechanism).explain(RECORD)
    assert np.linalg.norm(explanation.values) <= explanation.details["radius"] * (1 + 1e-9)
    assert explanation.cost.epsilon <= 0.1 + 1e-9


def test_privacy_functions_and_weights():
    assert gdp.epsilon(gdp.mu(0.1, 1e-6), 1e-6) == pytest.approx(0.1)
    assert gdp.delta(gdp.mu(0.1, 1e-6), 0.1) == pytest.approx(1e-6)
    assert weights.Stable(c=1.0).c == pytest.approx(1.0)
    assert weights.Gaussian(width=1.0).c == pytest.approx(1.52707, abs=1e-5)
    assert weights.Window(radius=0.5).c == pytest.approx(1.5)
    assert weights.Custom(lambda d: np.exp(-d), c=1.0).c == pytest.approx(1.0)
    assert paper.basic_sigma(1000, 0.1, 1e-6, 200) > paper.basic_sigma(2000, 0.1, 1e-6, 200)
    assert paper.adaptive_sigma(498_325, 0.01, 1e-7, 300) == pytest.approx(0.2718, abs=1e-4)


def test_evaluation_compares_with_the_optimum(data):
    best = evaluation.optimum(data, RECORD, weight=weights.Stable(1.0), radius=1.0)
    assert evaluation.score(best, data, RECORD, radius=1.0).relative_excess == pytest.approx(0, abs=1e-9)
    assert evaluation.score(best, data, RECORD, radius=1.0).top_k_overlap == 1
