"""What explanations say about training data: numbers by hand, and words that do not promise too much."""

from math import exp, log, log10

import numpy as np
import pytest
from scipy import stats

import dpexplain as dpx
from dpexplain.core import sensitivity
from dpexplain.errors import ParameterError
from dpexplain.noise import SeededNoise
from dpexplain.privacy import gdp
from dpexplain.privacy.events import mu_of, price
from dpexplain.privacy.relation import Neighbours
from dpexplain.privacy.training import AmplifiedGuarantee, CombinedGuarantee, LastStep, Unconditional, guarantee

NOISY = LastStep(step=1.0, sigma=2.0)  # (1 + 1)/2 = 1: γ = 2Φ(1) - 1 = 0.6827
DOMAIN = dpx.Domain([dpx.Numeric("a", 0, 1), dpx.Numeric("b", 0, 1)])
SPENT = dpx.Guarantee(gdp.mu(0.5, 1e-6), 1e-6, Neighbours())


def test_gamma_by_hand():
    one = AmplifiedGuarantee(1.0, 1e-5, NOISY)
    assert one.gamma == pytest.approx(0.682689, rel=1e-5)
    assert one.delta == pytest.approx(0.682689e-5, rel=1e-5)
    assert one.log10_gap == pytest.approx(log10(1 - 0.6826895))
    assert AmplifiedGuarantee(1.0, 1e-5, NOISY, explanations=3).gamma == pytest.approx(1 - (1 - 0.6826895) ** 3)
    assert not one.worthless
    assert "the model's own δ=1e-05 times γ=0.682689" in str(one)


def test_gamma_is_the_total_variation_of_the_two_farthest_last_steps():
    """Means 2(k + ηc) apart with standard deviation ησ, measured by integration."""
    x = np.linspace(-30, 30, 200_001)
    one, two = (stats.norm(loc=side * 2.0, scale=2.0).pdf(x) for side in (-1, 1))
    assert NOISY.log_gap == pytest.approx(log(np.trapezoid(np.minimum(one, two), x)), abs=1e-6)


def test_realistic_sizes_amplify_by_nothing_and_say_so():
    last = LastStep(step=0.1, sigma=0.0125)
    one = AmplifiedGuarantee(2.0, 1e-5, last, explanations=100)
    assert one.gamma == 1.0
    assert -1e9 < one.log10_gap < -300
    assert one.delta == 1e-5
    assert one.worthless
    assert "amplify it by nothing (1 - γ = 10^-" in str(one)


def test_the_unconditional_statement_multiplies_by_four_times_the_size():
    """Each of at most 2m̄ rows can move a sum as two records would."""
    some = Unconditional(SPENT, 100)
    assert some.mu == pytest.approx(400 * SPENT.mu)
    assert some.epsilon == gdp.epsilon(some.mu, 1e-6)
    assert "too large to protect anyone" in str(some)
    tiny = Unconditional(dpx.Guarantee(1e-4, 1e-6, Neighbours()), 100)
    assert not tiny.worthless
    assert str(tiny).endswith("for one record of its training data.")


def test_no_label_change_moves_a_gradient_further_than_claimed():
    rng = np.random.default_rng(0)
    rows, point, weight = rng.random((50, 3)), rng.random(3), dpx.weights.Stable()
    phi = rng.normal(size=3)
    phi /= np.linalg.norm(phi)
    u = rows - point
    alpha = weight(np.linalg.norm(u, axis=1))
    for _ in range(200):
        y, z = rng.choice([-1.0, 1.0], size=(2, 50))
        moved = np.linalg.norm(2 * (alpha * (z - y)) @ u)
        assert moved <= 2 * 50 * weight.c


def test_data_may_hold_twice_their_declared_size_and_the_statement_covers_it():
    """Influence at size 10 with 20 rows: all labels turned, the released sum moves by more than 2m̄ sensitivities, and by at most 4m̄."""
    rows, point, weight = np.tile([0.0, 0.5], (20, 1)), np.zeros(2), dpx.weights.Stable()
    u = rows - point
    moved = np.linalg.norm(2 * weight(np.linalg.norm(u, axis=1)) @ u)  # Σ α y u as y goes from 1 to -1
    reach = sensitivity.linear(weight)
    data = dpx.PrivateData(rows, dpx.Domain.encoded(2), labels=np.ones(20), size=10)
    one = dpx.Influence(0.1, 1e-6, others="against").plan(point, data.setting, None)
    true = moved / one.gaussian.sigma
    claimed = Unconditional(dpx.Guarantee(mu_of(price(one.events)), 1e-6, Neighbours()), data.size).mu
    assert moved > 20 * reach * 0.99
    assert true > 0.99 * claimed / 2
    assert true <= claimed


def test_a_private_models_own_guarantee_holds_without_a_last_step():
    told = guarantee(SPENT, 1000, model_epsilon=2.0, model_delta=1e-5)
    assert (told.epsilon, told.delta) == (2.0, 1e-5)
    assert "take nothing from it" in str(told)
    assert CombinedGuarantee(told, SPENT).delta == pytest.approx(1e-5 + 1e-6)


@pytest.mark.slow
def test_nothing_is_promised_whatever_the_model_where_its_own_answers_were_published():
    rows = np.random.default_rng(0).random((300, 2))
    data = dpx.PrivateData({"a": rows[:, 0], "b": rows[:, 1]}, DOMAIN, model=lambda table: 2 * np.asarray(table["a"]) - 1)
    explainer = dpx.Explainer(data, dpx.Budget(5, 1e-6), dpx.Basic(0.1, 1e-6, steps=3, plane="anchored"))
    explainer.explain({"a": 0.5, "b": 0.5})
    assert data.spent.model_answers
    with pytest.raises(ParameterError, match="the model's own answers were published"):
        guarantee(data.spent, data.size)
    assert guarantee(data.spent, data.size, model_epsilon=2.0, model_delta=1e-5, last=NOISY).delta == 1e-5  # no amplification
    assert dpx.Guarantee.from_dict(data.spent.to_dict()).model_answers
    plain = dpx.PrivateData({"a": rows[:, 0], "b": rows[:, 1]}, DOMAIN, model=lambda table: 2 * np.asarray(table["a"]) - 1)
    dpx.Explainer(plain, dpx.Budget(5, 1e-6), dpx.Basic(0.1, 1e-6, steps=3, plane="paper")).explain({"a": 0.5, "b": 0.5})
    assert not plain.spent.model_answers
    dpx.release(plain, dpx.Budget(1, 1e-6), reference=1024)
    assert plain.spent.model_answers


@pytest.mark.slow
def test_an_explainers_total_and_an_answers_cost_say_that_answers_of_the_model_were_published():
    rows = np.random.default_rng(0).random((300, 2))
    data = dpx.PrivateData({"a": rows[:, 0], "b": rows[:, 1]}, DOMAIN, model=lambda table: 2 * np.asarray(table["a"]) - 1)
    explainer = dpx.Explainer(data, dpx.Budget(5, 1e-6), dpx.Basic(0.1, 1e-6, steps=3, plane="anchored"))
    answer = explainer.explain({"a": 0.5, "b": 0.5})
    (ledger,) = data.ledgers
    for told in (explainer.spent, answer.cost, answer.guarantee, ledger.state().spent):
        with pytest.raises(ParameterError, match="the model's own answers were published"):
            guarantee(told, data.size)


@pytest.mark.slow
def test_answers_of_the_model_that_one_shard_published_are_known_where_another_one_cost_more():
    rows = np.random.default_rng(0).random((600, 2))
    data = dpx.PrivateData({"a": rows[:, 0], "b": rows[:, 1]}, DOMAIN, model=lambda table: 2 * np.asarray(table["a"]) - 1)
    first, second = data.split(2)
    cheap = dpx.Basic(0.1, 1e-6, steps=3, plane="anchored")
    dpx.Explainer(first, dpx.Budget(5, 1e-6), cheap, noise=SeededNoise(0)).explain({"a": 0.5, "b": 0.5})
    dpx.Explainer(second, dpx.Budget(5, 1e-6), dpx.Basic(0.5, 1e-6, steps=3, plane="paper")).explain({"a": 0.5, "b": 0.5})
    assert data.spent.mu == second.spent.mu > first.spent.mu
    assert not second.spent.model_answers
    assert not second.spent.note
    with pytest.raises(ParameterError, match="the model's own answers were published"):
        guarantee(data.spent, data.size)
    assert "seed" in data.spent.note


def test_the_best_statement_is_chosen():
    assert isinstance(guarantee(SPENT, 1000), Unconditional)
    assert isinstance(guarantee(SPENT, 1000, model_epsilon=2.0, model_delta=1e-5, last=NOISY), AmplifiedGuarantee)
    quiet = dpx.Guarantee(1e-6, 1e-6, Neighbours())
    assert isinstance(guarantee(quiet, 100, model_epsilon=8.0, model_delta=1e-5, last=NOISY), Unconditional)


def test_a_person_in_both_sets_pays_for_both():
    training = AmplifiedGuarantee(1.0, 1e-5, NOISY)
    both = CombinedGuarantee(training, SPENT)
    assert both.epsilon == pytest.approx(1.0 + 0.5, rel=1e-6)
    chains = exp(1.0) * 1e-6 + training.delta, 1e-6 + exp(0.5) * training.delta
    assert both.delta == pytest.approx(min(1.1e-5, *chains))
    assert str(both).startswith("For a person whose records are both in the training data and")
    without = CombinedGuarantee(Unconditional(dpx.Guarantee(1e-4, 1e-6, Neighbours()), 10), SPENT)
    assert without.delta >= 2e-6


def test_they_are_written_down():
    for statement in (
        AmplifiedGuarantee(1.0, 1e-5, NOISY),
        Unconditional(SPENT, 10),
        CombinedGuarantee(Unconditional(SPENT, 1), SPENT),
    ):
        told = statement.to_dict()
        assert told["statement"] == str(statement)
        assert told["epsilon"] == statement.epsilon


@pytest.mark.parametrize("wrong", [dict(step=0), dict(sigma=-1), dict(radius=float("nan")), dict(c=float("inf"))])
def test_meaningless_steps_are_refused(wrong):
    with pytest.raises(ParameterError):
        LastStep(**{"step": 1.0, "sigma": 1.0, **wrong})


def test_meaningless_models_are_refused():
    with pytest.raises(ParameterError):
        AmplifiedGuarantee(-1.0, 1e-5, NOISY)
    with pytest.raises(ParameterError):
        AmplifiedGuarantee(1.0, 1e-5, NOISY, explanations=0)
    with pytest.raises(ParameterError):
        Unconditional(SPENT, 0)


@pytest.mark.parametrize("mechanism", [dpx.Basic(0.5, 1e-6, plane="paper"), dpx.Adaptive(0.5, 1e-6, plane="paper")])
def test_the_last_step_is_in_an_answers_details(mechanism):
    rng = np.random.default_rng(0)
    rows = rng.random((500, 2))
    data = dpx.PrivateData(rows, dpx.Domain.encoded(2), labels=np.sign(rows[:, 0] - 0.5))
    answer = dpx.Explainer(data, dpx.Budget(5, 1e-6), mechanism).explain([0.5, 0.5])
    last = LastStep(answer.details["last_step"], answer.details["sigma"])
    assert guarantee(data.spent, data.size, model_epsilon=1.0, model_delta=1e-5, last=last).epsilon <= 1.0
