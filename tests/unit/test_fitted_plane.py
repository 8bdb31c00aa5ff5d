"""Planes that are free at the query: a constant model has no explanation, answers say what they are, and contributions add up."""

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.errors import ParameterError, QueryError
from dpexplain.mechanisms.history import History, ReleasedAnswer
from dpexplain.noise.seeded import SeededNoise

DOMAIN = dpx.Domain(
    [dpx.Numeric("age", 17, 97), dpx.Numeric("hours", 1, 99), dpx.Categorical("work", values=list("abcd")), dpx.Binary("married")]
)
RECORDS = [
    {"age": age, "hours": hours, "work": work, "married": married}
    for age, hours, work, married in [
        (40, 45, "a", True),
        (60, 20, "b", False),
        (30, 30, "c", False),
        (80, 50, "d", True),
        (55, 60, "b", False),
        (33, 38, "c", True),
        (47, 52, "a", False),
    ]
]


def people(count=20_000):
    rng = np.random.default_rng(0)
    return {
        "age": rng.uniform(17, 97, count),
        "hours": rng.uniform(1, 99, count),
        "work": rng.choice(list("abcd"), count),
        "married": rng.random(count) < 0.5,
    }


def constant(value):
    return lambda table: np.full(len(table["age"]), value)


def sloped_model(table):
    return 0.4 + 0.5 * (np.asarray(table["age"], dtype=float) - 57) / 80 - 0.2 * (np.asarray(table["work"]) == "a")


def labelled_data(model):
    rows = people()
    return dpx.PrivateData(rows, DOMAIN, labels=model(rows))


MECHANISMS = [
    dpx.Basic(1.0, 1e-6),
    dpx.Adaptive(2.0, 1e-6),  # its answers cost less than their ε, down to a tenth of μ²
    dpx.Enhanced(2.0, 1e-6),
    dpx.Adaptive(2.0, 1e-6, rule="paper"),
    dpx.Basic(1.0, 1e-6, norm=1),
]


@pytest.mark.parametrize(
    ("mechanism", "value"),
    [(MECHANISMS[0], 1.0), (MECHANISMS[0], 0.3), *zip(MECHANISMS[1:], [-0.9, 0.3, 1.0, -0.9], strict=True)],
    ids=lambda one: one if isinstance(one, float) else f"{one.to_dict()['mechanism']} {one.to_dict().get('rule', one.norm)}",
)
def test_a_constant_model_has_no_explanation(mechanism, value):
    """Every slope is within the noise of 0 and the answer is the constant; the paper's plane makes up slopes of 0.8."""
    explainer = dpx.Explainer(labelled_data(constant(value)), dpx.Budget(9, 1e-6), mechanism, noise=SeededNoise(1))
    loose = 1 if isinstance(mechanism, dpx.Basic) else 2
    answers = [explainer.explain(record) for record in RECORDS]
    assert max(np.abs(answer.values).max() for answer in answers) < 0.16 * loose
    assert np.mean([np.linalg.norm(answer.values) for answer in answers]) < 0.2 * loose
    assert [answer.intercept for answer in answers] == pytest.approx([value] * len(RECORDS), abs=0.06 * loose)
    assert {answer.plane for answer in answers} == {"fitted"}
    for method in ("regression", "neighbour"):
        free = dpx.NonInteractive(explainer.history, method, plane="fitted").explain({**RECORDS[0], "age": 52})
        assert np.abs(free.values).max() < 0.3
        assert free.intercept == pytest.approx(value, abs=0.1)


def test_the_papers_plane_explains_the_average_instead():
    data = labelled_data(constant(1.0))
    paper = dpx.Explainer(data, dpx.Budget(9, 1e-6), dpx.Basic(1.0, 1e-6, plane="paper"), noise=SeededNoise(1)).explain(
        RECORDS[0]
    )
    assert np.abs(paper.values).max() > 0.3
    assert (paper.plane, paper.intercept) == ("paper", 0.0)


def test_slopes_and_answer_of_an_unbalanced_linear_model_are_found():
    data = labelled_data(sloped_model)
    answer = dpx.Explainer(data, dpx.Budget(9, 1e-6), dpx.Basic(2.0, 1e-6), noise=SeededNoise(2)).explain(RECORDS[0])
    best = evaluation.optimum(data, RECORDS[0])
    assert evaluation.agreement(answer.values, best).cosine > 0.97
    found = evaluation.score(answer.values, data, RECORDS[0])
    assert found.relative_excess < 0.03
    assert answer.intercept == pytest.approx(float(sloped_model({k: np.array([v]) for k, v in RECORDS[0].items()})[0]), abs=0.05)
    assert answer.details["capped"] is False
    tight = dpx.Explainer(data, dpx.Budget(9, 1e-6), dpx.Basic(2.0, 1e-6, radius=0.1), noise=SeededNoise(2)).explain(RECORDS[0])
    assert tight.details["capped"] is True
    assert tight.details["radius"] == 0.1
    for shown in (tight._repr_html_(), tight.to_dict()["details"]["cap"]):
        assert "The cap of 0.1 on the length of the slopes binds" in shown
    assert "cap" not in answer.details


def test_the_default_cap_grows_with_the_budget():
    data = labelled_data(sloped_model)
    caps = [
        dpx.Explainer(data, dpx.Budget(9, 1e-6), dpx.Basic(epsilon, 1e-6, by="descent")).explain(RECORDS[0]).details["radius"]
        for epsilon in (0.01, 0.3, 4.0)
    ]
    assert caps[0] == 2.0
    assert caps == sorted(caps)
    assert caps[2] > caps[1] > 2


def test_contributions_against_a_declared_baseline_add_up():
    data, baseline = labelled_data(sloped_model), {"age": 57, "hours": 50, "work": "b", "married": False}
    explainer = dpx.Explainer(data, dpx.Budget(9, 1e-6), dpx.Basic(2.0, 1e-6), noise=SeededNoise(3), baseline=baseline)
    answer = explainer.explain(RECORDS[0])
    found = answer.contributions()
    assert found.names == ("age", "hours", "work", "married")
    assert found.base + found.values.sum() == pytest.approx(found.answer)
    assert found.values[0] < 0  # younger than the baseline, in a model that rises with age
    assert found.average == "the baseline"


def test_answers_from_history_are_in_the_models_units_and_compare_with_a_baseline():
    data = dpx.PrivateData(people(4000), DOMAIN, model=lambda table: (1 + sloped_model(table)) / 2, output="probability")
    explainer = dpx.Explainer(data, dpx.Budget(9, 1e-6), dpx.Basic(1.0, 1e-6), noise=SeededNoise(3))
    explainer.explain_many(RECORDS)
    stored = History.from_json(explainer.history.to_json())
    for history in (explainer.history, stored):
        free = dpx.NonInteractive(history, baseline=RECORDS[1]).explain(RECORDS[0])
        found = free.contributions()
        assert free.scale.kind == found.scale.kind == "probability"
        assert "points" in free._repr_html_()
        assert found.base + found.values.sum() == pytest.approx(found.answer)
        assert found.answer == pytest.approx(free.scale.answer(free.intercept))
        assert found.average == "the baseline"
        middle = dpx.NonInteractive(history).explain(RECORDS[0]).contributions()
        assert (middle.average, middle.answer) == ("the middle of all ranges", found.answer)
    with pytest.raises(ParameterError, match="baseline= needs the history of an explainer"):
        dpx.NonInteractive(History(), baseline=RECORDS[0])


@pytest.mark.slow
def test_a_releases_means_stand_for_the_average():
    data = labelled_data(sloped_model)
    release = dpx.release(data, dpx.Budget(2.0, 1e-6), noise=SeededNoise(4))
    explainer = dpx.Explainer(data, dpx.Budget(2.1, 1e-6), dpx.Adaptive(2.0, 1e-6), noise=SeededNoise(3), release=release)
    paid = explainer.explain(RECORDS[0])
    found = paid.contributions()
    assert found.average == "the average"
    assert found.base == pytest.approx(float(sloped_model(people()).mean()), abs=0.1)
    assert found.base + found.values.sum() == pytest.approx(found.answer)
    for age in range(20, 60):
        free = explainer.explain({**RECORDS[1], "age": age})
        if "budget" in free.details:
            break
    assert (free.plane, free.cost.mu) == ("fitted", 0.0)
    assert free.contributions().base == pytest.approx(found.base, abs=0.1)


def test_a_baseline_outside_the_domain_and_an_unknown_plane_are_refused_before_anything_is_spent():
    data = labelled_data(sloped_model)
    outside = {"age": 400, "hours": 1, "work": "a", "married": True}
    for use in (
        lambda: dpx.Explainer(data, dpx.Budget(1, 1e-6), baseline=outside),
        lambda: dpx.NonInteractive(History(DOMAIN), baseline=outside),
    ):
        with pytest.raises(
            QueryError, match=r"the baseline does not fit the domain: age: 400 is not .* Declare a record"
        ) as refused:
            use()
        assert "clip=" not in str(refused.value)  # that is for questions
    with pytest.raises(ParameterError, match="plane must be"):
        dpx.Basic(plane="free")
    for kind in (dpx.Basic, dpx.Adaptive, dpx.Enhanced):
        assert kind(calibration="paper").plane == "paper"
        with pytest.raises(ParameterError, match="has no fitted planes"):
            kind(calibration="paper", plane="fitted")
    assert data.spent.mu == 0


@pytest.mark.parametrize("kind", [dpx.Basic, dpx.Adaptive, dpx.Enhanced])
def test_anchored_planes_go_through_the_models_answer(kind):
    data = dpx.PrivateData(people(4000), DOMAIN, model=sloped_model)
    explainer = dpx.Explainer(data, dpx.Budget(9, 1e-6), kind(1.0, 1e-6, plane="anchored"), noise=SeededNoise(1))
    answers = [explainer.explain(record) for record in RECORDS[:6]]
    expected = [float(sloped_model({k: np.array([v]) for k, v in record.items()})[0]) for record in RECORDS[:6]]
    assert [answer.intercept for answer in answers] == pytest.approx(expected, abs=1e-6)
    assert {answer.plane for answer in answers} == {"anchored"}
    assert all("last_step" not in answer.details for answer in answers)
    unable = dpx.Explainer(labelled_data(sloped_model), dpx.Budget(1, 1e-6), kind(plane="anchored"))
    with pytest.raises(ParameterError, match="Register the data with model="):
        unable.explain(RECORDS[0])


def test_planes_of_different_kinds_do_not_mix_in_a_history(tmp_path):
    data, ledger = labelled_data(sloped_model), f"sqlite:///{tmp_path}/x.ledger"
    budget = dpx.Budget(5, 1e-6)
    paper = dpx.Explainer(data, budget, dpx.Basic(0.5, 1e-6, plane="paper"), ledger=ledger)
    paper.explain(RECORDS[0])
    fitted = dpx.Explainer(data, budget, dpx.Basic(0.5, 1e-6), ledger=ledger)
    fitted.explain(RECORDS[1])
    assert len(paper.history) == len(fitted.history) == 1
    assert fitted.history[0].plane == "fitted"
    read = History.from_json(fitted.history.to_json())
    assert read[0].intercept == fitted.history[0].intercept
    with pytest.raises(ParameterError, match="holds fitted planes"):
        dpx.NonInteractive(fitted.history, plane="paper").explain(RECORDS[0])


def test_histories_that_know_no_answers_at_their_points_can_still_be_started_from():
    old = History.of([ReleasedAnswer(np.zeros(7) + i / 9, np.full(7, 0.1)) for i in range(6)])
    data = labelled_data(sloped_model)
    for rule in ("history", "paper"):
        plan = dpx.Adaptive(1.0, 1e-6, rule=rule).plan(DOMAIN.encode_query(RECORDS[0]), data.setting, old)
        assert plan.events


@pytest.mark.slow
def test_sums_over_categories_are_zero_unless_rows_without_one_say_otherwise():
    """No row determines them where each has a category, and a descent's noise would fill them."""
    rows = people()
    data = dpx.PrivateData(rows, DOMAIN, labels=sloped_model(rows))
    explainer = dpx.Explainer(data, dpx.Budget(9, 1e-6), dpx.Basic(1.0, 1e-6), noise=SeededNoise(3))
    assert [explainer.explain(record).values[2:6].mean() for record in RECORDS] == pytest.approx([0.0] * len(RECORDS), abs=1e-12)
    unknown = np.arange(len(rows["work"])) % 3 == 0
    rows["work"] = np.where(unknown, "?", rows["work"])
    data = dpx.PrivateData(rows, DOMAIN, labels=np.where(unknown, -0.8, 0.5))
    found = dpx.Explainer(data, dpx.Budget(9, 1e-6), dpx.Basic(2.0, 1e-6), noise=SeededNoise(3)).explain(RECORDS[0])
    assert found.values[2:6].mean() > 0.6
