"""Paid answers by moments: they cost what they claim, are those of a release at the same price, and have bars and contributions."""

from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.core.layout import Layout
from dpexplain.core.release_moments import WIDEST_PAID
from dpexplain.errors import ParameterError
from dpexplain.estimation.calibrate import FEWEST_POINTS, enough_points
from dpexplain.estimation.reference import POINTS
from dpexplain.mechanisms.basic import NoisyDescent
from dpexplain.mechanisms.history import History
from dpexplain.mechanisms.moments_answer import MomentsAnswer
from dpexplain.mechanisms.ports import LocalPlan
from dpexplain.mechanisms.setting import Setting
from dpexplain.noise.seeded import SeededNoise
from dpexplain.privacy import gdp
from dpexplain.privacy.events import mu_of, price
from dpexplain.privacy.relation import Neighbours
from people_support import DOMAIN, RECORD, model, people

BUDGET, PRICE = dpx.Budget(9.0, 1e-6), (0.5, 1e-6)


@pytest.fixture(scope="module")
def data():
    return dpx.PrivateData(people(), DOMAIN, model=model, output="probability")


def answer(data, seed=1, **options):
    return dpx.Explainer(data, BUDGET, dpx.Basic(*PRICE, **options), noise=SeededNoise(seed)).explain(RECORD)


def test_an_answer_is_that_of_a_release_at_the_same_price(data, monkeypatch):
    """The same noise gives the same plane; bars are of the same size, because both rehearse the noise."""
    making = import_module("dpexplain.release.making")
    monkeypatch.setattr(making, "GUESSED", POINTS)  # a release asks the model about more points
    paid, release = answer(data), dpx.release(data, dpx.Budget(*PRICE), noise=SeededNoise(1))
    free = release.explain(RECORD)
    assert paid.values == pytest.approx(free.values, rel=1e-12)
    assert paid.intercept == pytest.approx(free.intercept, rel=1e-12)
    assert paid.error == pytest.approx(free.error, rel=0.5)
    assert paid.contributions().values == pytest.approx(free.contributions().values, rel=1e-12)
    assert paid.contributions().base == pytest.approx(free.contributions().base, rel=1e-12)
    assert paid.details["effective_rows"] == free.details["effective_rows"]
    through = release.explain(RECORD, anchor=float(model({k: np.array([v]) for k, v in RECORD.items()})[0]))
    anchored = answer(data, plane="anchored")
    assert anchored.values == pytest.approx(through.values, rel=1e-9)
    assert anchored.plane == "anchored"
    assert anchored.details["anchor"] == anchored.intercept


def test_it_costs_its_price_and_no_more(data):
    paid = answer(data)
    assert paid.cost.epsilon <= PRICE[0]
    assert paid.cost.epsilon == pytest.approx(PRICE[0], rel=1e-6)
    for plane in ("fitted", "anchored"):
        plan = dpx.Basic(*PRICE, plane=plane).with_model(lambda rows: np.zeros(len(rows))).plan(np.zeros(7), SETTING, History())
        assert isinstance(plan, MomentsAnswer)
        assert not isinstance(plan, LocalPlan)
        assert mu_of(price(plan.events)) <= gdp.mu(*PRICE)
        assert mu_of(price(plan.events)) == pytest.approx(gdp.mu(*PRICE), rel=1e-6)
        expected = ["release: centre", "release: numbers", "release: distances of labels", "release: moments"]
        assert [event.what for event in plan.events] == expected


def test_contributions_add_up_and_have_errors(data):
    added = answer(data).contributions()
    assert added.average == "the average"
    assert added.base + added.values.sum() == pytest.approx(added.answer)
    assert (added.error > 0).all()
    assert added.base_error > 0
    assert added.answer_error > 0
    assert "the average is" in added.sentence


def test_contributions_against_a_declared_baseline_have_errors(data, tmp_path):
    """A number's error is that of its slope times the distance; a value that both records have adds nothing, for certain."""
    url, other = f"sqlite:///{tmp_path / 'a.ledger'}", RECORD | {"age": 20, "work": "a"}
    paid = dpx.Explainer(data, BUDGET, dpx.Basic(*PRICE), baseline=other, ledger=url).explain(RECORD, request_id="a")
    added = paid.contributions()
    assert added.average == "the baseline"
    assert added.base + added.values.sum() == pytest.approx(added.answer)
    assert np.flatnonzero(added.values).tolist() == np.flatnonzero(added.error).tolist() == [0, 2]
    assert added.values[0] == pytest.approx(paid.values[0] * paid.scale.half_range * 20 / 80)
    assert added.error[0] == pytest.approx(paid.error[0] * paid.scale.half_range * 20 / 80, rel=1e-6)
    assert added.base_error > 0
    assert added.answer_error > 0
    another = dpx.Explainer(data, BUDGET, dpx.Basic(*PRICE), baseline=RECORD | {"school": 1}, ledger=url)
    compared = another.explain(RECORD, request_id="a").contributions()  # the stored errors are of another comparison
    assert np.flatnonzero(compared.values).tolist() == [1]
    assert compared.error.tolist() == pytest.approx(
        np.abs(compared.values / paid.values[:4] * paid.error[:4] * [0, 1, 0, 0]).tolist()
    )


def test_errors_against_a_baseline_cover_the_exact_differences(data):
    """Twenty answers with fresh noise: at least 85 % of the differences that are not 0 are within two errors."""
    other = {"age": 80, "school": 1, "work": "a", "married": False}
    exact = evaluation.optimum(data, RECORD)
    moved = np.add.reduceat(exact * (DOMAIN.encode_query(RECORD) - DOMAIN.encode_query(other)), [0, 1, 2, 6]) / 2
    found = [
        dpx.Explainer(data, BUDGET, dpx.Basic(*PRICE), noise=SeededNoise(seed), baseline=other).explain(RECORD).contributions()
        for seed in range(20)
    ]
    assert np.mean([np.abs(one.values - moved) <= 2 * one.error for one in found]) >= 0.85


def test_the_same_request_gives_the_same_answer_from_the_ledger(data, tmp_path):
    url = f"sqlite:///{tmp_path / 'a.ledger'}"
    first = dpx.Explainer(data, BUDGET, dpx.Basic(*PRICE), ledger=url).explain(RECORD, request_id="a")
    later = dpx.Explainer(data, BUDGET, dpx.Basic(*PRICE), ledger=url)
    spent = later.spent.epsilon
    again = later.explain(RECORD, request_id="a")
    assert (again.values.tolist(), again.error.tolist()) == (first.values.tolist(), first.error.tolist())
    assert again.contributions().to_dict() == first.contributions().to_dict()
    assert later.spent.epsilon == spent
    assert len(later.history) == 1


def test_every_answer_of_a_batch_has_noise_of_its_own(data):
    explainer = dpx.Explainer(data, BUDGET, dpx.Basic(*PRICE), noise=SeededNoise(3))
    first, second = explainer.explain_many([RECORD, RECORD])
    assert (first.values != second.values).any()
    assert explainer.spent.mu == pytest.approx(np.sqrt(2) * gdp.mu(*PRICE), rel=1e-6)


def test_a_radius_holds_the_slopes_and_the_answer_says_so(data):
    tight = answer(data, radius=0.1)
    assert np.linalg.norm(tight.values) == pytest.approx(0.1)
    assert "The cap of 0.1 on the length of the slopes binds" in tight.details["cap"]
    assert not answer(data).details["capped"]


@pytest.mark.parametrize("labels", [True, False])
def test_labels_alone_suffice_and_a_model_that_fails_on_public_points_does_not_lose_the_answer(labels):
    def answer_rows_alone(table):
        if len(table["age"]) != 6_000:
            raise RuntimeError("no more")
        return model(table)

    rows = people()
    options = {"labels": 2 * model(rows) - 1} if labels else {"model": answer_rows_alone, "output": "probability"}
    found = answer(dpx.PrivateData(rows, DOMAIN, **options))
    exact = evaluation.optimum(dpx.PrivateData(rows, DOMAIN, labels=2 * model(rows) - 1), RECORD)
    assert evaluation.agreement(found.values, exact).cosine > 0.8
    assert (np.abs(found.values - exact) <= 4 * found.error).all()


SETTING = Setting(7, 6_000, Neighbours(), 1e-13, ((2, 6),), layout=Layout.of(DOMAIN.blocks), levels=tuple(DOMAIN.levels))
WIDE = dpx.Domain([dpx.Binary(f"x{j}") for j in range(WIDEST_PAID + 1)])


@pytest.mark.parametrize(
    ("options", "setting"),
    [
        ({"steps": 5}, SETTING),
        ({"norm": 1}, SETTING),
        ({"plane": "paper"}, SETTING),
        ({"calibration": "paper"}, SETTING),
        ({"by": "descent"}, SETTING),
        ({}, Setting(7, 6_000, Neighbours(), 1e-13)),
        ({}, Setting(WIDE.width, 6_000, Neighbours(), 1e-13, layout=Layout.of(WIDE.blocks))),
    ],
    ids=["steps", "norm", "paper's plane", "paper's noise", "asked for", "no domain", "too wide"],
)
def test_a_descent_answers_where_moments_do_not(options, setting):
    plan = dpx.Basic(*PRICE, **options).plan(np.zeros(setting.width), setting, History())
    assert isinstance(plan, NoisyDescent)


def test_by_is_part_of_the_description_only_where_it_was_asked_for():
    assert "by" not in dpx.Basic(*PRICE).to_dict()
    assert dpx.Basic(*PRICE, by="moments").to_dict()["by"] == "moments"
    assert isinstance(
        dpx.Basic(*PRICE, by="moments").plan(
            np.zeros(WIDE.width), Setting(WIDE.width, 6_000, Neighbours(), 1e-13, layout=Layout.of(WIDE.blocks)), History()
        ),
        MomentsAnswer,
    )


@pytest.mark.parametrize(
    "options",
    [{"steps": 5}, {"norm": 1}, {"plane": "paper"}, {"calibration": "paper"}, {"plane": "anchored", "radius": 1.0}],
)
def test_moments_that_cannot_be_had_are_refused(options):
    with pytest.raises(ParameterError, match="by='moments' has no steps"):
        dpx.Basic(*PRICE, by="moments", **options)


def test_wrong_words_are_refused():
    with pytest.raises(ParameterError, match="by must be 'moments' or 'descent', got 'magic'"):
        dpx.Basic(by="magic")
    with pytest.raises(ParameterError, match="needs a declared domain"):
        dpx.Basic(by="moments").plan(np.zeros(7), Setting(7, 6_000, Neighbours(), 1e-13), History())


def test_noise_decides_how_many_reference_points_an_answer_has():
    """All of them where noise is small; a power of two that falls with the noise, down to a least number."""
    quiet, loud = enough_points(estimate_with(0.001)), enough_points(estimate_with(0.5))
    assert (quiet, loud) == (POINTS, FEWEST_POINTS)
    between = [enough_points(estimate_with(noise)) for noise in (0.002, 0.004, 0.008, 0.016, 0.032)]
    assert between == sorted(between, reverse=True)
    assert all(count & (count - 1) == 0 for count in between)
    assert enough_points(estimate_with(0.5, columns=144)) == POINTS


def estimate_with(noise, columns=7):
    """All that `enough_points` reads of an estimate."""
    return SimpleNamespace(spread=SimpleNamespace(t1=noise), values=np.full(columns, 0.25))


def test_fewer_points_change_an_answer_by_less_than_its_noise(monkeypatch):
    """A table of labels at a price at which noise hides what more points would show."""
    rows = people()
    asked = dpx.PrivateData(rows, DOMAIN, labels=np.sign(model(rows) - 0.5))

    def ask():
        explainer = dpx.Explainer(asked, BUDGET, dpx.Basic(0.05, 1e-6), noise=SeededNoise(3))
        return explainer.explain(RECORD)

    few = ask()
    monkeypatch.setattr("dpexplain.estimation.calibrate.enough_points", lambda _: POINTS)
    many = ask()
    assert not np.array_equal(few.values, many.values)
    assert np.abs(few.values - many.values).max() < 0.2 * few.error.max()
    assert few.error == pytest.approx(many.error, rel=0.3)
