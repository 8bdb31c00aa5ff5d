"""A membership attack on reference records: it must win no more than the guarantee allows, and must win where noise is missing.

Two neighbouring tables, one with a person whose values nobody else has. The attacker sees the reference only and says "member" when the
person's values make up more than a threshold's share of it; the threshold is chosen on half of the releases and judged on the other.
μ-GDP bounds what any such attack gains, true positives minus false positives, by 2Φ(μ/2) - 1.
"""

from functools import cache

import numpy as np
import pytest
from scipy.stats import norm

import dpexplain as dpx
from dpexplain.backends.oracle import OracleRows
from dpexplain.core.cells import cells_of
from dpexplain.mechanisms.marginals_plan import plan_marginals
from dpexplain.mechanisms.setting import Setting
from dpexplain.noise.seeded import SeededNoise
from dpexplain.privacy.relation import Neighbours
from dpexplain.release.reference_building import draw_records
from noise_support import Scaled, run

DOMAIN = dpx.Domain([dpx.Categorical(name, values=list(range(4))) for name in "abc"])
BUDGET = dpx.Budget(1.0, 1e-6)
RUNS, OTHERS = 80, 60


def rows(member):
    """Values 0 … 2 at random; the member alone has value 3 everywhere."""
    rng = np.random.default_rng(0)
    table = {name: rng.integers(0, 3, OTHERS) for name in "abc"}
    return {name: np.append(column, 3) for name, column in table.items()} if member else table


@cache
def shares(member, factor):
    """(2, RUNS): the share of the member's values among all values of the reference, and of the exact record among all records."""
    table = rows(member)
    store, cells = OracleRows(DOMAIN.encode(table), np.ones(len(table["a"]))), cells_of(DOMAIN.blocks, DOMAIN.levels)
    plan = plan_marginals(cells, BUDGET.mu, Setting(12, OTHERS, Neighbours(), 0.0))
    found = []
    for seed in range(RUNS):
        noise = Scaled(SeededNoise((member + 1) * 10_000 + seed), factor)
        codes = draw_records(run(plan, store, noise)[0], DOMAIN, 256, rehearsals=0).codes
        found.append(((codes == 3).mean(), (codes == 3).all(axis=0).mean()))
    return np.array(found).T


def least_advantage(factor, what=0):
    """A lower bound, four standard deviations down, on the attack's true positives minus false positives."""
    inside, outside = shares(True, factor)[what], shares(False, factor)[what]
    half = RUNS // 2
    candidates = np.unique(np.concatenate([inside[:half], outside[:half]]))
    gain = [(inside[:half] > t).mean() - (outside[:half] > t).mean() for t in candidates]
    threshold = candidates[int(np.argmax(gain))]
    hits, alarms = (inside[half:] > threshold).mean(), (outside[half:] > threshold).mean()
    return hits - alarms - 4 * np.sqrt((hits * (1 - hits) + alarms * (1 - alarms) + 1 / half) / half)


@pytest.mark.slow
def test_membership_shows_in_the_reference_no_more_than_allowed_and_shows_where_noise_is_missing():
    allowed = 2 * norm.cdf(BUDGET.mu / 2) - 1
    assert least_advantage(1.0) <= allowed
    assert least_advantage(1.0, what=1) <= allowed
    assert least_advantage(0.05) > allowed  # 20 % too little is for tests/statistical/test_marginals_noise.py
