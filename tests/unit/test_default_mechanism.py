"""An explainer or a service without a mechanism: adaptive answers at the price of one of `Basic`."""

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.errors import ParameterError
from dpexplain.mechanisms.adaptive import DEFAULT_PRICE, default_mechanism
from dpexplain.noise.seeded import SeededNoise
from dpexplain.service.config import mechanism_of
from people_support import DOMAIN, RECORD, model, people

BUDGET = dpx.Budget(1.0, 1e-6)
OTHER = RECORD | {"age": 60}
SMALL = dpx.Budget(0.05, 1e-6)


def data_with_model():
    return dpx.PrivateData(people(), DOMAIN, model=model, output="probability")


def data_with_labels():
    return dpx.PrivateData(people(), DOMAIN, labels=2 * model(people()) - 1)


def wide_data():
    rows = (np.random.default_rng(1).random((3_000, 300)) < 0.3).astype(float)
    return dpx.PrivateData(rows, dpx.Domain.encoded(300), labels=np.sign(rows[:, 0] - rows[:, 1]))


def test_its_price_is_that_of_basic():
    assert (default_mechanism().epsilon, default_mechanism().delta) == (dpx.Basic().epsilon, dpx.Basic().delta)


@pytest.mark.parametrize("make", [data_with_model, data_with_labels])
def test_the_first_answer_pays_and_the_next_one_is_free(make):
    explainer = dpx.Explainer(make(), BUDGET, noise=SeededNoise(1))
    first, second = explainer.explain(RECORD), explainer.explain(OTHER)
    assert first.cost.epsilon == pytest.approx(0.1, rel=1e-3)
    assert first.cost.epsilon <= 0.1
    assert second.cost.epsilon == 0
    assert first.guarantee.epsilon == second.guarantee.epsilon
    for answer in (first, second):
        assert (answer.error > 0).any()
        assert answer.contributions().error is not None


def test_it_answers_as_adaptive_does_when_it_is_named():
    named = dpx.Explainer(data_with_model(), BUDGET, dpx.Adaptive(**DEFAULT_PRICE), noise=SeededNoise(1))
    assert dpx.Explainer(data_with_model(), BUDGET, noise=SeededNoise(1)).explain(RECORD).values == pytest.approx(
        named.explain(RECORD).values
    )


def test_many_answers_cost_what_one_does_and_a_repeated_id_nothing():
    explainer = dpx.Explainer(data_with_model(), BUDGET)
    answers = explainer.explain_many([RECORD | {"age": age} for age in range(20, 60)], request_ids=[f"{n}" for n in range(40)])
    assert len(answers) == 40
    assert answers.refusal is None
    assert explainer.spent.epsilon == pytest.approx(0.1, rel=1e-3)
    assert explainer.explain(RECORD | {"age": 20}, request_id="0").values.tolist() == answers[0].values.tolist()


@pytest.mark.parametrize("make", [data_with_model, data_with_labels, wide_data])
def test_a_budget_below_the_price_refuses_before_a_row_is_read(make, monkeypatch):
    data = make()
    record = np.zeros(300) if data.domain.width == 300 else RECORD
    explainer = dpx.Explainer(data, SMALL)
    monkeypatch.setattr("dpexplain.mechanisms.door.Door.release", lambda *_: pytest.fail("rows were read"))
    monkeypatch.setattr("dpexplain.mechanisms.door.Door.releases", lambda *_: pytest.fail("rows were read"))
    with pytest.raises(dpx.BudgetExhausted):
        explainer.explain(record)
    assert explainer.spent.epsilon == 0


def test_a_wide_domain_is_answered_by_a_descent():
    explainer = dpx.Explainer(wide_data(), BUDGET, noise=SeededNoise(1))
    answers = [explainer.explain(point) for point in np.eye(300)[:3]]
    assert all(answer.details["gradients"] > 0 for answer in answers)
    assert all(0 < answer.cost.epsilon <= 0.1 for answer in answers)


def test_a_release_is_asked_only_where_descents_start_from_it(monkeypatch):
    data = data_with_model()
    release = dpx.release(data, dpx.Budget(0.5, 1e-6), noise=SeededNoise(1))
    asked = []
    monkeypatch.setattr(type(release), "explain", lambda *args, **options: asked.append(options) or pytest.fail("asked"))
    dpx.Explainer(data, BUDGET, release=release).explain(RECORD)
    assert not asked
    with pytest.raises(pytest.fail.Exception):
        dpx.Explainer(data, BUDGET, dpx.Adaptive(by="descent"), release=release).explain(RECORD)


def test_a_service_without_a_mechanism_has_the_same():
    assert mechanism_of({}) == default_mechanism()


def test_a_service_that_states_only_a_price_is_adaptive():
    assert mechanism_of({"epsilon": 0.5}) == dpx.Adaptive(0.5, 1e-6)


@pytest.mark.parametrize(("kind", "expected"), [("basic", dpx.Basic()), ("adaptive", dpx.Adaptive())])
def test_a_mechanism_that_a_service_names_has_its_own_defaults(kind, expected):
    assert mechanism_of({"kind": kind}) == expected


def test_options_of_no_mechanism_are_refused():
    with pytest.raises(ParameterError, match="epsilom"):
        mechanism_of({"epsilom": 0.5})
