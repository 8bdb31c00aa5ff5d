"""The claims of `proofs/free_plane.md` about a plane that is free at the query, attacked with records of any kind."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import dpexplain as dpx
from dpexplain.backends.oracle import OracleRows
from dpexplain.core import sensitivity
from dpexplain.core.ball import Ball, FreeBall
from dpexplain.core.free_plane import constant_for
from dpexplain.core.layout import Layout
from dpexplain.core.moments import LocalMoments
from dpexplain.core.reach import LEAST_FREE_SHARE, FreeReach, SharePath
from dpexplain.core.weights import Custom, Gaussian, Inverse, Stable, Window
from dpexplain.errors import ParameterError
from dpexplain.mechanisms.gaussian import GaussianMechanism
from dpexplain.mechanisms.history import History
from dpexplain.mechanisms.plane_choice import flat_distance, paid_gradient, radius_for
from dpexplain.mechanisms.setting import Setting
from dpexplain.noise.seeded import SeededNoise
from dpexplain.privacy.relation import Neighbours
from hypothesis_support import examples
from noise_support import run

WEIGHTS = [Stable(1.0), Stable(0.3), Gaussian(0.8), Window(0.5), Custom(lambda d: np.exp(-d) * (1 + np.sin(9 * d)), c=1.0)]
weights = st.sampled_from(WEIGHTS)
vectors = arrays(np.float64, 3, elements=st.floats(-4, 4))
fast = settings(deadline=None, max_examples=examples(150))


def gradient_of(record, label, z, weight, state, s):
    moments = OracleRows(record[None], np.array([label])).local(LocalMoments(z, weight))
    found = moments.free_gradient(state)
    return np.append(found[:-1], s * found[-1])


@fast
@given(weights, vectors, vectors, st.floats(-1, 1), vectors, st.floats(-1, 1), st.floats(0.1, 6), st.floats(0.02, 3))
def test_no_record_moves_the_gradient_further_than_the_bound(weight, x, z, y, direction, a, radius, s):
    state = FreeBall(Ball(radius)).project(np.append(direction * 3, a))
    moved = np.linalg.norm(gradient_of(x, y, z, weight, state, s))
    assert moved <= sensitivity.free_gradient(weight, radius, s) * (1 + 1e-9)


@pytest.mark.parametrize("weight", WEIGHTS[:4], ids=lambda w: w.kind)
@pytest.mark.parametrize(("radius", "s"), [(1.0, 0.2), (3.0, 1.0)])
def test_a_record_attains_the_bound(weight, radius, s):
    distances = np.concatenate([np.geomspace(1e-9, 1e-2, 500), np.linspace(1e-2, 60, 200_001)])
    worst = distances[np.argmax(weight(distances) * np.hypot(distances, s) * (radius * distances + 2))]
    found = gradient_of(np.array([worst, 0.0]), -1.0, np.zeros(2), weight, np.array([radius, 0.0, 1.0]), s)
    assert np.linalg.norm(found) >= 0.98 * sensitivity.free_gradient(weight, radius, s)


def test_a_weight_without_a_bound_at_the_query_is_refused():
    with pytest.raises(ParameterError, match="Use Stable"):
        dpx.Basic(weight=Inverse())
    assert dpx.Basic(weight=Inverse(), plane="paper").plane == "paper"


LAYOUT = Layout((0, 1, 4, 5), (1, 4, 5, 6), (True, False, False, True))
SETTING = Setting(6, 500, Neighbours(), 1e-13, ((1, 4),), layout=LAYOUT)


def records():
    for number, category, binary, other in product((0.0, 0.3, 1.0), (None, 0, 1, 2), (0.0, 1.0), (0.0, 0.6, 1.0)):
        row = np.array([number, 0, 0, 0, binary, other], dtype=np.float64)
        if category is not None:
            row[1 + category] = 1.0
        yield row


@fast
@given(
    st.sampled_from(WEIGHTS),
    arrays(np.float64, 6, elements=st.floats(-1, 1)),
    st.floats(-1, 1),
    st.sampled_from(list(records())),
    st.floats(0.05, 1.5),
)
def test_no_record_of_the_domain_reaches_further_than_reach_and_a_path_stays_above_it(weight, direction, a, z, s):
    reach, ball = FreeReach.with_constant(z, LAYOUT, weight, 2.0, s), FreeBall(Ball(2.0))
    state = ball.project(np.append(direction * 2, a))
    moved = max(np.linalg.norm(gradient_of(row, y, z, weight, state, s)) for row in records() for y in (-1.0, 1.0))
    assert moved <= reach.bound_at(state) * (1 + 1e-9)
    share = SharePath(reach)
    for step in np.linspace(0, 1, 5):
        here = ball.project(step * state)
        assert share(here) >= min(max(reach.bound_at(here) / reach.everywhere, LEAST_FREE_SHARE), 1.0) - 1e-12


def test_what_is_released_differs_by_no_more_than_is_paid_for(monkeypatch):
    """All the way of one descent, for every record that could be there or not: releases follow the same path whatever they are given."""
    rng, steps = np.random.default_rng(2), 30
    z = np.array([0.3, 0, 1, 0, 1, 0.5])
    plan = dpx.Basic(3.0, 1e-6, steps=steps).plan(z, SETTING, History())
    outputs, given = 60 * rng.standard_normal((steps, 7)), []

    def stubborn(self, value, drawn):
        given.append(value)
        return outputs[len(given) - 1]

    monkeypatch.setattr(GaussianMechanism, "perturb", stubborn)
    sent = []
    for row in records():
        for label in (-1.0, 1.0):
            given.clear()
            run(plan, OracleRows(row[None], np.array([label])), SeededNoise(0))
            sent.append(np.linalg.norm(given, axis=1))
    paid, largest = plan.events[0].sensitivity, np.max(sent, axis=0)
    assert (largest <= paid).all()
    assert (largest[:-1] > 0.6 * paid).all()  # the noise follows what records can do


@pytest.mark.parametrize("norm", [2.0, 5.0, 20.0])
def test_the_constant_balances_noise_on_the_answer_against_noise_on_the_slopes(norm):
    knee = (np.sqrt(3) - 1) / 2
    shape = np.full(4, norm / 2)
    assert constant_for(Stable(), shape) == pytest.approx(np.sqrt(knee / norm), rel=0.01)
    best = constant_for(Gaussian(0.7), shape)
    variance = {s: sensitivity.free_pull(Gaussian(0.7), s) ** 2 * (norm**2 + 1 / s**2) for s in (best, best / 2, best * 2)}
    assert min(variance, key=variance.get) == best


def test_the_cap_on_slopes_grows_with_the_accuracy_that_is_paid_for():
    assert radius_for(1.0) == 2.0
    assert radius_for(0.01) == pytest.approx(3.0)
    assert radius_for(0.0001) == 20.0
    assert radius_for(1e-9) == 20.0


@pytest.mark.parametrize("distance", [0.1, 0.5, 1.4])
def test_a_flattened_weight_is_flat_and_then_in_proportion_to_the_one_it_was_made_of(distance):
    weight, flat = Stable(), Stable().flatten(distance)
    near, far = np.linspace(0, max(distance, weight.peak) * (1 - 1e-12), 50), np.linspace(max(distance, weight.peak), 9, 50)
    assert np.ptp(flat(near)) == 0
    ratio = flat(far) / weight(far)
    assert ratio == pytest.approx(np.full(50, ratio[0]))
    assert (flat == weight) == (distance < weight.peak)
    assert Gaussian(0.7).flatten(distance) == Gaussian(0.7)


def test_how_far_weights_are_flat_depends_on_codes_and_on_what_is_paid():
    few = replace(SETTING, layout=None)
    assert flat_distance(1.0, few) == 0
    assert flat_distance(1.0, SETTING) == pytest.approx(0.4 * SETTING.layout.codes_apart)
    assert flat_distance(1 / 700, SETTING) == pytest.approx(flat_distance(1.0, SETTING) / 2)
    many = replace(SETTING, layout=Layout(tuple(range(400)), tuple(range(1, 401)), (False,) * 400))
    assert flat_distance(1.0, many) == pytest.approx(np.sqrt(2))


@pytest.mark.parametrize("epsilon", [0.01, 3.0, 1000.0])
def test_no_record_of_the_domain_moves_a_paid_gradient_by_more_than_its_sensitivity(epsilon):
    """With the weight that the plan chose, at states all over its ball."""
    rng = np.random.default_rng(5)
    z = next(row for row in records() if row[2] == 1)
    gradient = paid_gradient(dpx.Basic(epsilon, 1e-6), z, SETTING)
    assert (gradient.local.weight != Stable()) == (epsilon < 1000)
    path = gradient.path()
    for _ in range(30):
        slopes = rng.standard_normal(len(z))
        slopes *= gradient.radius * rng.uniform() / np.linalg.norm(slopes)
        at = path(np.append(slopes, rng.uniform(-1, 1)))
        for row in records():
            for label in (-1.0, 1.0):
                moved = gradient.evaluate(OracleRows(row[None], np.array([label])), at)
                assert np.linalg.norm(moved) <= gradient.sensitivity
