"""Numbers that agree so closely that noise hides by how much: bars of their slopes, from moments and from records, are as long as what nobody knows."""

from dataclasses import replace

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.estimation import calibrate
from dpexplain.noise import SeededNoise
from dpexplain.release.release_planes import reference_planes

ROWS = 6_000
DOMAIN = dpx.Domain([dpx.Numeric(name, 0, 1) for name in ("open", "high", "volume")])
ALONG = np.array([-1.0, 1.0, 0.0]) / np.sqrt(2)


def prices():
    rng = np.random.default_rng(5)
    level = rng.beta(2, 3, ROWS)
    found = {"open": level, "high": level + 0.006 * np.abs(rng.standard_normal(ROWS)), "volume": rng.beta(2, 4, ROWS)}
    return {name: np.clip(column, 0, 1) for name, column in found.items()}


def model(table):
    """Follows the difference of the prices: its slope there is 20 and more among the rows, and far less among public points."""
    difference = np.asarray(table["high"]) - np.asarray(table["open"])
    return 0.5 * np.tanh(60 * (difference - 0.005)) + 0.3 * np.asarray(table["volume"])


def make_release(seed):
    data = dpx.PrivateData(prices(), DOMAIN, model=model, output="value", bounds=(-1, 1))
    return dpx.release(data, dpx.Budget(0.1, 1e-6), reference=4_096, noise=SeededNoise(seed))


@pytest.fixture(scope="module", params=[0, 1, 2])
def release(request):
    return make_release(request.param)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_rehearsals_scale_the_rest_of_an_error_and_not_what_they_only_assume(seed, monkeypatch):
    """Factors were 0.5 to 14 there by chance, because rehearsals have other eigenvalues than the release."""
    rests, plain = [], make_release(seed).planes
    assert np.abs(plain.eigenvectors[:, 0] @ ALONG) > 0.9
    for factor in (0.1, 10.0):  # whatever rehearsals find
        monkeypatch.setattr(calibrate, "column_factors", lambda moved, stated, f=factor: np.full(moved.shape[-1], f))
        rests.append((np.square(make_release(seed).planes.factors) - 1) / (np.square(0.95 * factor) - 1))
    assert rests[0] == pytest.approx(rests[1], rel=1e-6)  # the share of an error that is scaled
    assert (rests[0] >= 0).all()
    assert (rests[0] <= 1 + 1e-9).all()
    hidden = (
        rests[0][:2] < 0.5
    )  # in the third draw noise made a variance that is not suspected: most of the error is seen, and scaled
    assert hidden.all() == (seed < 2)
    assert plain.factors[:2][hidden] == pytest.approx(1.0, abs=0.02)


def test_records_are_no_surer_than_the_moments_where_noise_hides_the_variance(release):
    sure = replace(release.reference.slopes, spread=np.full(3, 1e-3))
    records = reference_planes(replace(release.reference, slopes=sure), release.planes, release.size).reference
    assert records.slopes.spread[0] > 0.6 * release.planes.slopes.spread[0] > 1.0
    hardly = 0.05 * release.planes.slopes.spread[1:]  # how nearly the numbers of other directions determine each other
    assert (records.slopes.spread[1:] < hardly).all()
    assert (records.slopes.values == sure.values).all()
