"""Reference records have numbers where rows have them: what noise leaves in empty cells is no tail."""

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.noise.seeded import SeededNoise

DOMAIN = dpx.Domain([dpx.Numeric("paid", 0, 1), dpx.Numeric("score", 0, 1), dpx.Binary("member")])


@pytest.mark.parametrize("seed", range(3))
def test_long_tails_are_not_made_of_noise(seed):
    rng = np.random.default_rng(seed)
    paid = np.where(rng.random(20_000) < 0.65, 0.0, np.clip(rng.gamma(1.5, 0.05, 20_000), 0, 1))
    score = np.clip(rng.normal(0.5, 0.1, 20_000), 0, 1)
    rows = {"paid": paid, "score": score, "member": rng.random(20_000) < 0.5}
    data = dpx.PrivateData(rows, DOMAIN, labels=np.where(paid > 0.05, 1.0, -1.0))
    release = dpx.release(data, dpx.Budget(1.0, 1e-6), reference=4096, noise=SeededNoise(seed))
    records = release.reference.encoded
    assert (records[:, 0] == 0).mean() == pytest.approx(0.65, abs=0.02)
    assert (records[:, 0] > 0.5).mean() < 0.003  # of the rows less than 0.0002
    assert np.quantile(records[:, 0], 0.99) == pytest.approx(np.quantile(paid, 0.99), rel=0.15)
    assert np.quantile(records[:, 1], 0.99) == pytest.approx(np.quantile(score, 0.99), abs=0.02)
