"""Numbers that agree so closely that noise hides by how much: bars of their slopes, from moments and from records, are as long as what nobody knows."""

from dataclasses import replace

import numpy as np
import pytest

import dpexplain as dpx
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


@pytest.fixture(scope="module", params=[0, 1, 2])
def release(request):
    data = dpx.PrivateData(prices(), DOMAIN, model=model, output="value", bounds=(-1, 1))
    return dpx.release(data, dpx.Budget(0.1, 1e-6), reference=4_096, noise=SeededNoise(request.param))


def test_rehearsals_do_not_change_what_they_only_assume(release):
    """Factors were 0.5 to 14 there by chance, because rehearsals have other eigenvalues than the release. They scale what is left of the error beside."""
    assert np.abs(release.planes.eigenvectors[:, 0] @ ALONG) > 0.9
    assert release.planes.factors[:2] == pytest.approx(np.ones(2), abs=0.2)


def test_records_are_no_surer_than_the_moments_where_noise_hides_the_variance(release):
    sure = replace(release.reference.slopes, spread=np.full(3, 1e-3))
    records = reference_planes(replace(release.reference, slopes=sure), release.planes, release.size).reference
    assert records.slopes.spread[0] > 0.6 * release.planes.slopes.spread[0] > 1.0
    hardly = 0.05 * release.planes.slopes.spread[1:]  # how nearly the numbers of other directions determine each other
    assert (records.slopes.spread[1:] < hardly).all()
    assert (records.slopes.values == sure.values).all()
