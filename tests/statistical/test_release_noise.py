"""The noise a release adds has the stated scale in every coordinate of both stages, and 0.8 of it is noticed."""

import numpy as np

from dpexplain.core.release_moments import CentreMoments
from dpexplain.mechanisms.moments_plan import CENTRE_SHARE, plan_sketch
from dpexplain.mechanisms.setting import Setting
from dpexplain.noise.seeded import SeededNoise
from dpexplain.privacy.events import mu_of, price
from dpexplain.privacy.relation import Neighbours
from noise_support import LAYOUT, Scaled, every_relation, has_unit_scale, mixed_rows, release, run

MU = 0.3


class Spying:
    """Rows that remember what they were asked."""

    def __init__(self, rows):
        self.rows, self.asked = rows, None

    def centre(self, query):
        return self.rows.centre(query)

    def normalised(self, query):
        self.asked = query
        return self.rows.normalised(query)


def setting(neighbours, store):
    return Setting(LAYOUT.width, 60, neighbours, store.summation_error)


def standardised_draws(factor, neighbours, runs=300):
    """Both stages' noise divided by what their bounds demand: Δ times the multiplier, over each stage's share of μ."""
    store = mixed_rows()
    plan, spy = plan_sketch(LAYOUT, MU, setting(neighbours, store)), Spying(store)
    noise = Scaled(SeededNoise(5), factor)
    reach = CentreMoments(LAYOUT).sensitivity() * neighbours.multiplier
    exact, draws = store.centre(CentreMoments(LAYOUT)), []
    for _ in range(runs):
        first = release(plan.centre, exact, noise)
        draws.append((first - exact) / (reach / (MU * np.sqrt(CENTRE_SHARE))))
        sketch, _ = run(plan, spy, noise)
        true = spy.asked.vector(store.normalised(spy.asked))
        got = sketch.sums.vector(sketch.query.scales, LAYOUT)
        draws.append((got - true) / (neighbours.multiplier / (MU * np.sqrt(1 - CENTRE_SHARE))))
    return np.concatenate(draws)


@every_relation
def test_noise_has_the_stated_scale_and_less_is_noticed(neighbours):
    assert has_unit_scale(lambda factor: standardised_draws(factor, neighbours))


def test_the_two_stages_cost_the_whole_budget_and_not_more():
    plan = plan_sketch(LAYOUT, MU, setting(Neighbours(), mixed_rows()))
    assert len(plan.events) == 2
    assert MU * (1 - 1e-6) <= mu_of(price(plan.events)) <= MU
