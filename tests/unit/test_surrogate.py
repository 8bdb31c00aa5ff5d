"""Stand-ins for a model: tables of single features and pairs, whose SHAP values have a closed form."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.domain.interface import Block
from dpexplain.errors import ParameterError
from dpexplain.estimation.coalitions import record_values
from dpexplain.estimation.surrogate import fit_surrogate
from dpexplain.noise.seeded import SeededNoise

BLOCKS = (Block(0, 1, "numeric"), Block(1, 4, "one-hot"), Block(4, 5, "binary"), Block(5, 6, "numeric"))
OWNER = np.array([0, 1, 1, 1, 2, 3])
WEB = Path(dpx.__file__).parent / "web" / "surrogate.js"


def records(m=6000, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.random(m), np.eye(4)[rng.integers(0, 4, m)][:, :3], rng.integers(0, 2, m), rng.random(m)])


def model(x):
    return np.tanh(2 * x[:, 0] - 1 + x[:, 1] * x[:, 4] - 0.5 * x[:, 2])


@pytest.fixture(scope="module")
def fitted_surrogate():
    X = records()
    weights = np.random.default_rng(1).uniform(0.5, 1.5, len(X))
    return fit_surrogate(X, model(X), weights, BLOCKS), X, weights


def test_it_follows_a_model_of_pairs(fitted_surrogate):
    surrogate, _, _ = fitted_surrogate
    X = records(seed=5)
    assert surrogate.fidelity > 0.97
    assert np.corrcoef(surrogate.predict(X), model(X))[0, 1] > 0.98
    assert (1, 2) in {(pair.first, pair.second) for pair in surrogate.pairs}


def test_shapley_values_add_up_and_are_those_of_the_definition(fitted_surrogate):
    surrogate, X, weights = fitted_surrogate
    kept = np.arange(len(X)) % 4 != 0
    background, share = X[kept], weights[kept] / weights[kept].sum()
    for z in records(3, seed=7):
        found = surrogate.shapley(z[None])[0]
        assert surrogate.base + found.sum() == pytest.approx(surrogate.predict(z[None])[0], abs=1e-9)
        worth = lambda i, joined, z=z: surrogate.predict(np.where(joined[:, OWNER], z, background[i]))  # noqa: E731
        each = record_values(worth, surrogate.predict(background), float(surrogate.predict(z[None])[0]), 4)
        np.testing.assert_allclose(found, share @ each, atol=1e-9)


DOMAIN = dpx.Domain([dpx.Numeric("age", 20, 80), dpx.Categorical("work", ["a", "b", "c"]), dpx.Binary("married")])


@pytest.fixture(scope="module")
def release():
    rng = np.random.default_rng(0)
    rows = {"age": rng.uniform(20, 80, 2000), "work": rng.choice(list("abc"), 2000), "married": rng.random(2000) < 0.5}
    box = lambda t: np.tanh((np.asarray(t["age"]) - 50) / 20 + np.asarray(t["married"]) * (np.asarray(t["work"]) == "a"))  # noqa: E731
    return dpx.release(dpx.PrivateData(rows, DOMAIN, model=box), dpx.Budget(1.0, 1e-6), reference=2048, noise=SeededNoise(0))


def test_a_release_makes_one_with_its_error(release):
    made, record = release.surrogate(), {"age": 60, "work": "a", "married": True}
    found, own = made.shapley(record), release.shapley(record)
    assert made.fidelity > 0.9
    assert found.details["fidelity"] == made.fidelity
    assert found.base + found.values.sum() == pytest.approx(found.answer, abs=1e-9)
    assert (np.abs(found.values - own.values) <= 4 * found.error).all()
    assert made.predict([record])[0] == pytest.approx(found.answer, abs=1e-9)
    assert len(made.shapley_many([record, record])) == 2


def test_a_release_without_labels_cannot(release):
    from dataclasses import replace

    with pytest.raises(ParameterError, match="no labels"):
        replace(release, reference=replace(release.reference, labels=None)).surrogate()


def test_a_page_has_it_only_where_it_is_asked_for(release, tmp_path):
    plain = release.publish(tmp_path / "plain.html").read_text()
    page = release.publish(tmp_path / "page.html", surrogate=True).read_text()
    assert "compact stand-in" not in plain
    assert '"surrogate"' not in plain
    assert "compact stand-in for the model" in page
    assert '"surrogate"' in page


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_page_computes_the_same_contributions(release, tmp_path):
    made = release.surrogate()
    points = DOMAIN.encode({"age": [25, 60, 77], "work": ["a", "b", "c"], "married": [True, False, True]})
    (tmp_path / "in.json").write_text(json.dumps({"surrogate": made.payload(), "points": points.tolist()}))
    script = tmp_path / "run.mjs"
    script.write_text(
        f"import {{ surrogateContributions }} from {json.dumps(WEB.as_uri())};\n"
        "import { readFileSync } from 'node:fs';\n"
        f"const data = JSON.parse(readFileSync({json.dumps(str(tmp_path / 'in.json'))}));\n"
        "console.log(JSON.stringify(data.points.map((z) => { const c = surrogateContributions(data.surrogate, z);"
        " return [...c.values, c.base, c.answer]; })));"
    )
    done = subprocess.run(["node", str(script)], capture_output=True, text=True, check=True)
    found = np.array(json.loads(done.stdout))
    np.testing.assert_allclose(found[:, :3], made.tables.shapley(points), atol=1e-4)
    np.testing.assert_allclose(found[:, 3] + found[:, :3].sum(axis=1), made.tables.predict(points), atol=1e-4)
