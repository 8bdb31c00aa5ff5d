"""LIME, SHAP and MIM beside our own answers: known values on linear models, any domain, seeds that touch nothing global."""

import builtins
import re
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.errors import DataError, ParameterError
from dpexplain.evaluation.baselines import extras
from dpexplain.evaluation.baselines.inputs import column_spread, feature_codes, from_codes
from dpexplain.evaluation.baselines.lime import presence_lime

DOMAIN = dpx.Domain(
    [
        dpx.Numeric("age", 0, 100),
        dpx.Categorical("work", values=["a", "b", "c"]),
        dpx.Binary("married"),
        dpx.Numeric("hours", 0, 50),
    ]
)
SLOPES = np.array([0.4, 0.3, 0.0, -0.2, 0.25, -0.3])  # age, a, b, c, married, hours
RECORD = {"age": 70, "work": "a", "married": False, "hours": 10}


def linear(encoded):
    return encoded @ SLOPES - 0.1


def table(count=400, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "age": rng.uniform(0, 100, count),
        "work": rng.choice(["a", "b", "c"], count, p=[0.5, 0.3, 0.2]).astype(object),
        "married": rng.random(count) < 0.6,
        "hours": rng.uniform(0, 50, count),
    }


@pytest.fixture(scope="module")
def data():
    return dpx.PrivateData(table(), DOMAIN, model=lambda rows: linear(DOMAIN.encode(rows)))


def test_codes_and_encoded_rows_are_the_same_records():
    encoded = DOMAIN.encode({**table(50), "work": np.array(["a", "b", "c", None, "?"] * 10, dtype=object)})
    codes = feature_codes(encoded, DOMAIN.blocks)
    assert codes.shape == (50, 4)
    assert (from_codes(codes, DOMAIN.blocks) == encoded).all()


def test_means_and_deviations_are_those_of_the_rows(data):
    encoded = DOMAIN.encode(table())
    found = column_spread(data)
    assert found.mean == pytest.approx(encoded.mean(axis=0), abs=1e-6)
    assert found.deviation == pytest.approx(encoded.std(axis=0), abs=1e-6)


def test_lime_finds_the_slopes_of_a_linear_model(data):
    before = np.random.get_state()[1].copy()
    found = evaluation.lime(data, RECORD, samples=3000, seed=3)
    assert found[[0, 5]] == pytest.approx(SLOPES[[0, 5]], abs=0.05)  # a little flatter: LIME draws numbers beyond their bounds
    others = (0.3 * 0.0 + 0.2 * -0.2) / 0.5  # what the other categories are worth, as often as they occur
    assert found[1] == pytest.approx(0.3 - others, abs=0.03)
    assert (found[[2, 3]] == 0).all()
    assert found[4] == pytest.approx(SLOPES[4], abs=0.02)  # a slope, although the query is not married
    assert (evaluation.lime(data, RECORD, samples=3000, seed=3) == found).all()
    assert (evaluation.lime(data, RECORD, samples=3000, seed=4) != found).any()
    assert (np.random.get_state()[1] == before).all()


def test_lime_asks_about_levels_that_exist():
    steps = dpx.Domain([dpx.Ordinal("school", levels=["low", "middle", "high", "top"])])
    seen = set()

    def model(rows):
        seen.update(rows["school"])
        return np.array([{"low": -0.9, "middle": -0.3, "high": 0.3, "top": 0.9}[one] for one in rows["school"]])

    data = dpx.PrivateData({"school": ["low", "middle", "high", "top"] * 25}, steps, model=model)
    assert evaluation.lime(data, {"school": "high"}, samples=2000)[0] == pytest.approx(1.8, abs=0.2)
    assert seen == {"low", "middle", "high", "top"}


def test_lime_by_presence_finds_the_words_that_count():
    slopes = np.zeros(60)
    slopes[[3, 20, 40]] = 0.5, -0.25, 0.9
    point = np.zeros(60)
    point[[1, 3, 20, 33]] = 1.0
    found = presence_lime(lambda rows: rows @ slopes, point, np.zeros(60), 500, 25.0, seed=0)
    assert found[[1, 3, 20, 33]] == pytest.approx([0.0, 0.5, -0.25, 0.0], abs=0.02)
    assert (found[point == 0] == 0).all()  # also of the word that counts most, which is not in the text
    assert (presence_lime(lambda rows: rows @ slopes, np.zeros(60), np.zeros(60), 500, 25.0, seed=0) == 0).all()


def test_lime_takes_any_domain_by_form_and_baseline():
    pixels = dpx.PrivateData(
        np.random.default_rng(0).random((200, 9)),
        dpx.Domain.encoded(9),
        model=lambda rows: rows @ np.arange(9) / 36,
        output="value",
        bounds=(-1, 1),
    )
    found = evaluation.lime(pixels, np.linspace(0, 1, 9), form="presence", baseline=0.5, samples=600)
    assert found[[0, 1, 8]] == pytest.approx(np.array([0, 1, 8]) / 36, abs=0.02)
    assert found[4] == 0  # at the baseline: there is nothing to take away
    with pytest.raises(ParameterError, match="form"):
        evaluation.lime(pixels, np.full(9, 0.4), form="image")


@pytest.mark.parametrize("method", ["permutation", "kernel"])
def test_shap_is_exact_on_a_linear_model(data, method):
    before = np.random.get_state()[1].copy()
    background = DOMAIN.encode(table(20, seed=5))
    z = DOMAIN.encode_query(RECORD)
    found = evaluation.shap_values(data, RECORD, method=method, background=background, seed=1)
    parts = SLOPES * (z - background.mean(axis=0))
    assert found[[0, 4, 5]] == pytest.approx(parts[[0, 4, 5]], abs=1e-6)
    assert found[1] == pytest.approx(parts[1:4].sum(), abs=1e-6)  # the category moves as a whole
    assert (found[[2, 3]] == 0).all()
    assert found.sum() == pytest.approx(linear(z) - linear(background).mean(), abs=1e-6)
    assert (np.random.get_state()[1] == before).all()


def test_shap_draws_its_background_from_the_rows(data):
    first = evaluation.shap_values(data, RECORD, background=10, seed=1)
    assert (evaluation.shap_values(data, RECORD, background=10, seed=1) == first).all()
    assert (evaluation.shap_values(data, RECORD, background=10, seed=2) != first).any()
    everyone = evaluation.shap_values(data, RECORD, background=400, permutations=1)
    assert everyone.sum() == pytest.approx(linear(DOMAIN.encode_query(RECORD)) - linear(DOMAIN.encode(table())).mean(), abs=1e-5)


def test_tree_shap_sums_to_the_answer(data):
    from sklearn.tree import DecisionTreeClassifier

    encoded = DOMAIN.encode(table())
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(encoded, linear(encoded) > 0.2)
    found = evaluation.shap_values(data, RECORD, model=tree, target=True, method="tree", background=encoded[:50])
    p = tree.predict_proba(np.vstack([DOMAIN.encode_query(RECORD), encoded[:50]]))[:, 1]
    assert found.sum() == pytest.approx(2 * (p[0] - p[1:].mean()), abs=1e-6)
    assert (found[[2, 3]] == 0).all()
    with pytest.raises(DataError, match="tree classifier"):
        evaluation.shap_values(data, RECORD, method="tree", background=encoded[:5])
    with pytest.raises(ParameterError, match="method"):
        evaluation.shap_values(data, RECORD, method="deep", background=encoded[:5])


@pytest.mark.parametrize("label", [1.0, -1.0])
def test_mim_is_its_formula(label):
    rng = np.random.default_rng(1)
    X, y = rng.random((300, 4)).astype(np.float32).astype(float), rng.choice([-1.0, 1.0], 300)
    data, z, weight = dpx.PrivateData(X, dpx.Domain.encoded(4), labels=y), np.full(4, 0.3), dpx.weights.Gaussian(0.7)
    u = X - z
    alpha = weight(np.linalg.norm(u, axis=1))
    agreeing = sum(a * d for a, d, one in zip(alpha, u, y, strict=True) if one == label)
    found = evaluation.mim(data, z, weight=weight, label=label)
    assert found == pytest.approx(label * agreeing / 300)
    against = sum(a * d * (1 if one == label else -1) for a, d, one in zip(alpha, u, y, strict=True))
    assert evaluation.mim(data, z, weight=weight, others="against") == pytest.approx(label * against / 300)


def test_mim_asks_the_model_for_the_label_of_the_query(data):
    z = DOMAIN.encode_query(RECORD)
    sign = np.sign(linear(z))
    assert (evaluation.mim(data, RECORD) == evaluation.mim(data, z, label=sign)).all()
    assert (evaluation.mim(data, RECORD) != evaluation.mim(data, z, label=-sign)).any()
    labelled = dpx.PrivateData(table(), DOMAIN, labels=np.ones(400))
    assert (evaluation.mim(labelled, RECORD, model=linear_rows) == evaluation.mim(labelled, RECORD, label=sign)).all()
    assert (evaluation.mim(labelled, RECORD) == evaluation.mim(labelled, RECORD, others="against")).all()
    with pytest.raises(DataError, match="label= or model="):
        evaluation.mim(labelled, RECORD, others="ignored")
    with pytest.raises(ParameterError, match="others"):
        evaluation.mim(data, RECORD, others="nobody")


def linear_rows(encoded):
    return linear(encoded)


def test_one_call_compares_them_all(data):
    private = dpx.Explainer(data, dpx.Budget(1, 1e-6)).explain(RECORD)
    found = evaluation.baselines(data, RECORD, private={"private": private}, seed=1)
    assert list(found.methods) == ["private", "optimum", "lime", "shap", "mim"]
    assert found.names == ("age", "work", "married", "hours")
    scores = found.agreement()
    assert scores["optimum"].cosine == pytest.approx(1)
    assert scores["optimum"].top_k_overlap == scores["optimum"].sign_agreement == 1
    assert found.agreement("shap")["lime"].cosine > 0.98  # contributions of a linear model are the same either way
    assert found.matrix("cosine").shape == (5, 5)
    assert list(found.to_frame().columns) == ["name", *found.methods]
    console = Console(width=200, file=StringIO())
    console.print(found)
    printed = console.file.getvalue()
    assert "agreement with optimum" in printed
    assert "married" in printed
    legend = [text.get_text() for text in found.plot().axes[0].get_legend().get_texts()]
    assert legend[0] == "optimum"
    assert len(legend) == 5
    columns = evaluation.baselines(data, RECORD, methods=("optimum", "mim"), per="column")
    assert columns.names == DOMAIN.names
    assert (columns.methods["optimum"] == evaluation.optimum(data, RECORD)).all()


def test_wrong_questions_are_refused(data):
    with pytest.raises(ParameterError, match="unknown methods"):
        evaluation.baselines(data, RECORD, methods=("optimum", "lemon"))
    with pytest.raises(ParameterError, match="per must be"):
        evaluation.baselines(data, RECORD, methods=("optimum",), per="row")
    with pytest.raises(ParameterError, match="reference"):
        evaluation.Comparison(("a",), {"x": np.ones(1)}, "y")
    with pytest.raises(ParameterError, match="2 numbers"):
        evaluation.Comparison(("a", "b"), {"x": np.ones(3)}, "x")


def test_a_missing_package_says_how_to_get_it(data, monkeypatch):
    real = builtins.__import__

    def without_lime(name, *rest):
        if name.startswith("lime"):
            raise ImportError(name="lime")
        return real(name, *rest)

    monkeypatch.setattr(extras, "import_module", lambda name: without_lime(name))
    with pytest.raises(ImportError, match=r"pip install 'dpexplain\[baselines\]'"):
        evaluation.lime(data, RECORD)


def test_agreement_of_known_vectors():
    one = evaluation.agreement(np.array([3.0, -2.0, 1.0, 0.0]), np.array([3.0, 2.0, 0.0, 1.0]), k=2)
    assert one.cosine == pytest.approx((9 - 4) / 14)
    assert one.rank_correlation == pytest.approx(0.8)
    assert one.top_k_overlap == 1.0
    assert one.sign_agreement == 0.5
    assert evaluation.agreement(np.zeros(3), np.ones(3)).cosine == 0


def test_the_documented_example_runs(capsys):
    text = (Path(__file__).parents[2] / "docs/baselines.md").read_text(encoding="utf-8")
    exec(compile(re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1), "baselines.md", "exec"), {})
    assert "cosine to optimum" in capsys.readouterr().out
