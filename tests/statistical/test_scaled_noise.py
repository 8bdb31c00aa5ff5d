"""Noise over scaled columns has the size that bars and events state, per whole range, and 0.8 of it is noticed."""

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.mechanisms.gradient import plane_gradient
from dpexplain.mechanisms.history import History
from dpexplain.mechanisms.setting import Setting
from dpexplain.noise.secure import SecureNoise
from dpexplain.privacy.relation import Neighbours
from noise_support import Scaled, ZeroRows, has_unit_scale, record_releases, run

WIDTH, SIZE, RUNS = 60, 500, 150
POINT, SCALE = np.eye(WIDTH)[2], np.repeat([0.1, 0.5, 3.0], 20)
SETTING = Setting(WIDTH, SIZE, Neighbours(), 1e-13, ((0, 6),), scale=SCALE)


def test_influence_sums_have_the_stated_errors():
    plan = dpx.Influence(0.5, 1e-6).plan(POINT, SETTING, History())
    (event,) = plan.events
    bars = run(plan, ZeroRows(WIDTH), SecureNoise())[0].error
    assert np.allclose(bars * SCALE, event.sigma / SIZE * plan.gaussian.query.shape)
    assert has_unit_scale(
        lambda factor: np.concatenate(
            [run(plan, ZeroRows(WIDTH), Scaled(SecureNoise(), factor))[0].values / bars for _ in range(RUNS)]
        )
    )


@pytest.mark.parametrize("plane", ["paper", "fitted"])
def test_gradients_have_the_noise_of_their_bound(plane):
    plan = dpx.Basic(1.0, 1e-6, plane=plane, steps=41).plan(POINT, SETTING, History())
    (event,) = plan.events
    gradient = plane_gradient(POINT, SETTING, dpx.weights.Stable(), plan.gradient.radius * SCALE.max(), plane)
    assert event.sensitivity == pytest.approx(gradient.sensitivity, rel=1e-5)
    assert event.sensitivity >= gradient.sensitivity

    def standardised_draws(factor):
        passed = [one for _ in range(5) for one in record_releases(plan, ZeroRows(WIDTH), Scaled(SecureNoise(), factor))]
        return np.concatenate([value for _, _, value in passed]) / event.sigma

    assert has_unit_scale(standardised_draws)
