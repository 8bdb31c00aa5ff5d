"""The recipes of docs/locality.md: unmodified tools, handed the reference instead of the private rows."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.noise.seeded import SeededNoise

pytestmark = pytest.mark.slow
DOMAIN = dpx.Domain([dpx.Numeric("age", 0, 100), dpx.Categorical("work", values=["a", "b", "c"]), dpx.Binary("married")])


@pytest.fixture(scope="module")
def setting():
    """A forest on encoded columns, the release with its reference, and the private rows to compare with."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {"age": 100 * rng.beta(2, 3, 8000), "work": rng.choice(["a", "b", "c"], 8000), "married": rng.random(8000) < 0.4}
    )
    encoded = DOMAIN.encode(rows)
    truth = (rows.age / 60 + (rows.work == "a") > 1.1).to_numpy()
    forest = RandomForestClassifier(20, max_depth=5, random_state=0).fit(encoded, truth)
    data = dpx.PrivateData(rows, DOMAIN, model=lambda table: 2 * forest.predict_proba(DOMAIN.encode(table))[:, 1] - 1)
    release = dpx.release(data, dpx.Budget(1.0, 1e-6), reference=8192, noise=SeededNoise(1))
    return forest, release, encoded


def strongest(values):
    return int(np.argmax(np.abs(values)))


def test_lime_on_the_reference(setting):
    lime_tabular = pytest.importorskip("lime.lime_tabular")
    forest, release, encoded = setting
    found = []
    for rows in (release.reference.encoded, encoded):
        explainer = lime_tabular.LimeTabularExplainer(
            rows, feature_names=list(release.names), discretize_continuous=False, random_state=0
        )
        answer = explainer.explain_instance(encoded[0], forest.predict_proba, num_features=5, num_samples=1000)
        found.append(np.array([value for _, value in sorted(answer.as_map()[1])]))
    assert strongest(found[0]) == strongest(found[1])
    assert np.corrcoef(*found)[0, 1] > 0.9


@pytest.mark.parametrize("kind", ["Kernel", "Permutation", "Tree"])
def test_shap_on_the_reference(setting, kind):
    shap = pytest.importorskip("shap")
    forest, release, encoded = setting
    positive = lambda X: forest.predict_proba(X)[:, 1]  # noqa: E731
    found = []
    for rows in (release.reference.encoded[:100], encoded[:100]):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if kind == "Kernel":
                values = shap.KernelExplainer(positive, rows).shap_values(encoded[:1], nsamples=64, silent=True)
            elif kind == "Permutation":
                values = shap.PermutationExplainer(positive, rows, seed=0)(encoded[:1]).values
            else:
                values = np.asarray(shap.TreeExplainer(forest, rows, model_output="probability").shap_values(encoded[:1]))[..., 1]
        found.append(np.asarray(values).ravel())
    assert strongest(found[0]) == strongest(found[1])
    assert np.corrcoef(*found)[0, 1] > 0.9


def test_the_monotone_influence_measure_on_the_reference(setting):
    """MIM as docs/locality.md writes it: Σ α u over records that the model treats like z; the same as `evaluation.mim` on the private rows."""
    forest, release, encoded = setting
    reference, weight, z = release.reference, dpx.weights.Gaussian(1.0), encoded[0]
    u = reference.encoded - z
    sign = np.sign(2 * forest.predict_proba(z[None])[0, 1] - 1)
    alike = (1 + sign * reference.labels) / 2
    ours = sign * (weight(np.linalg.norm(u, axis=1)) * alike) @ u / len(u)
    private = dpx.PrivateData(DOMAIN.decode(encoded), DOMAIN, labels=2 * forest.predict_proba(encoded)[:, 1] - 1)
    theirs = evaluation.mim(private, z, weight=weight, others="ignored", label=float(sign))
    assert strongest(ours) == strongest(theirs)
    assert np.corrcoef(ours, theirs)[0, 1] > 0.98
