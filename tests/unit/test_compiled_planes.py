"""Planes from compiled loops equal those from NumPy, and a service answers with them."""

from dataclasses import fields, replace

import numpy as np
import pytest
from tests.unit.test_plane_errors import DOMAIN, people

import dpexplain as dpx
from dpexplain.estimation.compiled_planes import MANY_NARROW, CompiledPlanes
from dpexplain.noise.seeded import SeededNoise
from dpexplain.release.compiled import compile_release

WEIGHTS = [dpx.weights.Stable(), dpx.weights.Gaussian(0.7), dpx.weights.Gaussian(0.3)]


@pytest.fixture(scope="module")
def release():
    rows = people(4000)
    labels = np.tanh((rows["age"] - 50) / 20 + rows["married"] - 0.5 * (rows["trade"] == "craft"))
    return dpx.release(dpx.PrivateData(rows, DOMAIN, labels=labels), dpx.Budget(1, 1e-6), noise=SeededNoise(1))


@pytest.mark.parametrize("weight", WEIGHTS, ids=str)
def test_compiled_planes_are_those_of_numpy(release, weight):
    queries = DOMAIN.encode(people(MANY_NARROW, seed=3))
    found, expected = CompiledPlanes(release.planes).fit(queries, weight), release.planes.fit(queries, weight)
    for one in fields(found):
        value, wanted = getattr(found, one.name), getattr(expected, one.name)
        assert np.isfinite(value).all()
        np.testing.assert_allclose(value, wanted, rtol=1e-9, atol=1e-12, err_msg=one.name)


@pytest.mark.parametrize("options", [{"radius": 0.1}, {"anchors": np.array([0.2])}])
def test_what_is_not_compiled_is_left_to_numpy(release, options):
    query = DOMAIN.encode(people(1, seed=3))
    found = CompiledPlanes(release.planes).fit(query, dpx.weights.Stable(), **options)
    np.testing.assert_array_equal(found.values, release.planes.fit(query, dpx.weights.Stable(), **options).values)


def test_a_compiled_release_answers_alike_and_is_stored_alike(release):
    compiled, record = (
        compile_release(release),
        {"age": 30, "school": "all", "trade": "craft", "married": True, "region": "north"},
    )
    np.testing.assert_allclose(compiled.explain(record).values, release.explain(record).values, rtol=1e-9, atol=1e-12)
    assert compiled.digest == release.digest


def test_compiled_planes_of_another_release_are_not_used(release):
    planes, record = replace(release.planes, t0=release.planes.t0 + 0.5), people(1, seed=4)
    asked = [replace(one, planes=planes).explain_many(record)[0] for one in (compile_release(release), release)]
    np.testing.assert_array_equal(asked[0].values, asked[1].values)
    assert asked[0].intercept == asked[1].intercept


def test_a_weight_so_narrow_that_its_squares_vanish_counts_all_points_alike(release):
    """Weights of 1e-200 are not zero, their squares are: answers were NaN."""
    answer = release.explain(
        {"age": 30, "school": "all", "trade": None, "married": True, "region": "north"}, dpx.weights.Gaussian(0.05)
    )
    assert np.isfinite(answer.values).all()
    assert np.isfinite(answer.error).all()
