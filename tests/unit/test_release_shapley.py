"""SHAP values over the reference records of a release."""

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.errors import DataError, ParameterError
from dpexplain.estimation.background import Background
from dpexplain.noise.seeded import SeededNoise

DOMAIN = dpx.Domain(
    [
        dpx.Numeric("age", 20, 80),
        dpx.Numeric("hours", 0, 60),
        dpx.Categorical("work", values=["private", "public", "none"]),
        dpx.Ordinal("level", levels=["low", "middle", "high"]),
        dpx.Binary("married"),
        dpx.Numeric("noise", 0, 1),
    ]
)
RECORD = {"age": 40, "hours": 50, "work": "public", "level": "high", "married": True, "noise": 0.9}


def people(m=3000, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 80, m)
    return {
        "age": age,
        "hours": np.clip(60 - np.abs(age - 45) + 8 * rng.standard_normal(m), 0, 60),
        "work": rng.choice(["private", "public", "none"], m, p=[0.6, 0.3, 0.1]),
        "level": rng.choice(["low", "middle", "high"], m),
        "married": rng.random(m) < age / 100,
        "noise": rng.random(m),
    }


def model(rows):
    """Ignores "noise"."""
    age, hours = np.asarray(rows["age"], dtype=float), np.asarray(rows["hours"], dtype=float)
    high = np.asarray(rows["level"]) == "high"
    return np.tanh(
        (age - 50) / 30 + (hours - 30) / 25 * high + 0.5 * np.asarray(rows["married"]) * (np.asarray(rows["work"]) == "public")
    )


@pytest.fixture(scope="module")
def release():
    data = dpx.PrivateData(people(), DOMAIN, model=model)
    return dpx.release(data, dpx.Budget(1.0, 1e-6), reference=2048, noise=SeededNoise(0))


def test_contributions_add_up_to_the_answer_minus_the_average(release):
    found = release.shapley(RECORD)
    alone = {name: np.array([value]) for name, value in RECORD.items()}
    assert found.answer == pytest.approx(float(model(alone)[0]), abs=1e-9)
    assert found.base + found.values.sum() == pytest.approx(found.answer, abs=1e-12)
    weights = release.reference.weights
    assert found.base == pytest.approx(weights @ release.reference.labels / weights.sum(), abs=2e-5)  # labels are stored to 2^-15
    assert found.names == DOMAIN.columns


def test_it_is_near_shap_over_the_true_rows(release):
    rows = dpx.Domain.encode(DOMAIN, people())
    z, f = DOMAIN.encode_query(RECORD), lambda encoded: model(DOMAIN.decode(encoded))
    from dpexplain.estimation.coalitions import record_values

    owner = np.repeat(np.arange(6), [b.stop - b.start for b in DOMAIN.blocks])
    each = record_values(lambda i, joined: f(np.where(joined[:, owner], z, rows[i])), f(rows), float(f(z[None])[0]), 6)
    truth, found = each.mean(axis=0), release.shapley(RECORD)
    assert np.linalg.norm(found.values - truth) < 0.15 * np.linalg.norm(truth)
    assert (np.abs(found.values - truth) <= 3.5 * found.error + 1e-12).all()


def test_a_feature_that_the_model_ignores_gets_zero_and_an_effect_too_rare_to_be_seen_for_its_bar(release):
    found = release.shapley(RECORD)
    assert found.values[5] == 0
    assert 0 < found.error[5] < 2 * np.abs(found.values).max() / found.details["records"]


def test_an_effect_that_few_records_have_is_within_its_bar():
    """One in two thousand: most subsamples have none of them, and their values alone would say that the feature has no effect."""
    rng = np.random.default_rng(0)
    covered, unseen = [], 0
    for _ in range(200):
        each = np.column_stack([rng.normal(size=500), 1.0 * (rng.random(500) < 1 / 2_000)])
        share, none = np.full(500, 1 / 500), np.zeros((0, 500))
        background = Background(np.arange(500), share, np.ones((500, 1)), np.zeros((0, 1)), none, 0.0, 1e9)
        unseen += not each[:, 1].any()
        value, error = background.average_by_feature(each, ignored=False)
        covered.append(abs(value[1] - 1 / 2_000) <= 2 * error[1])
        assert background.average_by_feature(each * [1, 0])[1][1] == 0
    assert unseen > 100
    assert np.mean(covered) > 0.95


def test_it_says_what_it_is_private_for_and_what_it_says_about_training_data(release):
    found = release.shapley(RECORD)
    assert found.guarantee == release.guarantee
    assert "trained on" in found.details["training_data"]
    assert found.details["quantity"] == "shapley"
    assert found.details["same_model"]


def test_many_records_are_the_single_ones(release):
    second = RECORD | {"age": 70, "work": "none"}
    many = release.shapley_many([RECORD, second], background=256)
    assert len(many) == 2
    np.testing.assert_array_equal(many[1].values, release.shapley(second, background=256).values)
    assert release.shapley_many([]).values.shape == (0, 6)


def test_another_model_is_asked_about_the_same_records(release):
    found = release.shapley(RECORD, lambda rows: np.asarray(rows["noise"]) - 0.5)
    assert not found.details["same_model"]
    np.testing.assert_allclose(found.values[:5], 0, atol=1e-12)
    assert abs(found.values[5] - (0.9 - 0.5)) < max(4 * found.error[5], 0.05)


def test_a_release_from_a_file_needs_the_model(release, tmp_path):
    release.save(tmp_path / "one.dpx")
    read = dpx.load(tmp_path / "one.dpx")
    with pytest.raises(ParameterError, match="model="):
        read.shapley(RECORD)
    np.testing.assert_allclose(read.shapley(RECORD, model).values, release.shapley(RECORD).values, atol=1e-9)


def test_a_release_without_reference_records_says_what_is_missing():
    data = dpx.PrivateData(people(300), DOMAIN, model=model)
    plain = dpx.release(data, dpx.Budget(1.0, 1e-6), noise=SeededNoise(0))
    with pytest.raises(ParameterError, match="reference=True"):
        plain.shapley(RECORD)


@pytest.mark.parametrize(
    "broken",
    [
        lambda rows: 1 / 0,
        lambda rows: np.full(len(rows["age"]), np.nan),
        lambda rows: np.zeros(3),
        "no model at all",
    ],
)
def test_a_model_that_raises_or_answers_nonsense_is_found_before_anything_is_said(release, broken):
    with pytest.raises(DataError):
        release.shapley(RECORD, broken)


@pytest.mark.parametrize("wrong", [3, 0, -1, True, 1.5, "many"])
def test_a_number_of_records_that_makes_no_sense_is_refused(release, wrong):
    with pytest.raises(ParameterError, match="records"):
        release.shapley(RECORD, background=wrong)


@pytest.fixture(scope="module")
def trained_release():
    pytest.importorskip("sklearn")
    import pandas as pd
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    frame = pd.DataFrame(people())
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["work", "level"]),
        (StandardScaler(), ["age", "hours"]),
        remainder="passthrough",
    )
    forest = RandomForestClassifier(10, max_depth=5, random_state=0)
    pipeline = make_pipeline(columns, forest).fit(frame, (model(frame) > 0).astype(int))
    data = dpx.PrivateData(frame, DOMAIN, model=pipeline)
    return pipeline, dpx.release(data, dpx.Budget(1.0, 1e-6), reference=1024, noise=SeededNoise(0))


@pytest.mark.slow
def test_a_pipeline_that_ends_in_a_forest_is_taken_apart_and_exact(trained_release):
    pipeline, release = trained_release
    exact = release.shapley(RECORD, background=256)
    asked = release.shapley(RECORD, lambda rows: pipeline.predict_proba(rows), background=256)
    assert exact.details["method"] == "trees, exact"
    assert asked.details["method"] == "paired orders"
    assert exact.answer == pytest.approx(asked.answer, abs=1e-9)
    np.testing.assert_allclose(exact.values, asked.values, atol=0.02)
    assert (np.abs(exact.values - asked.values) <= 4 * np.hypot(exact.error, asked.error)).all()


def test_a_model_whose_columns_mix_features_is_asked_instead():
    import pandas as pd
    from sklearn.decomposition import PCA
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.pipeline import make_pipeline

    frame = pd.DataFrame(people())[["age", "hours", "noise"]]
    mixing = make_pipeline(PCA(3), RandomForestRegressor(5, max_depth=4, random_state=0)).fit(frame, model(people()))
    wrapped = dpx.Domain([DOMAIN.features[0], DOMAIN.features[1], DOMAIN.features[5]])
    data = dpx.PrivateData(frame, wrapped, model=mixing)
    release = dpx.release(data, dpx.Budget(1.0, 1e-6), reference=1024, noise=SeededNoise(0))
    assert release.shapley({"age": 40, "hours": 50, "noise": 0.5}, background=128).details["method"] == "all coalitions"


@pytest.fixture(scope="module")
def summary(release):
    return release.summary(records=24, background=128)


def test_a_summary_has_mean_absolute_contributions_with_errors(summary):
    values = summary.contributions.values
    np.testing.assert_allclose(summary.importance, np.abs(values).mean(axis=0))
    assert (summary.error[:5] > 0).all()
    assert summary.importance[5] == 0 < summary.error[5] < summary.error[:5].max()  # ignored as far as the records show
    assert len(summary.top(3)) == 3
    np.testing.assert_allclose(summary.contributions.base + values.sum(axis=1), summary.contributions.answer)


def test_partial_dependence_is_the_average_answer_at_each_value(release, summary):
    curve = summary.dependence("married")
    assert curve.values == (False, True)
    frame, weights = release.reference.frame, release.reference.weights
    for value, answer, error in zip(curve.values, curve.answers, curve.error, strict=True):
        exact = weights @ model(frame.assign(married=value)) / weights.sum()
        assert abs(answer - exact) < max(4 * error, 1e-3)
    assert np.ptp(summary.dependence("noise").answers) < 1e-9
    ages = summary.dependence("age")
    assert 5 <= len(ages.values) <= 9
    assert (np.diff(ages.answers) > 0).all()


@pytest.mark.slow
def test_a_summary_is_drawn_and_written(summary):
    for kind in ("bar", "beeswarm"):
        assert summary.plot(kind).axes
    assert summary.plot("dependence", "work").axes
    assert summary.plot("dependence", "age").axes
    assert list(summary.to_frame()["name"]) == list(DOMAIN.columns)
    assert summary.to_dict()["dependences"][2]["values"] == ["none", "private", "public"]
    assert "Summary of 6 features" in repr(summary)
    with pytest.raises(ParameterError, match="kind"):
        summary.plot("pie")
    with pytest.raises(ParameterError, match="no feature"):
        summary.plot("dependence", "nothing")


def test_a_summary_of_too_few_records_is_refused(release):
    with pytest.raises(ParameterError, match="records"):
        release.summary(records=1)


class Changing:
    """Answers otherwise after it was trained anew."""

    sign = 1.0

    def __call__(self, rows):
        return self.sign * model(rows)


def test_a_model_is_prepared_once_and_anew_when_it_answers_otherwise(release, monkeypatch):
    from dpexplain.release import reference_shapley

    calls, plain = [], reference_shapley.prepare
    monkeypatch.setattr(reference_shapley, "prepare", lambda *words: calls.append(1) or plain(*words))
    asked = Changing()
    first, again = release.shapley(RECORD, asked), release.shapley(RECORD, asked)
    np.testing.assert_array_equal(first.values, again.values)
    assert len(calls) == 1
    asked.sign = -1.0
    np.testing.assert_allclose(release.shapley(RECORD, asked).values, -first.values, atol=0.01)
    assert len(calls) == 2
    release.shapley(RECORD, asked, background=128)
    assert len(calls) == 3


class Classifier:
    """Probabilities of two classes by age."""

    classes_ = np.array(["refused", "approved"])

    def predict_proba(self, rows):
        p = np.clip((np.asarray(rows["age"], dtype=float) - 20) / 60, 0, 1)
        return np.column_stack([1 - p, p])


def approval(rows):
    return Classifier().predict_proba(rows)[:, 1]


@pytest.fixture(scope="module")
def approvals():
    data = dpx.PrivateData(people(), DOMAIN, model=Classifier(), target="approved")
    return dpx.release(data, dpx.Budget(1.0, 1e-6), reference=2048, noise=SeededNoise(0))


def test_a_callable_is_read_in_the_units_of_the_release_before_and_after_saving(approvals, tmp_path):
    approvals.save(tmp_path / "approvals.dpx")
    own = approvals.shapley(RECORD)
    for release in (approvals, dpx.load(tmp_path / "approvals.dpx")):
        found = release.shapley(RECORD, model=approval)
        assert found.answer == pytest.approx(1 / 3)
        assert found.values == pytest.approx(own.values, abs=1e-9)


@pytest.mark.parametrize("broken", [lambda rows: 2 * approval(rows) - 1, lambda rows: 40_000 * approval(rows)])
def test_answers_outside_the_range_of_probabilities_are_found_before_anything_is_said(approvals, broken):
    for ask in (lambda: approvals.shapley(RECORD, model=broken), lambda: approvals.relabel(broken)):
        with pytest.raises(DataError, match="outside 0 to 1, the range of probabilities"):
            ask()


def test_values_outside_bounds_are_clipped_unless_all_of_them_are():
    options = {"model": lambda rows: np.asarray(rows["age"], dtype=float), "output": "value", "bounds": (23, 80)}
    release = dpx.release(
        dpx.PrivateData(people(), DOMAIN, **options), dpx.Budget(1.0, 1e-6), reference=2048, noise=SeededNoise(0)
    )
    assert release.shapley(RECORD | {"age": 20}).answer == 23
    with pytest.raises(DataError, match="outside 23 to 80, the range of bounds="):
        release.shapley(RECORD, model=lambda rows: 1_000 * np.asarray(rows["age"], dtype=float))
