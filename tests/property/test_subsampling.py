"""`proofs/subsampling.md`: no smaller μ covers a Gaussian release of sampled rows, however few are sampled."""

from math import exp, expm1, log, log1p

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from dpexplain.privacy import gdp


def log_delta_of_sample(mu, p, epsilon):
    """ln(p·δ_μ(ε')) with e^{ε'} = 1 + (e^ε - 1)/p."""
    amplified = log1p(expm1(epsilon) / p) if epsilon < 500 else epsilon - log(p)
    return log(p) + gdp._log_delta(mu, amplified)


@settings(deadline=None)
@given(st.floats(0.05, 3.0), st.floats(1e-4, 0.9), st.floats(0.5, 0.97))
def test_every_smaller_mu_is_refuted_at_some_epsilon(mu, p, share):
    refuted = [e for e in mu * np.geomspace(0.1, 1e4, 60) if log_delta_of_sample(mu, p, e) > gdp._log_delta(share * mu, e)]
    assert refuted


@settings(deadline=None)
@given(st.floats(0.05, 3.0), st.floats(1e-4, 0.9), st.floats(0.01, 20.0))
def test_mu_itself_is_enough(mu, p, epsilon):
    assert log_delta_of_sample(mu, p, epsilon) <= gdp._log_delta(mu, epsilon) + 1e-9


@pytest.mark.parametrize(("mu", "p", "epsilon"), [(1.0, 0.1, 0.3), (2.0, 0.5, 1.0), (0.5, 0.01, 0.05)])
def test_the_curve_is_that_of_the_mixture(mu, p, epsilon):
    """∫ max(Q - e^ε P, 0) by numerical integration."""
    x = np.linspace(-40, 40, 2_000_001)
    excess = (1 - p) * norm.pdf(x) + p * norm.pdf(x - mu) - exp(epsilon) * norm.pdf(x)
    integral = np.maximum(excess, 0).sum() * (x[1] - x[0])
    assert exp(log_delta_of_sample(mu, p, epsilon)) == pytest.approx(integral, rel=1e-5)
