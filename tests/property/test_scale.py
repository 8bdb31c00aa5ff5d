"""A public scale of columns: no record of any scaled domain moves a sum further than is paid for, and units change nothing. `proofs/scale.md`."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.backends.oracle import OracleRows
from dpexplain.core import weights
from dpexplain.core.ball import Ball, FreeBall
from dpexplain.core.layout import Layout
from dpexplain.core.reach import FreeReach, Reach
from dpexplain.mechanisms.gradient import plane_gradient
from dpexplain.mechanisms.history import History
from dpexplain.mechanisms.setting import Setting
from dpexplain.noise.seeded import SeededNoise
from dpexplain.privacy.relation import Neighbours

FEATURES = (
    dpx.Numeric("a", 0, 1),
    dpx.Categorical("b", values=list("pqrs")),
    dpx.Binary("c"),
    dpx.Numeric("d", 0, 1),
    dpx.Categorical("e", values=["x", "y"], other="else"),
    dpx.Date("f", "2000-01-01", "2020-01-01"),
)
WIDTH = dpx.Domain(FEATURES).width
WEIGHTS = [weights.Stable(), weights.Stable(4.0), weights.Gaussian(0.7), weights.Window(1.0)]

scales = st.lists(st.sampled_from([0.05, 0.3, 1.0, 2.5]), min_size=6, max_size=6)
records = st.fixed_dictionaries(
    {
        "a": st.floats(-1, 2) | st.none(),
        "b": st.sampled_from([*"pqrs", "unknown"]),
        "c": st.booleans(),
        "d": st.floats(0, 1),
        "e": st.sampled_from(["x", "y", "w"]),
        "f": st.sampled_from(["2000-01-01", "2003-05-06", "2020-01-01", None]),
    }
)
directions = st.lists(st.floats(-1, 1) | st.just(0.0), min_size=WIDTH, max_size=WIDTH).map(np.array)


def domain_of(given_scales, whole=1.0):
    return dpx.Domain([replace(one, scale=s) for one, s in zip(FEATURES, given_scales, strict=True)], scale=whole)


def setting_of(domain, size=500):
    one_hot = tuple((block.start, block.stop) for block in domain.blocks if block.kind == "one-hot")
    layout = Layout.of(domain.blocks)
    return Setting(domain.width, size, Neighbours(), 1e-13, one_hot, layout=layout, scale=layout.scale)


@given(scales, st.sampled_from(WEIGHTS), records, records, directions, st.floats(-1, 1))
def test_no_record_of_a_scaled_domain_reaches_further(given_scales, weight, record, query, direction, answer):
    domain = domain_of(given_scales)
    layout = Layout.of(domain.blocks)
    scale = np.ones(WIDTH) if layout.scale is None else layout.scale
    x, z = domain.encode([record])[0], domain.encode([query])[0]
    u = scale * (x - z)
    length, psi = float(np.linalg.norm(u)), Ball(3.0).project(3 * direction)
    reach = Reach.around_point(z, layout, weight, 3.0, answer)
    moved = 2 * weight(np.array([length]))[0] * length * (abs(psi @ u + answer) + 1)
    assert moved <= reach.bound_at(psi)
    assert moved <= reach.share(psi) * reach.everywhere * (1 + 1e-12)
    free = FreeReach.with_constant(z, layout, weight, 3.0, 0.4)
    moved = 2 * weight(np.array([length]))[0] * np.hypot(length, 0.4) * (abs(psi @ u + answer) + 1)
    assert moved <= free.bound_at(np.append(psi, answer))
    assert moved <= free.share(np.append(psi, answer)) * free.everywhere * (1 + 1e-12)


@given(
    scales,
    st.sampled_from(["paper", "anchored", "fitted"]),
    st.sampled_from(WEIGHTS),
    records,
    records,
    directions,
    st.floats(-1, 1),
)
def test_what_a_record_adds_to_what_is_released_is_paid_for(given_scales, plane, weight, record, query, direction, label):
    domain = domain_of(given_scales)
    setting, z = setting_of(domain), domain.encode([query])[0]
    gradient = plane_gradient(z, setting, weight, 2.0, plane, 0.4 if plane == "anchored" else None)
    rows = OracleRows(domain.encode([record]), np.array([label]))
    state = direction * 10 if plane != "fitted" else np.append(direction * 10, label)
    place = gradient.path()(gradient.feasible(2).project(state))
    assert np.linalg.norm(gradient.evaluate(rows, place)) <= gradient.sensitivity * (1 + 1e-9)
    asked = dpx.Influence(0.5, 1e-6, weight=weight).plan(z, setting, History()).gaussian.query
    assert np.linalg.norm(asked.evaluate(rows)) <= asked.sensitivity * (1 + 1e-9)


def table(rows=3000, seed=3):
    rng = np.random.default_rng(seed)
    frame = {
        "a": rng.random(rows),
        "b": rng.choice(list("pqrs"), rows),
        "c": rng.random(rows) < 0.3,
        "d": rng.beta(2, 5, rows),
        "e": rng.choice(["x", "y"], rows),
        "f": np.datetime64("2000-01-01") + rng.integers(0, 7000, rows).astype("timedelta64[D]"),
    }
    encoded = dpx.Domain(FEATURES).encode(frame)
    return frame, np.tanh((encoded - encoded.mean(axis=0)) @ rng.standard_normal(WIDTH) + encoded[:, 0] * encoded[:, 2])


FRAME, LABELS = table()
RECORD = {name: column[0] for name, column in FRAME.items()} | {"f": "2010-01-01"}


def register(scale):
    return dpx.PrivateData(FRAME, dpx.Domain(FEATURES, scale=scale), labels=LABELS)


@pytest.mark.parametrize("scale", [0.12, 3.0])
@pytest.mark.parametrize("plane", ["paper", "fitted"])
def test_a_scale_and_a_weight_as_much_narrower_are_the_same_question(scale, plane):
    plain, scaled = register(1.0), register(scale)
    first = evaluation.optimum(plain, RECORD, weight=weights.Gaussian(0.9), plane=plane)
    second = evaluation.optimum(scaled, RECORD, weight=weights.Gaussian(0.9 * scale), plane=plane)
    assert second == pytest.approx(first, rel=1e-6, abs=1e-9)


@cache
def answer_of_release(plane, scale):
    weight = weights.Gaussian(0.9 * scale)
    made = dpx.release(register(scale), dpx.Budget(1.0, 1e-6), weight=weight, noise=SeededNoise(5), plane=plane)
    return made.explain(RECORD)


@pytest.mark.parametrize("scale", [0.12, pytest.param(3.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("plane", ["paper", "fitted"])
def test_a_release_answers_it_alike(scale, plane):
    first, second = answer_of_release(plane, 1.0), answer_of_release(plane, scale)
    assert second.values == pytest.approx(first.values, rel=1e-6, abs=1e-9)
    assert second.error == pytest.approx(first.error, rel=1e-5, abs=1e-9)
    assert second.contributions().values == pytest.approx(first.contributions().values, rel=1e-6, abs=1e-9)


MECHANISMS = {
    "basic": lambda weight, plane: dpx.Basic(1.0, 1e-6, weight=weight, plane=plane),
    "adaptive": lambda weight, plane: dpx.Adaptive(1.0, 1e-6, weight=weight, plane=plane),
    "influence": lambda weight, plane: dpx.Influence(1.0, 1e-6, weight=weight),
}


@cache
def paid_answers(name, plane, scale):
    mechanism = MECHANISMS[name](weights.Gaussian(0.9 * scale), plane)
    explainer = dpx.Explainer(register(scale), dpx.Budget(30.0, 1e-4), mechanism=mechanism, noise=SeededNoise(8))
    return [explainer.explain(RECORD | {"a": a}) for a in np.linspace(0.1, 0.9, 7)]


@pytest.mark.parametrize("scale", [0.12, pytest.param(3.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("plane", ["paper", "fitted"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_a_paid_answer_has_the_same_numbers(name, plane, scale):
    for first, second in zip(paid_answers(name, plane, 1.0), paid_answers(name, plane, scale), strict=True):
        assert second.values == pytest.approx(first.values, rel=1e-2, abs=1e-2 * np.abs(first.values).max())
        assert second.cost.mu == pytest.approx(first.cost.mu, rel=1e-3)


def test_balls_hold_slopes_per_whole_range():
    rng = np.random.default_rng(1)
    for _ in range(20):
        domain = domain_of(rng.choice([0.05, 0.3, 1.0, 2.5], 6))
        setting = setting_of(domain)
        gradient = plane_gradient(np.zeros(WIDTH), setting, weights.Stable(), 2.0, "fitted")
        state = gradient.feasible(2).project(np.append(100 * rng.standard_normal(WIDTH), 5.0))
        assert isinstance(gradient.feasible(2), FreeBall)
        assert np.linalg.norm(setting.out_of_scaled(state)[:WIDTH]) <= 2.0 * (1 + 1e-9)
