"""The noise on β̃ and on the gradients that follow has the scale the events state, and 0.8 of it is noticed."""

import numpy as np
from scipy import stats

import dpexplain as dpx
from dpexplain.core.moments import Moments
from dpexplain.mechanisms.door import Door
from dpexplain.mechanisms.history import History, ReleasedAnswer
from dpexplain.mechanisms.setting import Setting
from dpexplain.noise.secure import SecureNoise
from dpexplain.privacy.relation import Neighbours
from noise_support import Scaled, record_releases, releases

WIDTH, SIZE = 8, 1000


class Slope:
    """Rows with the same gradient everywhere."""

    width, summation_error = WIDTH, 1e-13

    def local(self, query):
        return Moments(np.zeros((WIDTH, WIDTH)), np.full(WIDTH, -SIZE * 0.2 / np.sqrt(WIDTH)), np.zeros(WIDTH))  # ‖∇L‖ = 0.4


def plan():
    past = History.of([ReleasedAnswer(np.full(WIDTH, 5.0), np.zeros(WIDTH))])
    return dpx.Adaptive(2.0, 1e-6, 200, rule="paper", plane="paper").plan(
        np.zeros(WIDTH), Setting(WIDTH, SIZE, Neighbours(), 1e-13), past
    )


def norm_p_value(share, draws=8000):
    planned, rows = plan(), Slope()
    noise, event = Scaled(SecureNoise(), share), planned.events[0]
    true = planned.norm.query.evaluate(rows)
    drawn = releases(planned.norm, true, noise, draws)[:, 0] - true[0]
    return stats.kstest(drawn, stats.norm(scale=event.sigma).cdf).pvalue


def gradient_p_value(share, runs=8):
    """Every coordinate that a few runs release, in units of the σ that is charged."""
    scaled = []
    for _ in range(runs):
        for mechanism, at, out in record_releases(plan(), Slope(), Scaled(SecureNoise(), share))[1:]:  # the first is β̃
            scaled.append((out - mechanism.query.evaluate(Slope(), at)) / mechanism.sigma)
    return stats.kstest(np.concatenate(scaled), "norm").pvalue


def test_the_norms_noise_has_the_stated_scale_and_less_is_noticed():
    assert norm_p_value(1.0) > 1e-6
    assert norm_p_value(0.8) < 1e-5


def test_the_gradients_noise_has_the_settled_scale_and_less_is_noticed():
    assert gradient_p_value(1.0) > 1e-6
    assert gradient_p_value(0.8) < 1e-5


def test_a_run_measures_the_norm_with_that_noise():
    planned, noise = plan(), SecureNoise()
    event = planned.events[0]
    measured = np.array([planned.measure(Door(Slope(), noise, planned.events)) for _ in range(600)]) * SIZE
    assert (measured >= 0).all()
    below = stats.norm(loc=0.4 * SIZE, scale=event.sigma).cdf(measured[measured > 0])
    zero = stats.norm(loc=0.4 * SIZE, scale=event.sigma).cdf(0.0)
    assert stats.kstest((below - zero) / (1 - zero), "uniform").pvalue > 1e-6
