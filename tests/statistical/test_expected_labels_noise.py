"""Histograms of numbers, counts of distances and moments of compared labels have noise of the stated scale, and 0.8 of it is noticed."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from dpexplain.estimation.public_points import PublicModel
from dpexplain.mechanisms.histogram_counts import number_counts_share
from dpexplain.mechanisms.moments_plan import CENTRE_SHARE, distance_share, plan_sketch
from dpexplain.mechanisms.setting import Setting
from dpexplain.noise.seeded import SeededNoise
from dpexplain.privacy.events import mu_of, price
from dpexplain.privacy.relation import Neighbours
from noise_support import LAYOUT, Scaled, every_relation, has_unit_scale, mixed_rows, record_releases, run

MU, SIZE = 0.3, 5000
MODEL = PublicModel(lambda points: 0.3 * points[:, 0] - 0.2)


def setting_of(neighbours, size=SIZE):
    """More rows are declared than there are: with so few, counts would be useless and are not planned."""
    return Setting(LAYOUT.width, size, neighbours, mixed_rows().summation_error)


def plan_for(neighbours, model=MODEL):
    return plan_sketch(LAYOUT, MU, setting_of(neighbours), model)


def standardised_draws(factor, neighbours, runs=150):
    """The noise of all releases but the first, divided by what their bounds demand."""
    plan, store, noise = plan_for(neighbours), mixed_rows(), Scaled(SeededNoise(5), factor)
    setting, draws = setting_of(neighbours), []
    counted, compared = number_counts_share(LAYOUT, MU, setting), distance_share(MU, setting)
    for _ in range(runs):
        (_, _, numbers), (_, plane, distances), (_, query, moments) = record_releases(plan, store, noise)[1:]
        errors = (
            (numbers - store.histograms(plan.numbers.query.asked), counted, np.sqrt(2)),  # of two numbers
            (distances - store.label_distances(plane), compared, 1.0),
            (moments - query.vector(store.normalised(query)), 1 - CENTRE_SHARE - counted - compared, 1.0),
        )
        draws += [error / (bound * neighbours.multiplier / (MU * np.sqrt(share))) for error, share, bound in errors]
    return np.concatenate(draws)


@every_relation
def test_noise_has_the_stated_scale_and_less_is_noticed(neighbours):
    assert has_unit_scale(lambda factor: standardised_draws(factor, neighbours))


def test_the_four_releases_cost_the_whole_budget_and_not_more():
    plan = plan_for(Neighbours())
    assert len(plan.events) == 4
    assert MU * (1 - 1e-6) <= mu_of(price(plan.events)) <= MU
    assert run(plan, mixed_rows(), SeededNoise(0))[1] == plan.events


def test_counts_of_many_rows_cost_less():
    for share in (distance_share, partial(number_counts_share, LAYOUT)):
        useless, few, many = (share(MU, setting_of(Neighbours(), size)) for size in (60, 3000, 10**7))
        assert useless == 0 < 0.001 <= many < few <= 0.05
    plan = plan_sketch(LAYOUT, MU, setting_of(Neighbours(), 60), MODEL)
    assert plan.comparison is plan.numbers is None
    assert len(plan.events) == 2


def test_counts_that_are_not_needed_are_not_charged():
    def broken(points):
        raise ValueError("no such record")

    plan = plan_for(Neighbours(), PublicModel(broken))
    sketch, events = run(plan, mixed_rows(), SeededNoise(0))
    assert sketch.query.expected is None
    assert events == (*plan.events[:2], plan.events[3])


@pytest.mark.parametrize("seed", range(3))
def test_the_plane_and_its_scale_follow_from_what_was_released(seed):
    """The same released numbers give the same query, whatever the rows are."""
    plan, store = plan_for(Neighbours()), mixed_rows()
    (_, _, centre), _, _, (_, query, _) = record_releases(plan, store, SeededNoise(seed))
    around = replace(plan.query_around(centre, plan.centre.sigma), margins=query.margins)
    again = plan.comparison.run(around, SIZE, plan.moments.sigma, _Replayed(store, plan, seed))
    assert (again.expected is None) == (query.expected is None)
    if query.expected is not None:
        assert again.expected.to_dict() == query.expected.to_dict()


class _Replayed:
    """A door that repeats what was released."""

    def __init__(self, store, plan, seed):
        self._released = [released for _, _, released in record_releases(plan, store, SeededNoise(seed))]

    def release(self, mechanism, at):
        return self._released[2]
