"""Records of a domain that try to move the gradient at a known φ further than `proofs/reach.md` says, and show that it is tight."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpexplain as dpx
from dpexplain.backends.oracle import OracleRows
from dpexplain.core import sensitivity, weights
from dpexplain.core.ball import Ball
from dpexplain.core.layout import Layout
from dpexplain.core.reach import LEAST_SHARE, FreeReach, Reach, SharePath
from dpexplain.core.shape import noise_shape
from dpexplain.mechanisms.gaussian import GaussianMechanism
from dpexplain.mechanisms.history import History
from dpexplain.mechanisms.setting import Setting
from dpexplain.noise.seeded import SeededNoise
from dpexplain.privacy.relation import Neighbours
from noise_support import run

DOMAIN = dpx.Domain(
    [
        dpx.Numeric("a", 0, 1),
        dpx.Categorical("b", values=list("pqrs")),
        dpx.Binary("c"),
        dpx.Numeric("d", 0, 1),
        dpx.Categorical("e", values=["x", "y"], other="else"),
        dpx.Binary("f"),
    ]
)
LAYOUT = Layout.of(DOMAIN.blocks)
ONE_HOT = tuple((block.start, block.stop) for block in DOMAIN.blocks if block.kind == "one-hot")
WEIGHTS = [
    weights.Stable(1.0),
    weights.Stable(4.0),
    weights.Inverse(1.0),
    weights.Gaussian(0.7),
    weights.Gaussian(3.0),
    weights.Window(1.0),
    weights.Custom(lambda d: 1 + np.sin(9 * d), c=0.7, maximum=1.5),
]
SIZE = 8  # columns of the domains that are enumerated

private = st.fixed_dictionaries(
    {
        "a": st.floats(-1, 2) | st.none(),
        "b": st.sampled_from([*"pqrs", "unknown"]),
        "c": st.booleans(),
        "d": st.floats(0, 1),
        "e": st.sampled_from(["x", "y", "w"]),
        "f": st.booleans(),
    }
)
points = st.lists(st.floats(0, 1) | st.sampled_from([0.0, 1.0]), min_size=DOMAIN.width, max_size=DOMAIN.width).map(np.array)
directions = st.lists(st.floats(-1, 1) | st.just(0.0), min_size=DOMAIN.width, max_size=DOMAIN.width).map(np.array)


def gradient_norms(weight, phi, differences, anchor=0.0):
    """Of one record's term 2α(φ·u + c - y)u, at the worst label."""
    lengths = np.linalg.norm(differences, axis=1)
    return 2 * weight(lengths) * lengths * (np.abs(differences @ phi + anchor) + 1)


@given(st.sampled_from(WEIGHTS), private, private, st.none() | points, directions, st.just(0.0) | st.floats(-1, 1))
def test_no_record_moves_the_gradient_further(weight, record, query, point, direction, anchor):
    z = DOMAIN.encode([query])[0] if point is None else point  # z itself need not be a record
    phi, u = Ball().project(direction), DOMAIN.encode([record])[0] - z
    reach = Reach.around_point(z, LAYOUT, weight, 1.0, anchor)
    moved = gradient_norms(weight, phi, u[None], anchor)[0]
    assert moved <= reach.bound_at(phi)
    assert moved <= reach.share(phi) * reach.everywhere
    shaped = np.linalg.norm(u / noise_shape(z, ONE_HOT)) / max(np.linalg.norm(u), 1e-300)
    assert moved * shaped <= reach.bound_at(phi)


@pytest.mark.parametrize("weight", WEIGHTS[:-1], ids=lambda weight: weight.kind)
def test_among_binary_columns_some_record_attains_it(weight):
    rng = np.random.default_rng(5)
    binaries = Layout(tuple(range(SIZE)), tuple(range(1, SIZE + 1)), (False,) * SIZE)
    records = np.array(list(product([0.0, 1.0], repeat=SIZE)))
    for _ in range(20):
        z, phi = records[rng.integers(len(records))], Ball().project(rng.standard_normal(SIZE))
        largest = gradient_norms(weight, phi, records - z).max()
        assert Reach.around_point(z, binaries, weight, 1.0).bound_at(phi) == pytest.approx(largest, rel=1e-7)


def test_among_categories_and_numbers_it_is_nearly_attained():
    rng = np.random.default_rng(6)
    three = Layout((0, 3, 6, 7), (3, 6, 7, 8), (False, False, True, True))
    codes = np.vstack([np.eye(3), np.zeros(3)])
    ends = np.linspace(0, 1, 21)
    records = np.array([np.concatenate([a, b, [c, d]]) for a, b, c, d in product(codes, codes, ends, ends)])
    looseness = []
    for _ in range(30):
        z, phi = records[rng.integers(len(records))], Ball().project(rng.standard_normal(8))
        largest = gradient_norms(weights.Stable(), phi, records - z).max()
        looseness.append(Reach.around_point(z, three, weights.Stable(), 1.0).bound_at(phi) / largest)
    assert min(looseness) >= 1
    assert np.mean(looseness) < 1.08


@pytest.mark.parametrize("weight", WEIGHTS, ids=lambda weight: weight.kind)
def test_largest_pulls_are_suprema(weight):
    low, high = np.array([0.0, 0.1, 0.5, 2.0]), np.array([0.05, 0.9, 3.0, 2.5])
    grid = np.linspace(low, high, 10_001)
    found = (weight(grid) * grid).max(axis=0)
    stated = weight.largest_pull(low, high)
    assert (found <= stated * (1 + 1e-12)).all()
    if weight.kind != "custom":  # there, the cap is the bound
        assert found == pytest.approx(stated, rel=1e-3)


def test_shares_are_of_the_bound_for_the_whole_ball():
    z = np.zeros(SIZE)
    numbers = Layout(tuple(range(SIZE)), tuple(range(1, SIZE + 1)), (True,) * SIZE)
    along = Reach.around_point(z, numbers, weights.Stable(), 1.0)
    assert along.everywhere == sensitivity.gradient(weights.Stable(), 1.0)
    assert along.share(np.full(SIZE, SIZE**-0.5)) == 1.0  # a record can lie along φ: nothing is gained
    assert along.share(z) == pytest.approx(0.732, abs=0.001)  # sup 2αd
    # its bound anywhere is for records far outside the domain
    wide = Reach.around_point(z, numbers, weights.Gaussian(100.0), 1.0)
    assert wide.everywhere < 0.01 * sensitivity.gradient(weights.Gaussian(100.0), 1.0)
    assert wide.share(z) == pytest.approx(1 / (1 + SIZE**0.5), rel=0.01)
    assert Reach.around_point(z, numbers, weights.Stable(), 50.0).share(z) == LEAST_SHARE


def test_along_a_path_shares_are_bounds_and_not_computed_anew_for_every_little_step(monkeypatch):
    rng = np.random.default_rng(4)
    z = DOMAIN.encode_query({"a": 0.3, "b": "p", "c": True, "d": 0.9, "e": "x", "f": False})
    reach = Reach.around_point(z, LAYOUT, weights.Stable(), 1.0)
    computed, original = [], Reach.bound_at
    path = np.cumsum(0.001 * rng.standard_normal((300, DOMAIN.width)), axis=0)
    exact = [reach.share(phi) for phi in path]
    monkeypatch.setattr(Reach, "bound_at", lambda self, phi: computed.append(phi) or original(self, phi))
    share = SharePath(reach)
    followed = np.array([share(phi) for phi in path])
    assert (followed >= exact).all()
    assert (followed <= np.array(exact) + 0.041).all()  # it may have fallen since by as much as it may have risen
    assert 1 <= len(computed) < 100


class Stubborn:
    """Releases the same numbers whatever it is given, so that neighbours take the same path, and remembers what it was given."""

    def __init__(self, outputs):
        self.outputs, self.given = outputs, []

    def __call__(self, value):
        self.given.append(value)
        return self.outputs[len(self.given) - 1]


@pytest.mark.slow
@pytest.mark.parametrize("anchor", [None, 0.6])
def test_what_is_released_differs_by_no_more_than_is_paid_for_and_comes_near_it(monkeypatch, anchor):
    """All the way of one descent, for every record that could be there or not."""
    rng, size, steps = np.random.default_rng(2), 500, 40
    binaries = Layout(tuple(range(SIZE)), tuple(range(1, SIZE + 1)), (False,) * SIZE)
    setting = Setting(SIZE, size, Neighbours(), 1e-13, layout=binaries)
    z = (rng.random(SIZE) < 0.5).astype(float)
    mechanism = dpx.Basic(3.0, 1e-6, steps=steps, plane="paper" if anchor is None else "anchored").with_model(
        lambda rows: np.full(len(rows), anchor)
    )
    plan = mechanism.plan(z, setting, History())
    outputs = 40 * rng.standard_normal((steps, SIZE))
    sent = []
    for record in product([0.0, 1.0], repeat=SIZE):
        for label in (-1.0, 1.0):
            stub = Stubborn(outputs)
            monkeypatch.setattr(GaussianMechanism, "perturb", lambda self, value, drawn, stub=stub: stub(value))
            run(plan, OracleRows(np.array([record]), np.array([label])), SeededNoise(0))
            sent.append(np.linalg.norm(stub.given, axis=1))
    paid = plan.events[0].sensitivity
    largest = np.max(sent, axis=0)  # of each gradient, over records
    assert (largest <= paid).all()
    assert (largest[:-1] > 0.9 * paid).all()  # every one but the last, whose noise is not reduced
    assert largest[0] > 0.99 * paid


@given(st.sampled_from(WEIGHTS), st.none() | points, private, directions, st.floats(-1, 1), st.booleans())
def test_the_compiled_bound_is_that_of_arrays(weight, point, query, phi, offset, free):
    z = DOMAIN.encode([query])[0] if point is None else point
    if free:
        reach = FreeReach.with_constant(z, LAYOUT, weights.Stable(), 1.0, 0.5)
    else:
        reach = Reach.around_point(z, LAYOUT, weight, 1.0, offset)
    assert reach._bound(phi, offset) == pytest.approx(reach.bound_by_arrays(phi, offset), rel=1e-12)
