"""The rule of thumb of `dpexplain plan` against everything that was measured, and its limits."""

from dataclasses import replace

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.demo.people import DOMAIN, people
from dpexplain.noise import SeededNoise
from dpexplain.privacy import expected_quality
from dpexplain.privacy.expected_quality import Facts

PAPER = [  # rows, columns, ε a query, relative excess, cosine: measured with the paper's plane
    (1_402_639, 70, 0.01, 0.0043, 0.991),
    (1_402_639, 70, 0.1, 0.0001, 0.9998),
    (48_842, 49, 0.1, 0.020, 0.930),
    (48_842, 49, 1.0, 0.0005, 0.998),
]


@pytest.mark.parametrize(("rows", "columns", "epsilon", "excess", "cosine"), PAPER)
def test_the_papers_plane_agrees_with_the_measurements_on_real_data(rows, columns, epsilon, excess, cosine):
    expected = expected_quality.basic(expected_quality.reach(rows, columns, dpx.Budget(epsilon, 1e-6)), plane="paper")
    assert excess / 2.5 < expected.relative_excess < excess * 2.5
    assert abs(expected.cosine - cosine) < 0.05


@pytest.mark.parametrize(
    ("rows", "columns", "epsilon", "excess", "cosine"), [(1_402_639, 70, 0.1, 0.0007, 0.999), (48_842, 49, 1.0, 0.0011, 0.997)]
)
def test_the_papers_plane_agrees_with_measured_releases(rows, columns, epsilon, excess, cosine):
    expected = expected_quality.release(expected_quality.reach(rows, columns, dpx.Budget(epsilon, 1e-6)), plane="paper")
    assert excess / 2.5 < expected.relative_excess < excess * 2.5
    assert abs(expected.cosine - cosine) < 0.01


FITTED = [  # way, rows, columns, ε, relative excess, cosine on real data, fitted plane: docs/notes/release.md, docs/notes/interactive.md
    ("release", 48_842, 49, 1.0, 0.0022, 0.993),
    ("basic", 48_842, 49, 1.0, 0.0146, 0.962),
]
# more columns than any table of the fit
LARGER = [
    ("release", 1_402_639, 152, 0.1, 0.0028),
    ("basic", 1_402_639, 152, 0.1, 0.0049),
]
SOFT = Facts(model=True, rare=False, hard=False, linear=False, tied=False)


def is_within(value, interval):
    return interval[0] <= value <= interval[1]


@pytest.mark.parametrize("facts", [Facts(), SOFT])
@pytest.mark.parametrize(("way", "rows", "columns", "epsilon", "excess", "cosine"), FITTED)
def test_the_interval_holds_what_was_measured_on_real_data(way, rows, columns, epsilon, excess, cosine, facts):
    reached = expected_quality.reach(rows, columns, dpx.Budget(epsilon, 1e-6))
    expected = getattr(expected_quality, way)(reached, facts)
    assert is_within(excess, expected.excess_interval)
    assert is_within(cosine, expected.cosine_interval)


@pytest.mark.parametrize(("way", "rows", "columns", "epsilon", "excess"), LARGER)
def test_beyond_what_was_measured_the_interval_is_called_extrapolated_is_wider_and_promises_no_more_than_came_out(
    way, rows, columns, epsilon, excess
):
    reached, beyond = (
        expected_quality.reach(rows, columns, dpx.Budget(epsilon, 1e-6)),
        expected_quality.extrapolation(rows, columns),
    )
    expected = getattr(expected_quality, way)(reached, SOFT, beyond=beyond)
    assert is_within(excess, (expected.excess_interval[0] / 2, expected.excess_interval[1]))
    narrower = getattr(expected_quality, way)(reached, SOFT)
    assert expected.excess_interval[0] < narrower.excess_interval[0] < narrower.excess_interval[1] < expected.excess_interval[1]
    assert expected_quality.extrapolation(20_000, 20) == 0 < expected_quality.extrapolation(500, 3) < 1
    assert any("extrapolated" in words for words in expected_quality.unknowns(rows, columns, SOFT))


@pytest.mark.slow
def test_the_interval_holds_answers_given_now():
    rows, rich = people(20_000, seed=5)
    data, noise = dpx.PrivateData(rows, DOMAIN, labels=2 * rich - 1), SeededNoise(0)  # the same answers every time
    records = [{name: column[i] for name, column in rows.items()} for i in range(10)]
    for epsilon in (0.1, 1.0):
        budget = dpx.Budget(epsilon, 1e-6)
        reached = expected_quality.reach(20_000, DOMAIN.width, budget)
        explainer = dpx.Explainer(data, dpx.Budget(100, 1e-6), dpx.Basic(epsilon, 1e-6, by="descent"), noise=noise)
        release = dpx.release(data, budget, noise=noise)
        for ask, rule in ((explainer.explain, expected_quality.basic), (release.explain, expected_quality.release)):
            scores = [evaluation.score(ask(record).values, data, record) for record in records]
            expected = rule(reached, Facts(model=False, hard=True))
            assert is_within(np.mean([one.relative_excess for one in scores]), expected.excess_interval)
            assert is_within(np.mean([one.cosine for one in scores]), expected.cosine_interval)


@pytest.mark.parametrize("rule", [expected_quality.basic, expected_quality.release])
def test_intervals_hold_their_middle_and_narrow_with_every_fact(rule):
    widths = []
    for facts in (Facts(), Facts(rare=False), Facts(model=True, rare=False), Facts(model=True, rare=False, tied=False), SOFT):
        expected = rule(300, facts)
        assert is_within(expected.relative_excess, expected.excess_interval)
        assert is_within(expected.cosine, expected.cosine_interval)
        widths.append(expected.excess_interval[1] / expected.excess_interval[0])
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < widths[0]


def test_a_linear_model_promises_more_and_tied_numbers_less():
    plain, linear, tied = (
        expected_quality.release(300, one) for one in (SOFT, replace(SOFT, linear=True), replace(SOFT, tied=True))
    )
    assert linear.relative_excess < plain.relative_excess < tied.relative_excess
    assert linear.cosine > plain.cosine > tied.cosine


@pytest.mark.parametrize("rule", [expected_quality.basic, expected_quality.release])
@pytest.mark.parametrize("facts", [Facts(), SOFT])
def test_answers_that_may_be_near_exact_may_be_exact(rule, facts):
    ends = [rule(float(reached), facts).cosine_interval[1] for reached in np.geomspace(6, 1e6, 200)]
    assert ends == sorted(ends)
    assert all(end == 1 or end < 0.975 for end in ends)  # 0.98 with two digits
    assert ends[-1] == 1


@pytest.mark.parametrize(
    ("interval", "verdict"),
    [
        ((0.33, 1.0), "mostly noise to near exact"),
        ((0.75, 0.95), "fair to good"),
        ((0.985, 1.0), "near exact"),
        (None, "near exact"),
    ],
)
def test_the_verdict_is_no_better_than_the_interval(interval, verdict):
    assert expected_quality.ExpectedQuality(0.1, 0.98, None, interval).verdict == verdict


def test_what_is_not_known_is_said():
    assert expected_quality.basic(1.0).excess_interval is None
    assert expected_quality.release(300, plane="paper").cosine_interval is None
    assert expected_quality.unknowns(20_000, 20, SOFT) == []
    assert len(expected_quality.unknowns(2_000, 152, SOFT)) == 2
    assert "how rare" in expected_quality.unknowns(20_000, 20)[0]
    assert "paper" in expected_quality.unknowns(20_000, 20, plane="paper")[0]
    with pytest.raises(dpx.DpexplainError, match="not measured"):
        expected_quality.release(300, plane="anchored")


@pytest.mark.parametrize(("share", "rare"), [(None, None), (0.05, True), (0.95, True), (0.15, None), (0.4, False)])
def test_rarity_of_positives(share, rare):
    assert expected_quality.rarity(share) is rare


@pytest.mark.parametrize("share", [0, 1, -0.1, float("nan")])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(dpx.DpexplainError, match="between 0 and 1"):
        expected_quality.rarity(share)


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
