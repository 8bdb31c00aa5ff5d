"""The numbers of SPEC §5, and agreement with independent accountants."""

from math import sqrt

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant
from scipy.stats import norm

from dpexplain.privacy import gdp, paper


@pytest.mark.parametrize(
    ("epsilon", "delta", "mu"),
    [(0.1, 1e-6, 0.0275446502), (0.01, 1e-6, 0.0032642362), (0.01, 1e-7, 0.0027622909), (1.0, 1e-6, 0.2367043807)],
)
def test_mu_of_a_budget(epsilon, delta, mu):
    assert gdp.mu(epsilon, delta) == pytest.approx(mu, abs=5.1e-11)


def test_many_small_queries_together():
    total = gdp.mu(0.01, 1e-7) * sqrt(4500)
    assert gdp.epsilon(total, 1e-6) == pytest.approx(0.76842, abs=5e-6)
    assert paper.strong_composition([0.01] * 4500, 1e-6) == pytest.approx(3.978, abs=5e-4)


@pytest.mark.parametrize(
    ("epsilon", "delta", "steps", "printed", "exact", "true_epsilon"),
    [
        (0.1, 1e-6, 200, 9307.06, 513.43, 0.00432),
        (0.01, 1e-7, 300, 122663.9, 6270.3, 0.000398),
        (1.0, 1e-6, 300, 1249.64, 73.17, 0.0479),
    ],
)
def test_what_the_papers_noise_really_costs(epsilon, delta, steps, printed, exact, true_epsilon):
    sigma = paper.basic_sigma(1, epsilon, delta, steps)
    assert sigma == pytest.approx(printed, rel=5e-6)
    assert sqrt(steps) / gdp.mu(epsilon, delta) == pytest.approx(exact, rel=1e-4)
    assert gdp.epsilon(sqrt(steps) / sigma, delta) == pytest.approx(true_epsilon, rel=3e-3)


def test_adaptive_noise_as_printed():
    """SPEC §9.8: with σ_min as printed no query of the paper's ACS setting can save an iteration."""
    sigma = paper.adaptive_sigma(498_325, 0.01, 1e-7, 300)
    assert sigma == pytest.approx(0.272, abs=5e-4)
    assert sqrt(11) * sigma > 1 / sqrt(np.log(300))


@pytest.mark.parametrize("epsilon", [1e-8, 1e-4, 0.1, 1.0, 10.0, 1e3])
@pytest.mark.parametrize("delta", [1e-300, 1e-100, 1e-12, 1e-6, 0.5])
def test_both_directions_agree_and_round_to_the_safe_side(epsilon, delta):
    mu = gdp.mu(epsilon, delta)
    assert gdp.delta(mu, epsilon) <= delta * (1 + 2e-11)
    assert gdp.epsilon(mu, delta) <= epsilon * (1 + 2e-11)
    assert gdp.delta(mu * (1 + 1e-9), epsilon) > delta * (1 - 1e-9)
    assert gdp.epsilon(mu * 1.001, delta) > epsilon


def test_no_epsilon_is_called_0_by_a_rounding_error():
    """δ(0) of μ-GDP is erf(μ/√8), here to 50 digits: below it no ε is 0."""
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(50):
        for mu in np.geomspace(1e-6, 1.0, 500).tolist():
            exact = mpmath.erf(mpmath.mpf(mu) / mpmath.sqrt(8))
            for delta in (float(exact), float(exact) * (1 - 2.0**-53)):
                assert gdp.epsilon(mu, delta) > 0 or exact <= delta


def test_the_textbook_formula_where_it_is_accurate():
    for mu in (0.3, 1.0, 2.5, 6.0):
        for epsilon in (0.0, 0.5, 2.0):
            textbook = norm.cdf(-epsilon / mu + mu / 2) - np.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2)
            assert gdp.delta(mu, epsilon) == pytest.approx(textbook, rel=1e-9)


def test_mills_integral_against_high_precision():
    """Reference values from 400-digit arithmetic."""
    references = [(0.0006558241554930752, 0.010583110135313701, 2.836964464587785e-63)]
    for mu, epsilon, delta in references:
        assert gdp.delta(mu, epsilon) == pytest.approx(delta, rel=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_random_compositions_against_privacy_loss_distributions(seed):
    rng = np.random.default_rng(seed)
    accountant, squares = PLDAccountant(value_discretization_interval=1e-4), 0.0
    for _ in range(3):
        sigma, count = float(rng.uniform(8, 40)), int(rng.integers(1, 30))
        accountant.compose(SelfComposedDpEvent(GaussianDpEvent(sigma), count))
        squares += count / sigma**2
    ours = gdp.epsilon(sqrt(squares), 1e-6)
    theirs = accountant.get_epsilon(1e-6)
    assert ours <= theirs * (1 + 1e-6)  # exact is never above a pessimistic discretisation
    assert ours == pytest.approx(theirs, rel=5e-3)


def test_pure_selection_is_charged_as_the_gaussian_that_implies_it():
    assert gdp.mu_of_pure(1e-6) == pytest.approx(1.2533141e-6, rel=1e-6)
    for epsilon in (0.01, 0.5, 3.0, 20.0):
        mu = gdp.mu_of_pure(epsilon)
        assert norm.cdf(-mu / 2) == pytest.approx(1 / (1 + np.exp(epsilon)), rel=1e-8)
