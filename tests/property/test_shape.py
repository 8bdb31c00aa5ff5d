"""No record of a domain is moved further apart by shaped noise, and shaped noise is less."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpexplain as dpx
from dpexplain.core import sensitivity
from dpexplain.core.ball import Ball
from dpexplain.core.moments import LocalMoments
from dpexplain.core.shape import noise_shape

DOMAIN = dpx.Domain(
    [
        dpx.Numeric("a", 0, 1),
        dpx.Categorical("b", values=list("pqrst")),
        dpx.Binary("c"),
        dpx.Categorical("d", values=["x", "y", "z"], other="else"),
        dpx.Categorical("e", values=["only", "two"]),
    ]
)
ONE_HOT = tuple((block.start, block.stop) for block in DOMAIN.blocks if block.kind == "one-hot")

private = st.fixed_dictionaries(
    {
        "a": st.floats(-1, 2) | st.none(),
        "b": st.sampled_from([*"pqrst", "unknown", None]),
        "c": st.booleans() | st.none(),
        "d": st.sampled_from(["x", "y", "z", "w", None]),
        "e": st.sampled_from(["only", "two", 3]),
    }
)
queries = st.fixed_dictionaries(
    {
        "a": st.floats(0, 1),
        "b": st.sampled_from("pqrst"),
        "c": st.booleans(),
        "d": st.sampled_from("xyz"),
        "e": st.sampled_from(["only", "two"]),
    }
)


@given(private, queries)
def test_no_record_is_further_away_in_the_shaped_norm(record, query):
    z = DOMAIN.encode_query(query)
    u = DOMAIN.encode([record])[0] - z
    assert np.linalg.norm(u / noise_shape(z, ONE_HOT)) <= np.linalg.norm(u) * (1 + 1e-12)


@given(private, queries, st.floats(-1, 1), st.lists(st.floats(-1, 1), min_size=DOMAIN.width, max_size=DOMAIN.width))
def test_no_record_moves_the_shaped_gradient_further(record, query, label, direction):
    z = DOMAIN.encode_query(query)
    phi = Ball().project(np.array(direction))
    u = DOMAIN.encode([record])[0] - z
    bounded = LocalMoments(z, dpx.weights.Stable())
    gradient = 2 * bounded.weight(np.array([np.linalg.norm(u)]))[0] * (phi @ u - label) * u
    assert np.linalg.norm(gradient / noise_shape(z, ONE_HOT)) <= sensitivity.gradient(bounded.weight, 1.0) * (1 + 1e-12)


def test_the_bound_is_attained_and_the_noise_is_less():
    z = DOMAIN.encode_query({"a": 0.5, "b": "p", "c": True, "d": "x", "e": "two"})
    shape = noise_shape(z, ONE_HOT)
    other = DOMAIN.encode([{"a": 0.5, "b": "q", "c": True, "d": "z", "e": "two"}])[0] - z
    assert np.linalg.norm(other / shape) == pytest.approx(np.linalg.norm(other))
    five = shape[slice(*ONE_HOT[0])]
    assert (five**2).sum() == pytest.approx((1 + np.sqrt(4)) ** 2 / 2)
    assert (shape**2).sum() < len(shape)
    assert (shape[slice(*ONE_HOT[2])] == 1).all()  # two categories: nothing to gain
    assert (noise_shape(np.full(DOMAIN.width, 0.3), ONE_HOT) == 1).all()  # not a record: nothing is known
