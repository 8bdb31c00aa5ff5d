"""Sums that an answer buys beside the history's have the stated noise, their pool has the noise of a fresh answer, and 0.8 of it is noticed."""

import numpy as np

import dpexplain as dpx
from dpexplain.core.release_moments import CentreMoments
from dpexplain.mechanisms.door import Door
from dpexplain.mechanisms.history import History
from dpexplain.mechanisms.moments_plan import CENTRE_SHARE
from dpexplain.mechanisms.setting import Setting
from dpexplain.noise.seeded import SeededNoise
from dpexplain.privacy import gdp
from dpexplain.privacy.events import mu_of, price
from noise_support import LAYOUT, Scaled, every_relation, has_unit_scale, mixed_rows

CHEAP, DEAR, SIZE = dpx.Adaptive(0.5, 1e-6), dpx.Adaptive(1.0, 1e-6), 60
MU = gdp.mu(1.0, 1e-6)


def buy_sums(mechanism, setting, history, store, noise):
    """What an answer releases, and what its door counted."""
    plan = mechanism.plan(np.full(6, 0.5), setting, history)
    door = Door(store, noise, plan.events)
    history.append_sums(plan.buy(plan.lacking, door).to_dict())
    return price(door.events)


def standardised_draws(factor, neighbours, runs=250):
    """The noise of both stages in the pool of a cheap and a dear answer, divided by what the bounds demand of one dear answer."""
    store, noise = mixed_rows(), Scaled(SeededNoise(5), factor)
    setting, draws = Setting(6, SIZE, neighbours, store.summation_error, layout=LAYOUT), []
    reach = CentreMoments(LAYOUT).sensitivity() * neighbours.multiplier
    exact = store.centre(CentreMoments(LAYOUT))
    for _ in range(runs):
        history = History()
        paid = sum(buy_sums(one, setting, history, store, noise) for one in (CHEAP, DEAR))
        assert mu_of(paid) <= MU * (1 + 1e-4)
        pool = history.pool(LAYOUT, history.sums[0].labels, SIZE)
        assert len(pool.parts) == 2
        true = pool.query.vector(store.normalised(pool.query))
        got = pool.sketch(()).sums.vector(pool.query.scales, LAYOUT)
        draws.append((got - true) / (neighbours.multiplier / (MU * np.sqrt(1 - CENTRE_SHARE))))
        first = np.average([part.centre.values for part in pool.parts], axis=0, weights=[p.centre.sigma**-2 for p in pool.parts])
        draws.append((first - exact) / (reach / (MU * np.sqrt(CENTRE_SHARE))))
    return np.concatenate(draws)


@every_relation
def test_a_pool_has_the_noise_of_one_fresh_answer_and_less_is_noticed(neighbours):
    assert has_unit_scale(lambda factor: standardised_draws(factor, neighbours))
