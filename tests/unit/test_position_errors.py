"""What is not known about where numbers are within their bins, and what it adds to the error bars of SHAP values."""

from dataclasses import replace

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.core.cells import NumberCells
from dpexplain.core.layout import Layout
from dpexplain.core.marginals import Bins
from dpexplain.estimation.background import WeightedRecords, choose_background
from dpexplain.estimation.records_from_bins import position_errors
from dpexplain.noise.seeded import SeededNoise

DOMAIN = dpx.Domain([dpx.Numeric("age", 0, 1), dpx.Numeric("hours", 0, 1)])
LAYOUT = Layout.of(DOMAIN.blocks)


def bins_of(edge):
    cells = (NumberCells(0), NumberCells(1))
    joined = tuple((np.arange(cell.count) > edge).astype(np.int64) for cell in cells)
    return Bins(cells, joined, (2, 2))


def test_more_noise_on_the_histograms_makes_positions_less_certain():
    counts = (np.full(258, 100.0), np.full(258, 100.0))
    little, much = (position_errors(bins_of(128), counts, sigma, LAYOUT) for sigma in (5.0, 50.0))
    assert little.shape == (4, 3)
    assert little[:, 0].tolist() == [0, 0, 1, 1]
    assert little[0, 1] == pytest.approx(0.5)
    assert (little[:, 2] < much[:, 2]).all()
    assert little[0, 2] == pytest.approx(5 * np.sqrt(129) / (129 * 95))


def test_histograms_of_noise_alone_leave_positions_unknown_up_to_a_triangular_density():
    found = position_errors(bins_of(128), (np.zeros(258), np.zeros(258)), 10.0, LAYOUT)
    assert found[:, 2] == pytest.approx(1 / np.sqrt(3))


def background(errors):
    points = np.random.default_rng(0).random((4000, 2))
    everyone = WeightedRecords(points, np.full(4000, 1 / 4000), np.zeros((0, 4000)), 0.0, errors)
    return points, choose_background(everyone, None, DOMAIN.blocks, 4000)


def test_the_bar_of_a_number_grows_by_what_its_own_positions_may_do():
    errors = np.array([(0, 0.5, 0.4), (0, 1.0, 0.4), (1, 0.5, 0.0), (1, 1.0, 0.0)])
    points, over = background(errors)
    values = points - 0.5  # what each number adds: a straight line
    _, plain = over.average(values)
    _, found = over.average_by_feature(values)
    within = 0.5 / np.sqrt(12)  # standard deviation within a bin of length 1/2
    assert found[0] == pytest.approx(np.hypot(plain[0], 0.4 * within * 0.5), rel=0.05)  # two bins of half of all
    assert found[1] == pytest.approx(plain[1], rel=0.001)  # what is left is for effects that no record shows


def test_the_bar_of_another_feature_grows_where_its_effect_depends_on_the_number():
    errors = np.array([(0, 0.5, 0.4), (0, 1.0, 0.4), (1, 0.5, 0.0), (1, 1.0, 0.0)])
    points, over = background(errors)
    rng = np.random.default_rng(1)
    # the second feature's effect is in proportion to the first number
    values = np.column_stack([rng.normal(size=4000), points[:, 0] - 0.5])
    _, plain = over.average(values)
    _, found = over.average_by_feature(values)
    assert found[1] == pytest.approx(np.hypot(plain[1], 0.4 * 0.5 / np.sqrt(12) * 0.5), rel=0.05)
    assert found[0] == pytest.approx(plain[0], rel=0.05)  # noise alone does not count as an effect


def test_older_references_have_no_such_errors():
    points, over = background(None)
    assert over.average_by_feature(points)[1] == pytest.approx(over.average(points)[1], rel=0.001)


def test_a_file_stores_them(tmp_path):
    rows = {name: np.random.default_rng(i).random(600) for i, name in enumerate(DOMAIN.columns)}
    model = lambda table: 2 * np.asarray(table["age"], dtype=float) - 1  # noqa: E731
    release = dpx.release(dpx.PrivateData(rows, DOMAIN, model=model), dpx.Budget(1.0, 1e-6), reference=1024, noise=SeededNoise(0))
    release.save(tmp_path / "rows.dpx")
    found = dpx.load(tmp_path / "rows.dpx").reference
    assert np.array_equal(found.position_errors, release.reference.position_errors)
    record = {"age": 0.2, "hours": 0.7}
    certain = replace(release, reference=replace(release.reference, position_errors=None))
    assert release.shapley(record).error[0] > certain.shapley(record).error[0]
    assert np.allclose(release.shapley(record).values, certain.shapley(record).values)
