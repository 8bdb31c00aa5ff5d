"""Planes from moments and from records as one: weighted by their errors, adding up, with disagreement in the bar."""

from dataclasses import replace

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.estimation.mixed_planes import MixedPlanes, mix, share_of
from dpexplain.noise import SeededNoise


def people(m=6_000):
    rng = np.random.default_rng(0)
    return {"age": rng.uniform(0, 100, m), "gain": rng.gamma(1.0, 100, m), "work": rng.choice(list("abc"), m)}


def model(table):
    return np.tanh(np.asarray(table["age"]) / 40 - 1 + 0.004 * np.asarray(table["gain"]) * (np.asarray(table["work"]) == "a"))


@pytest.fixture(scope="module")
def planes():
    domain = dpx.Domain(
        [dpx.Numeric("age", 0, 100), dpx.Numeric("gain", 0, 1000), dpx.Categorical("work", values=["a", "b", "c"])]
    )
    data = dpx.PrivateData(people(), domain, model=model, output="value", bounds=(-1, 1))
    release = dpx.release(data, dpx.Budget(1.0, 1e-6), reference=4_096, noise=SeededNoise(0))
    points = domain.encode({name: column[:6] for name, column in people().items()})
    weight = dpx.weights.Gaussian(0.8)
    few, (many, near) = (
        release.planes.fit(points, weight),
        release._reference_planes.reference.fit_near(points, weight, None, None),
    )
    return few, many, near, release._reference_planes, points, weight


def test_a_release_with_reference_mixes_and_contributions_add_up(planes):
    few, many, near, both, points, weight = planes
    assert isinstance(both, MixedPlanes)
    found, share = both.fit(points, weight), share_of(few, many, near, both.reference.slopes.values)
    assert ((share >= 0) & (share <= 1)).all()
    assert found.values == pytest.approx(share[:, None] * few.values + (1 - share[:, None]) * many.values)
    assert found.base + found.added.sum(axis=1) == pytest.approx(found.answer, abs=1e-12)
    anchored = both.fit(points, weight, np.full(6, 0.3))
    assert anchored.answer == pytest.approx(np.full(6, 0.3), abs=1e-12)
    assert anchored.base + anchored.added.sum(axis=1) == pytest.approx(anchored.answer, abs=1e-12)


START = np.zeros(5)  # the slopes of the records' plane through all rows


def test_the_surer_plane_counts_more(planes):
    few, many, near, *_ = planes
    many = replace(many, share=np.ones(6))
    same = [
        replace(few, values=many.values, errors=k * many.errors, noise_errors=k * many.noise_errors) for k in (10.0, 1.0, 0.1)
    ]
    shares = [share_of(one, many, near, START) for one in same]
    assert shares[0] == pytest.approx(np.full(6, 1 / 11))
    assert shares[1] == pytest.approx(np.full(6, 1 / 2))
    assert shares[2] == pytest.approx(np.full(6, 10 / 11))


def test_the_moments_decide_where_their_plane_differs_from_all_records_and_that_of_the_records_does_not(planes):
    few, many, near, *_ = planes
    many = replace(many, share=np.ones(6))
    further = replace(few, values=3 * many.values, errors=many.errors, noise_errors=many.noise_errors)
    assert share_of(further, many, near, START) == pytest.approx(np.full(6, 3 / 4))
    still = replace(further, values=np.zeros_like(few.values))
    assert share_of(still, many, near, START) == pytest.approx(np.zeros(6))
    assert share_of(still, replace(many, values=still.values), near, START) == pytest.approx(np.zeros(6))


def test_where_few_rows_count_the_records_decide_and_noise_that_both_have_does_not(planes):
    few, many, near, *_ = planes
    same = replace(few, values=many.values, errors=many.errors, noise_errors=many.noise_errors)
    shares = [share_of(same, replace(many, share=np.full(6, rows)), near, START) for rows in (0.5, 0.25, 0.05, 0.0)]
    assert shares[0] == pytest.approx(np.full(6, 1 / 2))
    assert shares[1] == pytest.approx(np.full(6, 1 / 2))
    assert shares[2] == pytest.approx(np.full(6, 1 / 10))
    assert shares[3] == pytest.approx(np.zeros(6))
    noisy = replace(same, errors=np.hypot(many.errors, 0.5), noise_errors=np.hypot(many.noise_errors, 0.5))
    everywhere, nearby = (share_of(noisy, replace(many, share=np.full(6, rows)), near, START) for rows in (1.0, 1e-3))
    assert (everywhere < 0.2).all()
    assert nearby == pytest.approx(np.full(6, 1 / 2) * 1e-3 / 0.25, rel=0.1)


def test_disagreement_widens_the_bar(planes):
    few, many, *_ = planes
    certain = replace(few, values=many.values + 5.0, errors=many.errors.copy(), noise_errors=many.noise_errors)
    agreeing, apart = (mix(one, many, np.full(6, 0.5)) for one in (replace(certain, values=many.values), certain))
    assert (apart.errors > 2.0).all()
    assert (agreeing.errors <= many.errors + 1e-12).all()
    alone = mix(certain, many, np.zeros(6))
    assert alone.values == pytest.approx(many.values)
    assert alone.errors == pytest.approx(many.errors)
