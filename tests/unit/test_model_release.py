"""One line for a fitted estimator, and a release in an MLflow run."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dpexplain as dpx
from dpexplain.errors import DataError, ParameterError, Undeclared
from dpexplain.noise.seeded import SeededNoise
from dpexplain.release.mlflow import log_release

BUDGET = dpx.Budget(2.0, 1e-5)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(2)
    return pd.DataFrame({"age": rng.normal(40, 10, 800), "income": rng.gamma(2, 2, 800)})


@pytest.fixture(scope="module")
def model(frame):
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(frame, (frame["age"] > 40).astype(int))


def test_one_line_explains_a_fitted_estimator(frame, model):
    release = dpx.release_model(model, frame, BUDGET, declare={"age": (0, 100)}, suggested=True, noise=SeededNoise(1))
    assert release.explain({"age": 40, "income": 3}).top(1)[0][0] == "age"
    with pytest.raises(Undeclared, match="income"):
        dpx.release_model(model, frame, BUDGET, declare={"age": (0, 100)})


def test_nothing_is_paid_for_a_constant_answer(frame, tmp_path):
    constant = DummyClassifier().fit(frame, frame["age"] > 40)
    bounds = {"age": (0, 100), "income": (0, 20)}
    with pytest.raises(DataError, match=r"nothing to explain.*\(nothing was spent\)"):
        dpx.release_model(constant, frame, BUDGET, declare=bounds, target=True, ledger=f"sqlite:///{tmp_path}/a.ledger")
    assert not (tmp_path / "a.ledger").exists()


@pytest.mark.slow
def test_a_release_is_logged_to_mlflow(frame, model, monkeypatch, tmp_path):
    for name in ("MLFLOW_ALLOW_FILE_STORE", "MLFLOW_DISABLE_TELEMETRY"):
        monkeypatch.setenv(name, "true")
    mlflow = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    mlflow.set_experiment("private explanations")
    release = dpx.release_model(model, frame, BUDGET, suggested=True, noise=SeededNoise(1))
    with mlflow.start_run() as run:
        log_release(release)
        log_release(dpx.release_model(model, frame, dpx.Budget(1.0, 1e-5), suggested=True), "second", page=False)
    logged = mlflow.get_run(run.info.run_id).data
    folder = Path(mlflow.artifacts.download_artifacts(run_id=run.info.run_id, artifact_path="dpexplain"))
    assert sorted(one.name for one in folder.iterdir()) == ["release.dpx", "release.html"]
    assert dpx.load(folder / "release.dpx").guarantee == release.guarantee
    assert logged.params == {
        **{"dpexplain.epsilon": "2", "dpexplain.delta": "1e-05", "dpexplain.columns": "2"},
        **{"second.epsilon": "1", "second.delta": "1e-05", "second.columns": "2"},
    }
    assert "differential privacy" in logged.tags["dpexplain.guarantee"]


def test_without_mlflow_the_error_says_how_to_get_it(frame, model, monkeypatch):
    release = dpx.release_model(model, frame, BUDGET, suggested=True, noise=SeededNoise(1))
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ParameterError, match="pip install mlflow"):
        log_release(release)


def test_a_model_that_needs_other_columns_is_announced_before_anything_is_spent():
    rng = np.random.default_rng(0)
    rows = {"a": rng.random(500), "other": rng.random(500)}
    data = dpx.PrivateData(
        rows, dpx.Domain([dpx.Numeric("a", 0, 1)]), model=lambda x: (x["a"] + x["other"]) / 2, output="probability"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", dpx.errors.UnaskedModel)
        with pytest.raises(dpx.errors.UnaskedModel, match=r"synthetic records .* dpx\.check"):
            dpx.release(data, dpx.Budget(1.0, 1e-6))
    assert data.spent.epsilon == 0  # refused before a row was read
    with pytest.warns(dpx.errors.UnaskedModel):
        assert dpx.release(data, dpx.Budget(1.0, 1e-6)).explain({"a": 0.5}).error[0] > 0


def test_a_model_that_needs_an_undeclared_column_names_it():
    """Made-up records are public, and so is what a model says about them."""
    frame = {"age": np.linspace(20, 80, 300), "branch": ["n", "s"] * 150}

    def ask(table):
        return np.where(np.asarray(table["branch"]) == "n", 0.2, 0.7)

    data = dpx.PrivateData(frame, dpx.Domain([dpx.Numeric("age", 0, 100)]), model=ask, output="probability")
    with pytest.warns(dpx.errors.UnaskedModel, match="KeyError: 'branch'"):
        dpx.release(data, dpx.Budget(1.0, 1e-3))
    with pytest.raises(DataError, match=r"KeyError: 'branch'.* Declare every column"):
        dpx.release(data, dpx.Budget(1.0, 1e-3), reference=True)
    (problem,) = dpx.check(data).of("problem")
    assert "KeyError: 'branch'" in problem.what
    assert "Declare every column" in problem.remedy
