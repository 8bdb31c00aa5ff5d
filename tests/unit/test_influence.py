"""Private MIM: what it costs, what it answers, whom it asks, and that its numbers stay among themselves."""

from types import SimpleNamespace

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.core import sensitivity
from dpexplain.errors import DataError, ParameterError
from dpexplain.mechanisms.history import History
from dpexplain.mechanisms.setting import Setting
from dpexplain.noise.seeded import SeededNoise
from dpexplain.privacy import gdp
from dpexplain.privacy.events import mu_of, price
from dpexplain.privacy.relation import Neighbours, Relation
from dpexplain.service.config import mechanism_of

Z = np.full(4, 0.3)


def rows(count=20_000):
    return np.random.default_rng(0).random((count, 4))


def answer(X):
    return np.sign(X[:, 0] - X[:, 1] + 0.2)


@pytest.fixture(scope="module")
def labelled_data():
    return dpx.PrivateData(rows(), dpx.Domain.encoded(4), labels=answer(rows()))


@pytest.fixture(scope="module")
def modelled_data():
    return dpx.PrivateData(rows(), dpx.Domain.encoded(4), model=answer)


def explain(data, mechanism, point=Z, **options):
    return dpx.Explainer(data, dpx.Budget(10, 1e-6), mechanism, noise=SeededNoise(3), **options).explain(point)


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("weight", [dpx.weights.Stable(), dpx.weights.Gaussian(0.5), dpx.weights.Inverse()])
def test_a_query_costs_its_epsilon_and_has_the_noise_of_its_sensitivity(relation, weight):
    setting = Setting(4, 10_000, Neighbours(relation), 1e-13)
    plan = dpx.Influence(0.1, 1e-6, weight=weight).plan(Z, setting, History())
    assert mu_of(price(plan.events)) == pytest.approx(gdp.mu(0.1, 1e-6), rel=1e-6)
    assert mu_of(price(plan.events)) <= gdp.mu(0.1, 1e-6) * (1 + 1e-12)
    expected = sensitivity.linear(weight) * Neighbours(relation).multiplier / gdp.mu(0.1, 1e-6)
    assert plan.gaussian.sigma == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("others", ["ignored", "against", None])
def test_answers_are_mim_within_their_errors(modelled_data, others):
    found = explain(modelled_data, dpx.Influence(0.5, 1e-6, others))
    truth = evaluation.mim(modelled_data, Z, others=others)
    assert (np.abs(found.values - truth) <= 5 * found.error).all()
    assert (found.error > 0).all()
    assert np.linalg.norm(truth) > 20 * found.error.max()  # so the test above says something
    assert found.details == {"quantity": "influence", "others": others or "ignored"}
    assert found.cost.epsilon == pytest.approx(0.5, rel=1e-3)


@pytest.mark.parametrize("label", [-0.4, 0.7])
def test_with_labels_only_both_classes_count_unless_the_label_is_given(labelled_data, label):
    assert explain(labelled_data, dpx.Influence(0.5, 1e-6)).details["others"] == "against"
    found = explain(labelled_data, dpx.Influence(0.5, 1e-6, label=label))
    assert found.details["others"] == "ignored"
    assert found.values == pytest.approx(evaluation.mim(labelled_data, Z, label=label), abs=5 * found.error.max())
    explainer = dpx.Explainer(labelled_data, dpx.Budget(1, 1e-6), dpx.Influence(0.5, 1e-6, "ignored"))
    with pytest.raises(ParameterError, match="others='against'"):
        explainer.explain(Z)
    assert explainer.spent.epsilon == 0


def test_the_model_is_asked_about_the_query_only_and_its_failure_costs_nothing():
    asked = []

    def model(X):
        asked.append(len(X))
        if len(asked) > 3:
            raise RuntimeError("gone")
        return answer(X)

    data = dpx.PrivateData(rows(500), dpx.Domain.encoded(4), model=model)
    explainer = dpx.Explainer(data, dpx.Budget(10, 1e-6), dpx.Influence(0.5, 1e-6))
    explainer.explain(Z)
    assert asked == [64, 500, 1]  # made-up records, the rows, the query
    with pytest.raises(DataError, match="RuntimeError"):
        explainer.explain(Z)
    assert len(explainer.history) == 1


def test_influence_and_local_optima_do_not_learn_from_each_other(labelled_data, tmp_path):
    ledger, budget = f"sqlite:///{tmp_path / 'both.ledger'}", dpx.Budget(5, 1e-6)
    influence = dpx.Explainer(labelled_data, budget, dpx.Influence(0.2, 1e-6), ledger=ledger)
    optima = dpx.Explainer(labelled_data, budget, dpx.Adaptive(0.2, 1e-6), ledger=ledger)
    influence.explain(Z)
    optima.explain(Z)
    assert len(influence.history) == len(optima.history) == 1
    assert influence.history[0].details["quantity"] == "influence"
    assert "quantity" not in optima.history[0].details
    with pytest.raises(ParameterError, match="neighbour"):
        dpx.NonInteractive(influence.history).explain(Z)
    near = dpx.NonInteractive(influence.history, "neighbour").explain(Z)
    assert (near.values == influence.history[0].values).all()
    release = SimpleNamespace(domain=labelled_data.domain)
    with pytest.raises(ParameterError, match="release="):
        dpx.Explainer(labelled_data, budget, dpx.Influence(0.2, 1e-6), release=release)


def test_a_service_knows_it_by_name():
    served = mechanism_of({"kind": "influence", "epsilon": 0.2, "delta": 1e-7, "weight": {"kind": "gaussian", "width": 0.5}})
    assert served == dpx.Influence(0.2, 1e-7, weight=dpx.weights.Gaussian(0.5))


@pytest.mark.parametrize("keywords", [{"epsilon": 0}, {"delta": 1}, {"others": "nobody"}, {"label": 3}, {"label": float("nan")}])
def test_meaningless_parameters_are_refused_when_the_mechanism_is_made(keywords):
    with pytest.raises(ParameterError):
        dpx.Influence(**{"epsilon": 0.1, "delta": 1e-6, **keywords})
