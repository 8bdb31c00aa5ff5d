"""LIME from a release: planes of a model's answers at records whose features are drawn independently."""

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.errors import ParameterError
from dpexplain.estimation import calibrate
from dpexplain.estimation.independent_planes import independent_codes
from dpexplain.noise.seeded import SeededNoise

DOMAIN = dpx.Domain(
    [dpx.Numeric("debt", 0, 1), dpx.Numeric("late", 0, 1), dpx.Categorical("home", values=["own", "rent", "none"])]
)
RECORD = {"debt": 0.8, "late": 0.3, "home": "rent"}


def rows(count=4000, seed=0):
    """`late` goes with `debt`."""
    rng = np.random.default_rng(seed)
    debt = rng.beta(2, 3, count)
    late = np.clip(debt + 0.08 * rng.standard_normal(count), 0, 1)
    return {"debt": debt, "late": late, "home": rng.choice(["own", "rent", "none"], count, p=[0.6, 0.3, 0.1])}


def model(table):
    """Probabilities that do not depend on `late`, and on `debt` by a curve."""
    return np.clip(np.asarray(table["debt"], dtype=float) ** 3 + 0.1 * (np.asarray(table["home"]) == "rent"), 0, 1)


@pytest.fixture(scope="module")
def release():
    data = dpx.PrivateData(rows(), DOMAIN, model=model, output="probability")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calibrate, "replicates", lambda _: 2)
        return dpx.release(data, dpx.Budget(1.0, 1e-6), noise=SeededNoise(1))


def test_a_feature_that_the_model_ignores_has_no_slope_even_where_it_goes_with_another(release):
    found = release.lime(RECORD)
    debt, late = found.values[:2]
    assert abs(late) <= max(2 * found.error[1], 0.02)
    assert debt > 0.5
    assert found.details["columns"] == "independent"
    added = found.contributions()
    assert added.base + added.values.sum() == pytest.approx(added.answer)
    assert added.details["columns"] == "independent"
    assert added.answer == pytest.approx(float(model({k: [v] for k, v in RECORD.items()})[0]), abs=0.15)


def test_slopes_are_those_of_many_random_points_within_their_errors(release):
    rng = np.random.default_rng(3)
    table = rows(60_000, seed=7)
    table = {name: rng.permutation(column) for name, column in table.items()}
    X, y, z = DOMAIN.encode(table), 2 * model(table) - 1, DOMAIN.encode_query(RECORD)
    s = release.weight(np.linalg.norm(X - z, axis=1))
    design = np.column_stack([np.ones(len(X)), X[:, :2], X[:, 3:] @ np.eye(2)]) * np.sqrt(s)[:, None]
    exact = np.linalg.lstsq(design, y * np.sqrt(s), rcond=None)[0]
    found = release.lime(RECORD)
    assert found.values[:2] == pytest.approx(exact[1:3], abs=0.05)
    assert found.values[3] - found.values[2] == pytest.approx(exact[3], abs=0.05)


def test_many_records_and_other_models(release):
    many = release.lime_many([RECORD, RECORD | {"home": "own"}])
    assert many[0].values == pytest.approx(release.lime(RECORD).values)
    assert many[1].details["columns"] == "independent"
    assert len(release.lime_many([])) == 0
    other = release.lime(RECORD, model=lambda table: np.full(len(table["debt"]), 0.25))
    assert np.abs(other.values).max() < 1e-3
    assert other.contributions().answer == pytest.approx(0.25, abs=1e-3)


def test_margins_are_those_of_the_weighted_records_and_features_are_independent():
    rng = np.random.default_rng(0)
    codes = np.array([rng.integers(0, 3, 500)] * 2)
    weights = 1.0 + (codes[0] == 2)
    found = independent_codes(codes, weights, 1 << 12)
    for a in range(2):
        shares = np.bincount(codes[a], weights) / weights.sum()
        assert np.bincount(found[a]) / found.shape[1] == pytest.approx(shares, abs=2e-3)
    assert abs(np.corrcoef(found)[0, 1]) < 0.02


def test_a_model_and_a_table_are_needed(release, tmp_path):
    release.save(tmp_path / "x.dpx")
    with pytest.raises(ParameterError, match="Pass model="):
        dpx.load(tmp_path / "x.dpx").lime(RECORD)
    assert dpx.load(tmp_path / "x.dpx").lime(RECORD, model=model).values == pytest.approx(release.lime(RECORD).values, abs=1e-6)
    with pytest.raises(ParameterError, match="weight"):
        release.lime(RECORD, weight="near")
    texts = dpx.PrivateData(["good", "bad"] * 200, dpx.TextDomain(["good", "bad"]), labels=[1.0, -1.0] * 200)
    with pytest.raises(ParameterError, match="releases of tables"):
        dpx.release(texts, dpx.Budget(1, 1e-6)).lime("good", model=lambda t: np.ones(len(t)))
