"""The noise on private Shapley values has the scale that their error bars and their event state, and 0.8 of it is noticed."""

import numpy as np

import dpexplain as dpx
from dpexplain.mechanisms.history import History
from dpexplain.mechanisms.setting import Setting
from dpexplain.noise.secure import SecureNoise
from noise_support import Scaled, ZeroRows, every_relation, has_unit_scale, run

WIDTH, SIZE, RUNS = 60, 500, 160
POINT = np.eye(WIDTH)[2]


@every_relation
def test_noise_has_the_stated_scale_and_less_is_noticed(neighbours):
    mechanism = dpx.Shapley(0.5, 1e-6).with_model(lambda rows: np.zeros(len(rows)))
    plan = mechanism.plan(POINT, Setting(WIDTH, SIZE, neighbours, 1e-13, ((0, 6),), single_rows=True), History())
    (event,) = plan.events
    bars = run(plan, ZeroRows(WIDTH), SecureNoise())[0].error
    told = bars > 0
    assert told.sum() == 55  # the category's own column and 54 numbers
    assert np.allclose(bars[told], event.sigma / SIZE)

    def standardised_draws(factor):
        return np.concatenate(
            [(run(plan, ZeroRows(WIDTH), Scaled(SecureNoise(), factor))[0].values / bars)[told] for _ in range(RUNS)]
        )

    with np.errstate(invalid="ignore"):
        assert has_unit_scale(standardised_draws)
