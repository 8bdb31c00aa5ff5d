"""The noise on an influence answer has the scale that its error bars and its event state, and 0.8 of it is noticed."""

import numpy as np

import dpexplain as dpx
from dpexplain.mechanisms.history import History
from dpexplain.mechanisms.setting import Setting
from dpexplain.noise.secure import SecureNoise
from noise_support import Scaled, ZeroRows, every_relation, has_unit_scale, run

WIDTH, SIZE, RUNS = 60, 500, 150
POINT = np.eye(WIDTH)[2]


@every_relation
def test_noise_has_the_stated_scale_and_less_is_noticed(neighbours):
    plan = dpx.Influence(0.5, 1e-6).plan(POINT, Setting(WIDTH, SIZE, neighbours, 1e-13, ((0, 6),)), History())
    (event,) = plan.events
    bars = run(plan, ZeroRows(WIDTH), SecureNoise())[0].error
    assert np.allclose(bars, event.sigma / SIZE * plan.gaussian.query.shape)
    assert has_unit_scale(
        lambda factor: np.concatenate(
            [run(plan, ZeroRows(WIDTH), Scaled(SecureNoise(), factor))[0].values / bars for _ in range(RUNS)]
        )
    )
