"""Numbers that use hardly any of their declared ranges: slopes are right where noise allows it, and bars say where it does not."""

from itertools import product

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


def people(highest):
    rng = np.random.default_rng(0)
    return {"income": np.clip(rng.gamma(4, 12_500, ROWS), 0, highest), "age": rng.uniform(18, 90, ROWS)}


def register(highest):
    domain = dpx.Domain([dpx.Numeric("income", 0, highest), dpx.Numeric("age", 18, 90)])
    return dpx.PrivateData(people(highest), domain, model=model, output="probability")


@pytest.fixture(scope="module")
def data():
    """Incomes around 50,000, declared up to ten million: a variance of 0.000006 of the squared range."""
    return register(10_000_000)


@pytest.fixture(scope="module")
def nearer():
    """The same, declared up to two million."""
    return register(2_000_000)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1, 10])
@pytest.mark.parametrize("declared", ["data", "nearer"])
def test_bars_cover_the_slope_where_noise_hides_how_little_a_number_varies(declared, epsilon, seed, request):
    data = request.getfixturevalue(declared)
    answer = dpx.release(data, dpx.Budget(epsilon, 1e-6), noise=SeededNoise(seed)).explain(RECORD)
    exact = evaluation.optimum(data, RECORD, plane="fitted")
    assert exact[0] > 30
    assert np.abs(answer.values - exact)[0] <= 2 * answer.error[0]
    assert answer.values[0] > 0.4 * exact[0]  # counts of cells show how little it varies, however much noise the variance has
    assert np.abs(answer.values - exact)[1] <= 0.2  # the age's slope is nearly as well known as ever


def test_so_they_do_with_reference(nearer):
    exact, covered = evaluation.optimum(nearer, RECORD, plane="fitted"), []
    for epsilon, seed in product((0.1, 0.3, 1), range(3)):
        answer = dpx.release(nearer, dpx.Budget(epsilon, 1e-6), noise=SeededNoise(seed), reference=1 << 14).explain(RECORD)
        covered.append(np.abs(answer.values - exact)[0] <= 2 * answer.error[0])
        assert answer.values[0] > 0.4 * exact[0]
    assert sum(covered) >= 8  # of nine


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


@pytest.mark.parametrize("rows", range(2))
def test_bars_are_no_longer_than_slopes_that_explain_all(rows):
    """Noise can be larger than it was taken for, so that more is known along a direction than the moments alone could have told."""

    def decide(table):
        score, age, member = (np.asarray(table[name], dtype=float) for name in ("score", "age", "member"))
        return np.where((score - 50) / 10 + (age - 50) / 30 + 0.7 * member > 0, 1, -1)

    rng = np.random.default_rng(rows)
    table = {"score": rng.normal(50, 10, ROWS), "age": rng.uniform(18, 90, ROWS), "member": rng.random(ROWS) < 0.3}
    domain = dpx.Domain([dpx.Numeric("age", 18, 90), dpx.Binary("member"), dpx.Numeric("score", 0, 500)])
    data, record = dpx.PrivateData(table, domain, model=decide, output="class"), {"score": 55, "age": 40, "member": True}
    exact = evaluation.optimum(data, record, plane="fitted")
    for seed in range(3):
        answer = dpx.release(data, dpx.Budget(0.1, 1e-6), noise=SeededNoise(seed)).explain(record)
        assert (np.abs(answer.values - exact) <= 2 * answer.error).all()
        assert (answer.error < [0.2, 0.1, exact[2]]).all()


def test_a_release_names_numbers_that_use_hardly_any_of_their_ranges(data, tmp_path):
    found = dpx.release(data, dpx.Budget(1, 1e-6), noise=SeededNoise(0))
    found.save(tmp_path / "income.dpx")
    assert found.unused_ranges == dpx.load(tmp_path / "income.dpx").unused_ranges == ("income",)
    assert dpx.release(register(200_000), dpx.Budget(1, 1e-6), noise=SeededNoise(0)).unused_ranges == ()
    labels = dpx.PrivateData(people(10_000_000), data.domain, labels=np.sign(np.random.default_rng(1).normal(size=ROWS)))
    hidden = dpx.release(labels, dpx.Budget(0.03, 1e-6), noise=SeededNoise(0))
    assert (
        hidden.unused_ranges == ()
    )  # without a model there are no counts, and noise could hide a variance of a thousandth of the squared range
