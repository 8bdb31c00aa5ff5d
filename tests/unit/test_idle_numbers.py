"""Numbers that use hardly any of their declared ranges: slopes are right where noise allows it, and bars say where it does not."""

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.estimation.calibrate import slopes_of
from dpexplain.noise import SeededNoise

ROWS = 40_000
RECORD = {"income": 80_000, "age": 40}


def model(table):
    return 1 / (1 + np.exp(-(np.asarray(table["income"]) - 50_000) / 20_000 + (np.asarray(table["age"]) - 50) / 40))


def register(highest):
    rng = np.random.default_rng(0)
    rows = {"income": np.clip(rng.gamma(4, 12_500, ROWS), 0, highest), "age": rng.uniform(18, 90, ROWS)}
    domain = dpx.Domain([dpx.Numeric("income", 0, highest), dpx.Numeric("age", 18, 90)])
    return dpx.PrivateData(rows, domain, model=model, output="probability")


@pytest.fixture(scope="module")
def data():
    """Incomes around 50,000, declared up to ten million: a variance of 0.000006 of the squared range."""
    return register(10_000_000)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("epsilon", [0.3, 1, 10])
def test_bars_cover_the_slope_where_noise_hides_how_little_a_number_varies(data, epsilon, seed):
    answer = dpx.release(data, dpx.Budget(epsilon, 1e-6), noise=SeededNoise(seed)).explain(RECORD)
    exact = evaluation.optimum(data, RECORD, plane="fitted")
    assert exact[0] > 100
    assert np.abs(answer.values - exact)[0] <= 2 * answer.error[0]
    assert np.abs(answer.values - exact)[1] <= 0.1  # the age's slope is as well known as ever


def test_nothing_limits_the_slope_where_noise_is_small(data):
    answer = dpx.release(data, dpx.Budget(5_000, 1e-6), noise=SeededNoise(0)).explain(RECORD)
    exact = evaluation.optimum(data, RECORD, plane="fitted")
    assert answer.values == pytest.approx(exact, rel=0.05)
    assert answer.error[0] < 0.1 * exact[0]


def test_bars_are_as_before_where_numbers_use_their_ranges(monkeypatch):
    def bars():
        return dpx.release(register(200_000), dpx.Budget(0.1, 1e-6), noise=SeededNoise(0)).explain(RECORD).error

    found = bars()
    monkeypatch.setitem(slopes_of.__globals__, "idle_errors", lambda moments, numbers, slopes: np.zeros_like(moments.values))
    assert (bars() == found).all()


def test_a_release_names_numbers_that_use_hardly_any_of_their_ranges(data, tmp_path):
    found = dpx.release(data, dpx.Budget(1, 1e-6), noise=SeededNoise(0))
    found.save(tmp_path / "income.dpx")
    assert found.unused_ranges == dpx.load(tmp_path / "income.dpx").unused_ranges == ("income",)
    assert dpx.release(register(200_000), dpx.Budget(1, 1e-6), noise=SeededNoise(0)).unused_ranges == ()
    hidden = dpx.release(data, dpx.Budget(0.03, 1e-6), noise=SeededNoise(0))
    assert hidden.unused_ranges == ()  # noise could hide a variance of a thousandth of the squared range
