"""Answers of one explainer centre their sums at the mean of all centres they have released; the sums' noise stays each answer's own."""

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.backends.dense import DenseRows
from dpexplain.core.layout import Layout
from dpexplain.core.release_moments import NormalisedMoments
from dpexplain.mechanisms.released_centres import ReleasedCentres
from dpexplain.noise.seeded import SeededNoise
from people_support import DOMAIN, RECORD, model, people

BUDGET, PRICE = dpx.Budget(9.0, 1e-6), (0.1, 1e-6)


@pytest.fixture(scope="module")
def data():
    rows = people()
    return dpx.PrivateData(rows, DOMAIN, labels=np.sign(model(rows) - 0.5))


def test_the_mean_moves_when_the_number_of_centres_has_doubled():
    centres, released = ReleasedCentres(), np.arange(16.0).reshape(8, 2)
    found = [centres.add(one, 3.0, lambda centre, sigma: (centre, sigma)) for one in released]
    used = [1, 2, 2, 4, 4, 4, 4, 8]
    for count, (query, sigma) in zip(used, found, strict=True):
        assert query[0] == pytest.approx(released[:count].mean(axis=0))
        assert query[1] == sigma == pytest.approx(3.0 / np.sqrt(count))
    assert found[2] is found[1]
    assert found[6] is found[3]


def test_rows_are_summed_once_around_one_centre(data, monkeypatch):
    """Eight answers read the rows four times: after one, two, four and eight centres."""
    passes, summed = [], DenseRows._sum_normalised
    monkeypatch.setattr(DenseRows, "_sum_normalised", lambda rows, query: passes.append(query) or summed(rows, query))
    explainer = dpx.Explainer(data, BUDGET, dpx.Basic(*PRICE), noise=SeededNoise(1))
    answers = [explainer.explain(RECORD) for _ in range(8)]
    assert len(passes) == 4
    assert len({one.intercept for one in answers}) == 8  # the same question, with other noise each time


def test_every_answer_costs_its_price(data):
    explainer = dpx.Explainer(data, BUDGET, dpx.Basic(*PRICE))
    costs = [explainer.explain(RECORD).cost.epsilon for _ in range(3)]
    assert costs == pytest.approx([PRICE[0]] * 3, rel=1e-6)
    assert max(costs) <= PRICE[0]


def test_explainers_share_no_centres(data):
    first, second = (dpx.Explainer(data, BUDGET, dpx.Basic(*PRICE), noise=SeededNoise(1)) for _ in range(2))
    first.explain(RECORD)
    alone = dpx.Explainer(data, BUDGET, dpx.Basic(*PRICE), noise=SeededNoise(1))
    assert second.explain(RECORD).values.tolist() == alone.explain(RECORD).values.tolist()


def test_other_labels_of_the_same_rows_are_summed_anew():
    rows = np.random.default_rng(1).random((300, 2))
    store = DenseRows([rows], np.ones(300), 2)
    query = NormalisedMoments(Layout((0, 1), (1, 2), (True, True)), np.full(2, 0.5), np.full(2, 0.1))
    before = store.normalised(query)
    assert store.normalised(query) is before
    (other,) = store.relabel(lambda part: -np.ones((len(part), 1)))
    assert other.normalised(query).t0 == pytest.approx(-before.t0)
    with pytest.raises(ValueError, match="read-only"):
        before.S1[0] = 0.0
