"""The noise on another model's label moments has the stated scale, and 0.8 of it is noticed."""

import numpy as np

from dpexplain.backends.dense import DenseRows
from dpexplain.core.label_moments import LabelMoments
from dpexplain.core.layout import Layout
from dpexplain.mechanisms.label_moments_plan import plan_label_moments
from dpexplain.mechanisms.setting import Setting
from dpexplain.noise.seeded import SeededNoise
from dpexplain.privacy.events import mu_of, price
from noise_support import Scaled, every_relation, has_unit_scale, run

WIDTH, MU = 20, 0.3
LAYOUT = Layout(tuple(range(WIDTH)), tuple(range(1, WIDTH + 1)), (True,) * WIDTH)


def plan_for(neighbours):
    rng = np.random.default_rng(0)
    store = DenseRows(iter([rng.random((60, WIDTH))]), rng.uniform(-1, 1, 60), WIDTH)
    query = LabelMoments(LAYOUT, np.full(WIDTH, 0.5), np.full(WIDTH, 0.1))
    setting = Setting(WIDTH, 60, neighbours, store.summation_error)
    return plan_label_moments(query, MU, setting, lambda rows: np.tanh(rows[:, [0]] - rows[:, [4]])), query, store


def standardised_draws(factor, neighbours, runs=400):
    plan, query, store = plan_for(neighbours)
    noise = Scaled(SeededNoise(5), factor)
    (labelled,) = store.relabel(lambda rows: np.tanh(rows[:, [0]] - rows[:, [4]]))
    exact = query.vector(labelled.normalised(query))
    draws = [(run(plan, store, noise)[0] - exact) / (neighbours.multiplier / MU) for _ in range(runs)]
    return np.concatenate(draws)


@every_relation
def test_noise_has_the_stated_scale_and_less_is_noticed(neighbours):
    assert has_unit_scale(lambda factor: standardised_draws(factor, neighbours))


@every_relation
def test_it_costs_what_was_planned_and_not_more(neighbours):
    plan, _, store = plan_for(neighbours)
    assert 0.999 * MU <= mu_of(price(plan.events)) <= MU
    assert run(plan, store, SeededNoise(0))[1] == plan.events
