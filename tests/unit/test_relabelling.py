"""Other models, and other classes, on the records of one release: free, or with label moments bought for them."""

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.errors import BudgetExhausted, DataError, ParameterError, RequestIdInUse
from dpexplain.noise.seeded import SeededNoise

DOMAIN = dpx.Domain([*(dpx.Numeric(f"x{i}", 0, 1) for i in range(4)), dpx.Categorical("code", values=list("abc"))])
BUDGET = dpx.Budget(1.0, 1e-6)


def people(m=6000, seed=0):
    rng = np.random.default_rng(seed)
    hidden = rng.random(m)
    numbers = {f"x{i}": np.clip(hidden * (i % 2) + 0.5 * rng.random(m), 0, 1) for i in range(4)}
    return numbers | {"code": rng.choice(list("abc"), m)}


def first(rows):
    return np.tanh(3 * np.asarray(rows["x0"]) - 1.5)


def second(rows):
    return np.tanh(2 * np.asarray(rows["x1"]) - 2 * np.asarray(rows["x3"]) + (np.asarray(rows["code"]) == "a"))


RECORD = {"x0": 0.4, "x1": 0.6, "x2": 0.2, "x3": 0.7, "code": "a"}


@pytest.fixture(scope="module")
def data():
    return dpx.PrivateData(people(), DOMAIN, model=first)


@pytest.fixture(scope="module")
def release(data):
    return dpx.release(data, BUDGET, reference=4096, noise=SeededNoise(0))


@pytest.fixture(scope="module")
def truth():
    other = dpx.PrivateData(people(), DOMAIN, model=second)
    return np.array([evaluation.optimum(other, record) for record in (RECORD, RECORD | {"code": "b"})])


def error_of(made, truth):
    found = made.explain_many([RECORD, RECORD | {"code": "b"}])
    return np.linalg.norm(found.values - truth) / np.linalg.norm(truth), np.abs(found.values - truth) / found.error


def test_another_model_is_explained_from_the_same_records_for_nothing(release, truth):
    made = release.relabel(second)
    assert made.guarantee.mu == release.guarantee.mu
    error, ratios = error_of(made, truth)
    assert error < 0.12
    assert (ratios < 4).mean() > 0.8
    assert error_of(release, truth)[0] > 0.6  # the first model's explanation is not the second's


def test_buying_label_moments_sharpens_it_and_states_the_total(data, release, truth):
    spend = dpx.Budget(0.2, 1e-6)
    made = release.refine(data, second, spend=spend, noise=SeededNoise(1))
    assert made.guarantee.mu == pytest.approx(np.hypot(release.guarantee.mu, spend.mu), rel=1e-6)
    assert made.guarantee.epsilon > release.guarantee.epsilon
    assert error_of(made, truth)[0] < 0.12
    assert data.spent.mu >= made.guarantee.mu * (1 - 1e-9)


def test_rows_registered_with_the_new_model_are_not_asked_again(release, truth):
    asked = []

    def counted_model(rows):
        asked.append(len(rows["x0"]))
        return second(rows)

    other = dpx.PrivateData(people(), DOMAIN, model=counted_model)
    asked.clear()
    release.refine(other, counted_model, spend=dpx.Budget(0.2, 1e-6), noise=SeededNoise(1))
    assert 6000 not in asked


def test_asking_again_with_the_same_id_is_free(data, release, tmp_path):
    ledger = f"sqlite:///{tmp_path}/x.ledger"
    paying = dict(spend=dpx.Budget(0.2, 1e-6), budget=dpx.Budget(0.25, 1e-6), ledger=ledger)
    made = release.refine(data, second, request_id="v2", **paying)
    again = release.refine(data, second, request_id="v2", **paying)
    np.testing.assert_array_equal(made.explain(RECORD).values, again.explain(RECORD).values)
    with pytest.raises(BudgetExhausted):
        release.refine(data, second, request_id="v3", **paying)
    with pytest.raises(RequestIdInUse):  # not the first model's moments in another's name
        release.refine(data, lambda rows: -second(rows), request_id="v2", **paying)


def test_a_relabelled_release_is_a_release(release, tmp_path):
    made = release.relabel(second)
    made.save(tmp_path / "v2.dpx")
    read = dpx.load(tmp_path / "v2.dpx")
    np.testing.assert_allclose(read.explain(RECORD).values, made.explain(RECORD).values, atol=1e-9)
    assert made.shapley(RECORD).details["same_model"]


def test_the_same_model_again_changes_little(release):
    made, ours = release.relabel(None).explain(RECORD), release.explain(RECORD)
    assert (np.abs(made.values - ours.values) <= 3 * np.hypot(made.error, ours.error)).all()


def test_mistakes_are_found_before_anything_is_spent(data, release):
    spent = data.spent.mu
    with pytest.raises(DataError):
        release.refine(data, lambda rows: 1 / 0, spend=dpx.Budget(0.1, 1e-6))
    with pytest.raises(DataError):
        release.relabel(lambda rows: np.full(len(rows["x0"]), np.nan))
    other = dpx.PrivateData({"y": np.zeros(50)}, dpx.Domain([dpx.Numeric("y", 0, 1)]), labels=np.zeros(50))
    with pytest.raises(ParameterError, match="a different domain"):
        release.refine(other, second, spend=dpx.Budget(0.1, 1e-6))
    strict = dpx.PrivateData(people(100), DOMAIN, model=second, relation="replace-one")
    with pytest.raises(ParameterError, match="relation"):
        release.refine(strict, second, spend=dpx.Budget(0.1, 1e-6))
    plain = dpx.release(dpx.PrivateData(people(200), DOMAIN, model=first), BUDGET, noise=SeededNoise(0))
    with pytest.raises(ParameterError, match="reference=True"):
        plain.relabel(second)
    assert data.spent.mu == spent


def test_another_class_is_another_label_of_the_same_records():
    def classes(rows):
        scores = np.column_stack([np.asarray(rows["x0"]), np.asarray(rows["x1"]), np.full(len(rows["x0"]), 0.5)])
        return np.exp(4 * scores) / np.exp(4 * scores).sum(axis=1, keepdims=True)

    data = dpx.PrivateData(people(), DOMAIN, model=classes, target=0, output="probability")
    release = dpx.release(data, BUDGET, reference=2048, noise=SeededNoise(0))
    each = [release.shapley(RECORD, target=k) for k in range(3)]
    probabilities = classes({name: np.array([value]) for name, value in RECORD.items()})[0]
    scale = each[0].scale
    answers = [one.answer for one in each]
    np.testing.assert_allclose(answers, probabilities if scale.kind == "probability" else 2 * probabilities - 1, atol=1e-6)
    np.testing.assert_allclose(np.sum([one.values for one in each], axis=0), 0, atol=0.02)
    slopes = release.relabel(None, target=1).explain(RECORD)
    assert slopes.values[1] > 0 > slopes.values[0]


class Classifier:
    """Three classes by name."""

    classes_ = np.array(["low", "middle", "high"])

    def predict_proba(self, rows):
        scores = np.column_stack([1 - np.asarray(rows["x0"]), np.full(len(rows["x0"]), 0.5), np.asarray(rows["x1"])])
        return np.exp(4 * scores) / np.exp(4 * scores).sum(axis=1, keepdims=True)


@pytest.fixture(scope="module")
def classes():
    data = dpx.PrivateData(people(), DOMAIN, model=Classifier(), target="all")
    return data, dpx.release(data, BUDGET, reference=2048, noise=SeededNoise(0))


@pytest.mark.slow
def test_all_classes_are_explained_for_the_price_of_one(classes):
    data, release = classes
    assert data.targets == ("low", "middle", "high")
    assert release.targets == ("low", "middle", "high")
    assert release.guarantee.epsilon <= 1.0
    assert data.spent.epsilon <= 1.0
    low, high = release.explain(RECORD, target="low"), release.explain(RECORD, target="high")
    assert low.targets == release.targets
    assert low.values[0] < -0.2
    assert high.values[1] > 0.2
    for name, found in (("low", low), ("high", high)):
        own = dpx.PrivateData(people(), DOMAIN, model=Classifier(), target=name)
        truth = evaluation.optimum(own, RECORD)
        assert np.linalg.norm(found.values - truth) < 0.2 * np.linalg.norm(truth)
    with pytest.raises(ParameterError, match="no target 'none'"):
        release.explain(RECORD, target="none")


def test_a_file_keeps_all_classes(classes, tmp_path):
    _, release = classes
    release.save(tmp_path / "all.dpx")
    read = dpx.load(tmp_path / "all.dpx")
    assert read.targets == release.targets
    for name in release.targets:
        np.testing.assert_allclose(
            read.explain(RECORD, target=name).values, release.explain(RECORD, target=name).values, atol=1e-9
        )


def test_all_classes_need_names_and_records():
    with pytest.raises(DataError, match="classes_"):
        dpx.PrivateData(people(50), DOMAIN, model=first, target="all")
    data = dpx.PrivateData(people(200), DOMAIN, model=Classifier(), target="all")
    with pytest.raises(ParameterError, match="reference=True"):
        dpx.release(data, BUDGET)
    with pytest.raises(ParameterError, match="Register them with target="):
        dpx.Explainer(data, BUDGET)
    assert data.spent.mu == 0


@pytest.mark.slow
def test_several_models_share_a_file_and_state_the_total(data, release, tmp_path):
    spend = dpx.Budget(0.2, 1e-6)
    v2 = release.refine(data, second, spend=spend, noise=SeededNoise(1))
    v3 = release.refine(data, lambda rows: -second(rows), spend=spend, noise=SeededNoise(2))
    both = release.with_model("v2", v2).with_model("v3", v3).with_model("again", release.relabel(second))
    expected = np.sqrt(release.guarantee.mu**2 + 2 * spend.mu**2)
    assert both.guarantee.mu == pytest.approx(expected, rel=1e-6)
    both.save(tmp_path / "models.dpx")
    read = dpx.load(tmp_path / "models.dpx")
    assert read.targets == ("v2", "v3", "again")
    assert read.guarantee.mu == both.guarantee.mu
    np.testing.assert_allclose(read.explain(RECORD, target="v2").values, v2.explain(RECORD).values, atol=1e-9)
    assert read.with_model("v4", v3).guarantee.mu == pytest.approx(np.sqrt(release.guarantee.mu**2 + 3 * spend.mu**2), rel=1e-6)
    assert (tmp_path / "models.dpx").stat().st_size < 4 * _size(release, tmp_path)
    with pytest.raises(ParameterError, match="different records"):
        release.with_model(
            "x", dpx.release(dpx.PrivateData(people(), DOMAIN, model=second), BUDGET, reference=2048, noise=SeededNoise(3))
        )


def _size(release, folder):
    release.save(folder / "one.dpx")
    return (folder / "one.dpx").stat().st_size


@pytest.fixture(scope="module")
def labelled_release():
    """Of rows with labels and no model: any model can label its records."""
    data = dpx.PrivateData(people(), DOMAIN, labels=np.sign(first(people())))
    return data, dpx.release(data, dpx.Budget(0.2, 1e-6), reference=4096, noise=SeededNoise(0))


def test_rows_that_were_labelled_without_a_model_are_refined_for_one(labelled_release, truth):
    data, release = labelled_release
    made = release.refine(data, second, spend=dpx.Budget(0.5, 1e-6), noise=SeededNoise(1))
    error, ratios = error_of(made, truth)
    assert error < 0.25
    assert (ratios < 3).mean() > 0.9


def additive(rows):
    return 0.6 * np.asarray(rows["x1"]) + 0.3 * (np.asarray(rows["code"]) == "a")


def test_records_without_labels_know_what_other_noise_would_make_of_them(tmp_path):
    """SHAP values over them are within two errors in 90 % of draws, whichever model is asked, and a file keeps these errors."""
    rows, found = people(), []
    exact = [0.6 * (RECORD["x1"] - rows["x1"].mean()), 0.3 * (1 - np.mean(rows["code"] == "a"))]
    for seed in range(10):
        data = dpx.PrivateData(rows, DOMAIN, labels=np.sign(first(rows)))
        release = dpx.release(data, dpx.Budget(0.1, 1e-6), reference=4096, noise=SeededNoise(seed))
        added = release.shapley(RECORD, model=additive)
        found.append(np.abs(added.values[[1, 4]] - exact) <= 2 * added.error[[1, 4]])
    assert np.mean(found) >= 0.9
    release.save(tmp_path / "labelled.dpx")
    np.testing.assert_allclose(dpx.load(tmp_path / "labelled.dpx").shapley(RECORD, model=additive).error, added.error, rtol=1e-6)
