"""A release with reference of many rows buys labels in the tables of pairs, and uses them where records miss the label moments."""

from contextlib import nullcontext

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.estimation.label_raking import LabelRaking
from dpexplain.noise import SeededNoise
from dpexplain.release import making
from dpexplain.release.reference_building import STEPS

NAMES = ["a", "b", "c", "d"]
DOMAIN = dpx.Domain([dpx.Binary(name) for name in NAMES])
BUDGET = dpx.Budget(20.0, 1e-6)


def parity(rows):
    """1 where an even number of the first three are true."""
    return ((np.asarray(rows["a"], int) + np.asarray(rows["b"], int) + np.asarray(rows["c"], int)) % 2 == 0).astype(float)


def register(dependent=True, **options):
    """20,000 people; where they are dependent, c mostly follows from a and b together, which no pair of features shows."""
    rng = np.random.default_rng(0)
    columns = {name: rng.random(20_000) < 0.5 for name in NAMES}
    if dependent:
        columns["c"] = (columns["a"] ^ columns["b"]) ^ (rng.random(20_000) < 0.1)
    return dpx.PrivateData(columns, DOMAIN, **options)


def make(data, **options):
    return dpx.release(data, BUDGET, reference=16_384, noise=SeededNoise(1), **options)


@pytest.fixture
def rakings(monkeypatch):
    """How often records were raked to labels."""
    calls, rake = [], LabelRaking.rake

    def count(self, *given):
        calls.append(1)
        return rake(self, *given)

    monkeypatch.setattr(LabelRaking, "rake", count)
    return calls


def test_raking_to_labels_is_announced(monkeypatch):
    """It takes half a minute for 37 features."""
    announced = []

    def watch_steps(name, count):
        return nullcontext(announced.append)

    monkeypatch.setattr(making, "progress_steps", watch_steps)
    make(register(model=parity, output="probability"))
    assert "raking records to labels in tables" in announced
    assert len(announced) <= STEPS


def even_share(release):
    """The share of the weighted records in which an even number of the first three are true."""
    reference = release.reference
    return float(np.average(parity(reference.frame), weights=reference.weights))


def test_records_learn_what_three_features_have_in_common(rakings, tmp_path):
    release = make(register(model=parity, output="probability"))
    assert len(rakings) == 1
    assert even_share(release) == pytest.approx(0.9, abs=0.02)
    assert release.guarantee.epsilon <= BUDGET.epsilon
    assert release.reference.weights.mean() == pytest.approx(1)
    release.save(tmp_path / "labels.dpx")
    assert even_share(dpx.load(tmp_path / "labels.dpx")) == pytest.approx(even_share(release), abs=1e-3)


def test_where_records_lack_nothing_labels_are_not_used(rakings):
    release = make(register(dependent=False, model=parity, output="probability"))
    assert not rakings
    assert even_share(release) == pytest.approx(0.5, abs=0.02)


def test_registered_labels_without_a_model_buy_none(rakings):
    labels = np.ones(20_000)
    assert make(register(labels=labels)).reference.labels is None
    assert not rakings


class Classifier:
    """Both classes by name."""

    classes_ = ("odd", "even")

    def predict_proba(self, rows):
        return np.column_stack([1 - parity(rows), parity(rows)])


def test_all_classes_buy_none(rakings):
    """Their label moments are bought together, and say as much about each class."""
    assert make(register(model=Classifier(), target="all")).reference.labels is not None
    assert not rakings
