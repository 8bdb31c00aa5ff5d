"""The noise on an influence answer has the scale that its error bars and its event state, and 0.8 of it is noticed."""

import numpy as np
from scipy import stats

import dpexplain as dpx
from dpexplain.core.moments import RawSums
from dpexplain.mechanisms.base import Setting
from dpexplain.mechanisms.history import History
from dpexplain.noise.secure import SecureNoise
from dpexplain.privacy.relation import Neighbours
from noise_support import Scaled

WIDTH, SIZE, RUNS = 12, 500, 400
ONE_HOT = ((0, 6),)
PASS, REJECT = 1e-6, 1e-9


class Nobody:
    """Rows whose sums are all zero, so that an answer is its noise."""

    width, summation_error = WIDTH, 1e-13

    def raw(self, query):
        return RawSums(0.0, np.zeros(WIDTH), np.zeros((WIDTH, WIDTH)), 0.0, np.zeros(WIDTH))


def p_value(noise):
    point = np.zeros(WIDTH)
    point[2] = 1.0
    plan = dpx.Influence(0.5, 1e-6).plan(point, Setting(WIDTH, SIZE, Neighbours(), 1e-13, ONE_HOT), History())
    outcomes = [plan.run(Nobody(), noise) for _ in range(RUNS)]
    (event,) = plan.events
    assert np.allclose(outcomes[0].error, event.sigma / SIZE * plan.shape)
    draws = np.concatenate([one.values / one.error for one in outcomes])
    total = float(draws @ draws)  # χ² with as many degrees of freedom as draws
    return min(stats.kstest(draws, "norm").pvalue, 2 * stats.chi2.cdf(total, draws.size), 2 * stats.chi2.sf(total, draws.size))


def test_noise_has_the_stated_scale_and_less_is_noticed():
    assert p_value(SecureNoise()) > PASS
    assert p_value(Scaled(SecureNoise(), 0.8)) < REJECT
