"""The noise that a run really adds to each gradient has the stated scale, and 0.8 of it is noticed."""

import numpy as np
import pytest
from scipy import stats

import dpexplain as dpx
from dpexplain.mechanisms.history import History
from dpexplain.mechanisms.setting import Setting
from dpexplain.noise.secure import SecureNoise
from dpexplain.privacy.relation import Neighbours
from noise_support import Scaled, ZeroRows, gaussian, record_releases, releases

WIDTH, SIZE, GRADIENTS = 8, 1000, 1000


PLAIN = dpx.Basic(1.0, 1e-6, steps=GRADIENTS + 1, plane="paper")
FITTED = dpx.Basic(1.0, 1e-6, steps=GRADIENTS + 1)
ANCHORED = dpx.Basic(1.0, 1e-6, steps=GRADIENTS + 1, plane="anchored").with_model(lambda rows: np.full(len(rows), 0.7))


def p_value(mechanism, share):
    """Kolmogorov-Smirnov of every released coordinate of one run against N(0, σ²), σ from the plan's own event."""
    plan = mechanism.plan(np.zeros(WIDTH), Setting(WIDTH, SIZE, Neighbours(), 1e-13), History())
    event = plan.events[0]
    released = [out for _, _, out in record_releases(plan, ZeroRows(WIDTH), Scaled(SecureNoise(), share))]
    assert len(released) == event.count == GRADIENTS
    return stats.kstest(np.concatenate(released), stats.norm(scale=event.sigma).cdf).pvalue


@pytest.mark.parametrize("mechanism", [PLAIN, ANCHORED, FITTED], ids=["plain", "anchored", "fitted"])
def test_noise_has_the_stated_scale_and_less_is_noticed(mechanism):
    assert p_value(mechanism, 1.0) > 1e-6
    assert p_value(mechanism, 0.8) < 1e-5


@pytest.mark.slow
def test_neighbours_cannot_be_told_apart_better_than_promised():
    """A likelihood-ratio attack on one released gradient at the worst record stays within the μ it was charged."""
    mu, draws, noise = 1.0, 40_000, SecureNoise()
    mechanism = gaussian(1.0, 2, mu)
    without = releases(mechanism, np.zeros(2), noise, draws)[:, 0]
    with_record = releases(mechanism, np.array([1.0, 0.0]), noise, draws)[:, 0]
    gap = (with_record.mean() - without.mean()) / without.std()
    assert gap == pytest.approx(mu, abs=0.05)
    assert gap < mu + 0.04
