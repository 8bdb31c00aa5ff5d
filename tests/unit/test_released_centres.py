"""Answers of one explainer centre their sums at the mean of the centres that earlier ones released; the sums' noise stays each answer's own."""

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.backends.dense import DenseRows
from dpexplain.core.layout import Layout
from dpexplain.core.release_moments import NormalisedMoments
from dpexplain.errors import LedgerUnavailable
from dpexplain.mechanisms.door import listening
from dpexplain.mechanisms.released_centres import ReleasedCentres
from dpexplain.noise.seeded import SeededNoise
from people_support import DOMAIN, RECORD, model, people

BUDGET, PRICE = dpx.Budget(9.0, 1e-6), (0.1, 1e-6)


@pytest.fixture(scope="module")
def data():
    rows = people()
    return dpx.PrivateData(rows, DOMAIN, labels=np.sign(model(rows) - 0.5))


def test_the_mean_moves_when_the_number_of_centres_has_doubled():
    centres, released, found = ReleasedCentres(), np.arange(18.0).reshape(9, 2), []
    for one in released:
        found.append(centres.choose_query(one, 3.0, lambda centre, sigma: (centre, sigma)))
        centres.keep(one)
    used = [1, 1, 2, 2, 4, 4, 4, 4, 8]
    for count, (query, sigma) in zip(used, found, strict=True):
        assert query[0] == pytest.approx(released[:count].mean(axis=0))
        assert query[1] == sigma == pytest.approx(3.0 / np.sqrt(count))
    assert found[3] is found[2]
    assert found[7] is found[4]


def test_a_centre_that_is_not_kept_is_used_by_nobody_else():
    centres = ReleasedCentres()
    for own in np.eye(3):
        assert centres.choose_query(own, 1.0, lambda centre, _: centre.tolist()).query == own.tolist()


def run_many_times(explainer, ids):
    """The same question under these request ids, in one batch, as a service answers it."""
    return explainer.explain_each([(RECORD, one) for one in ids])


def drop_settlements(explainer, monkeypatch):
    """Ask once more while the ledger cannot store answers."""
    with monkeypatch.context() as broken:
        broken.setattr(explainer._ledger, "settle_many", unavailable)
        for _ in range(3):
            with pytest.raises(LedgerUnavailable):
                explainer.explain(RECORD, request_id="retried")


def unavailable(_):
    raise LedgerUnavailable("the disk is full. Free some space")


@pytest.mark.parametrize("kind", ["the same request many times at once", "a ledger that fails before it stores"])
def test_what_answers_are_centred_at_was_paid_for(data, monkeypatch, kind):
    """An attack: a request is paid for once, however often it runs, so that only the centre of the stored run may be used."""
    drawn, around, explainer = [], [], dpx.Explainer(data, BUDGET, dpx.Basic(*PRICE))

    def listen(mechanism, at, out):
        if mechanism.query.what == "release: centre":
            drawn.append(out)
        elif mechanism.query.what == "release: moments":
            around.append(at.centre)

    with listening(listen):
        if kind == "the same request many times at once":
            answers = run_many_times(explainer, ["same"] * 6)
            assert len({one.intercept for one in answers}) == 1
        else:
            drop_settlements(explainer, monkeypatch)
            explainer.explain(RECORD, request_id="retried")
        ran = len(drawn)
        explainer.explain(RECORD)
    assert ran > 1  # draws, of which one was paid for: the first that was stored
    stored = drawn[0] if kind == "the same request many times at once" else drawn[ran - 1]
    plan = explainer._alone.plan_alone(DOMAIN.encode_query(RECORD), explainer._setting).sketch
    assert around[-1].tolist() == plan.query_around(stored, plan.centre.sigma).centre.tolist()
    assert explainer.spent.mu**2 == pytest.approx(2 * dpx.Budget(*PRICE).mu ** 2, rel=1e-6)


def test_rows_are_summed_once_around_one_centre(data, monkeypatch):
    """Eight answers read the rows four times: for the first answer, and around the mean of one, two and four centres."""
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
