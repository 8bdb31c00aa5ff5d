"""The rule of thumb of `dpexplain plan` against everything that was measured, and its limits."""

from functools import partial

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.demo.people import DOMAIN, people
from dpexplain.privacy import expected_quality

README = [  # rows, columns, ε a query, relative excess, cosine: the table in README.md
    (1_402_639, 70, 0.01, 0.0043, 0.991),
    (1_402_639, 70, 0.1, 0.0001, 0.9998),
    (48_842, 49, 0.1, 0.020, 0.930),
    (48_842, 49, 1.0, 0.0005, 0.998),
]


@pytest.mark.parametrize(("rows", "columns", "epsilon", "excess", "cosine"), README)
def test_it_agrees_with_the_measurements_on_real_data(rows, columns, epsilon, excess, cosine):
    expected = expected_quality.basic(expected_quality.reach(rows, columns, dpx.Budget(epsilon, 1e-6)))
    assert excess / 2.5 < expected.relative_excess < excess * 2.5
    assert abs(expected.cosine - cosine) < 0.05


@pytest.mark.parametrize(
    ("rows", "columns", "epsilon", "excess", "cosine"), [(1_402_639, 70, 0.1, 0.0007, 0.999), (48_842, 49, 1.0, 0.0011, 0.997)]
)
def test_it_agrees_with_measured_releases(rows, columns, epsilon, excess, cosine):
    expected = expected_quality.release(expected_quality.reach(rows, columns, dpx.Budget(epsilon, 1e-6)))
    assert excess / 2.5 < expected.relative_excess < excess * 2.5
    assert abs(expected.cosine - cosine) < 0.01


@pytest.mark.slow
def test_it_agrees_with_answers_given_now():
    rows, rich = people(20_000, seed=5)
    data = dpx.PrivateData(rows, DOMAIN, labels=2 * rich - 1)
    records = [{name: column[i] for name, column in rows.items()} for i in range(10)]
    for epsilon in (0.1, 1.0):
        budget = dpx.Budget(epsilon, 1e-6)
        reached = expected_quality.reach(20_000, DOMAIN.width, budget)
        explainer, release = (
            dpx.Explainer(data, dpx.Budget(100, 1e-6), dpx.Basic(epsilon, 1e-6, plane="paper")),
            dpx.release(data, budget),
        )
        for ask, rule in (
            (explainer.explain, expected_quality.basic),
            (partial(release.explain, plane="paper"), expected_quality.release),
        ):
            cosine = np.mean([evaluation.score(ask(record).values, data, record, plane="paper").cosine for record in records])
            assert abs(rule(reached).cosine - cosine) < 0.12


def test_offers_afford_what_an_explainer_affords():
    data = dpx.PrivateData({"x0": np.linspace(0, 1, 500)}, dpx.Domain.encoded(1), labels=np.ones(500))
    (offer,) = [one for one in expected_quality.offers(500, 1, dpx.Budget(1.0, 1e-6)) if one.epsilon == 0.3]
    explainer = dpx.Explainer(data, dpx.Budget(1.0, 1e-6), dpx.Basic(0.3, 1e-6))
    for _ in range(offer.queries):
        explainer.explain({"x0": 0.5})
    with pytest.raises(dpx.BudgetExhausted):
        explainer.explain({"x0": 0.5})


def test_no_offer_costs_more_than_the_budget_and_nonsense_is_refused():
    assert {one.epsilon for one in expected_quality.offers(1000, 10, dpx.Budget(0.05, 1e-6))} == {0.001, 0.003, 0.01, 0.03}
    for rows, columns, multiplier in ((0, 1, 1), (1, 0, 1), (1, 1, 0)):
        with pytest.raises(dpx.DpexplainError):
            expected_quality.reach(rows, columns, dpx.Budget(1, 1e-6), multiplier)


def test_quality_falls_with_the_rows_one_person_may_own():
    one, five = (expected_quality.basic(expected_quality.reach(10_000, 20, dpx.Budget(0.3, 1e-6), k)) for k in (1, 5))
    assert one.cosine > five.cosine
    assert one.relative_excess < five.relative_excess
    assert {expected_quality.ExpectedQuality(0, c).verdict for c in (1.0, 0.95, 0.8, 0.5, 0.1)} == {
        "near exact",
        "good",
        "fair",
        "rough",
        "mostly noise",
    }
