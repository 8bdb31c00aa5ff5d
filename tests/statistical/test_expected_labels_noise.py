"""The noise on counts of distances, and on moments of labels that are compared with a plane, has the stated scale, and 0.8 of it is noticed."""

import numpy as np
import pytest

from dpexplain.core.expected_labels import LabelDistances
from dpexplain.estimation.public_points import PublicModel
from dpexplain.mechanisms.moments_plan import CENTRE_SHARE, distance_share, plan_sketch
from dpexplain.mechanisms.setting import Setting
from dpexplain.noise.seeded import SeededNoise
from dpexplain.privacy.events import mu_of, price
from dpexplain.privacy.relation import Neighbours
from noise_support import LAYOUT, Scaled, every_relation, has_unit_scale, mixed_rows, record_releases, run

MU = 0.3
MODEL = PublicModel(lambda points: 0.3 * points[:, 0] - 0.2)


def setting_of(neighbours, size=3000):
    """More rows are declared than there are: with so few, counts would be useless and are not planned."""
    return Setting(LAYOUT.width, size, neighbours, mixed_rows().summation_error)


def plan_for(neighbours, model=MODEL):
    return plan_sketch(LAYOUT, MU, setting_of(neighbours), model)


def standardised_draws(factor, neighbours, runs=150):
    """The noise of the second and third release, divided by what their bounds demand."""
    plan, store, noise = plan_for(neighbours), mixed_rows(), Scaled(SeededNoise(5), factor)
    counted, draws = distance_share(MU, setting_of(neighbours)), []
    for _ in range(runs):
        for _, at, released in record_releases(plan, store, noise)[1:]:
            exact = store.label_distances(at) if isinstance(at, LabelDistances) else at.vector(store.normalised(at))
            share = counted if isinstance(at, LabelDistances) else 1 - CENTRE_SHARE - counted
            draws.append((released - exact) / (neighbours.multiplier / (MU * np.sqrt(share))))
    return np.concatenate(draws)


@every_relation
def test_noise_has_the_stated_scale_and_less_is_noticed(neighbours):
    assert has_unit_scale(lambda factor: standardised_draws(factor, neighbours))


def test_the_three_releases_cost_the_whole_budget_and_not_more():
    plan = plan_for(Neighbours())
    assert len(plan.events) == 3
    assert MU * (1 - 1e-6) <= mu_of(price(plan.events)) <= MU
    assert run(plan, mixed_rows(), SeededNoise(0))[1] == plan.events


def test_counts_of_many_rows_cost_less():
    useless, few, many = (distance_share(MU, setting_of(Neighbours(), size)) for size in (60, 3000, 10**7))
    assert useless == 0 < 0.001 <= many < few <= 0.05
    plan = plan_sketch(LAYOUT, MU, setting_of(Neighbours(), 60), MODEL)
    assert plan.comparison is None
    assert len(plan.events) == 2


def test_counts_that_are_not_needed_are_not_charged():
    def broken(points):
        raise ValueError("no such record")

    plan = plan_for(Neighbours(), PublicModel(broken))
    sketch, events = run(plan, mixed_rows(), SeededNoise(0))
    assert sketch.query.expected is None
    assert events == (plan.events[0], plan.events[2])


@pytest.mark.parametrize("seed", range(3))
def test_the_plane_and_its_scale_follow_from_what_was_released(seed):
    """The same released numbers give the same query, whatever the rows are."""
    plan, store = plan_for(Neighbours()), mixed_rows()
    (_, _, centre), (_, _, _), (_, query, _) = record_releases(plan, store, SeededNoise(seed))
    again = plan.comparison.run(
        plan.query_around(centre, plan.centre.sigma), 3000, plan.moments.sigma, _Replayed(store, plan, seed)
    )
    assert (again.expected is None) == (query.expected is None)
    if query.expected is not None:
        assert again.expected.to_dict() == query.expected.to_dict()


class _Replayed:
    """A door that repeats what was released."""

    def __init__(self, store, plan, seed):
        self._released = [released for _, _, released in record_releases(plan, store, SeededNoise(seed))]

    def release(self, mechanism, at):
        return self._released[1]
