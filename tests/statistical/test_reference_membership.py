"""A rare record in the reference: whether it was in the private data shifts how often it appears by no more than the guarantee allows."""

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.backends.oracle import OracleRows
from dpexplain.core.cells import cells_of
from dpexplain.mechanisms.base import Setting
from dpexplain.mechanisms.marginals import plan_marginals
from dpexplain.noise.seeded import SeededNoise
from dpexplain.privacy.relation import Neighbours
from dpexplain.reference_data import draw_records

DOMAIN = dpx.Domain([dpx.Categorical(name, values=list(range(6))) for name in "abc"])
BUDGET = dpx.Budget(1.0, 1e-6)
RUNS = 120


def rows(member):
    """Values 0 … 4 at random; the member alone has value 5 everywhere."""
    rng = np.random.default_rng(0)
    table = {name: rng.integers(0, 5, 800) for name in "abc"}
    return {name: np.append(column, 5 if member else 0) for name, column in table.items()}


def appearances(member):
    """In how many releases the exact record appears among the reference records; the marginals get the whole budget."""
    store, cells = OracleRows(DOMAIN.encode(rows(member)), np.ones(801)), cells_of(DOMAIN.blocks, DOMAIN.levels)
    plan = plan_marginals(cells, BUDGET.mu, Setting(18, 801, Neighbours(), 0.0))
    count = 0
    for seed in range(RUNS):
        codes = draw_records(plan.run(store, SeededNoise((member + 1) * 10_000 + seed)), DOMAIN, 1024)
        count += bool((codes == 5).all(axis=0).any())
    return count


@pytest.mark.slow
def test_membership_shows_in_the_reference_no_more_than_allowed():
    there, not_there = appearances(True), appearances(False)
    slack = 4 * np.sqrt(RUNS * 0.25)  # four standard deviations of either count
    assert there <= np.e * not_there + slack
    assert RUNS - not_there <= np.e * (RUNS - there) + slack
    # the record is one of 801: at this budget it is hardly visible at all, far below what the guarantee permits
    assert abs(there - not_there) <= slack
