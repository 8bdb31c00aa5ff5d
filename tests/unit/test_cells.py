"""Sums by cells are the library's sums, for rows with on/off columns, numbers, and both, and for columns that are scaled."""

import numpy as np
import pytest
from experiments.paper._cells import Cells
from experiments.paper._exact import MANY, problems

import dpexplain as dpx
from dpexplain import evaluation, weights

pytestmark = pytest.mark.slow  # its kernels are compiled for experiments alone
RNG = np.random.default_rng(5)
FLAGS, NUMBERS = RNG.integers(0, 2, (600, 4)) * np.array([1.0, 0.5, 1.0, 1.0]), RNG.random((600, 2))
ROWS = {"both": np.column_stack([NUMBERS[:, :1], FLAGS, NUMBERS[:, 1:]]), "flags": FLAGS, "numbers": NUMBERS}
LABELS = np.where(RNG.random(600) < 0.4, 1.0, -1.0)


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("scale", [1.0, 0.3])
def test_they_are_the_librarys(kind, scale):
    rows = ROWS[kind]
    width = rows.shape[1]
    data = dpx.PrivateData(rows, dpx.Domain.encoded(width, bounds=(0, 1 / scale)), labels=LABELS)
    cells = Cells(rows.astype(np.float32), LABELS)
    for point in (rows[0], RNG.random(width)):
        A, b = cells.moments(point, weights.Stable(), scale)
        there = evaluation.local_moments_of(data, [scale * point])[0]
        assert pytest.approx(there.A, rel=1e-5, abs=1e-5) == A
        assert pytest.approx(there.b, rel=1e-5, abs=1e-5) == b


def test_a_study_takes_them_for_many_queries():
    data = dpx.PrivateData(ROWS["flags"], dpx.Domain.encoded(4), labels=LABELS)
    points = np.resize(FLAGS[:MANY], (MANY, 4))
    few = list(problems(data, points[:3]))
    many = list(problems(data, points))
    for one, two in zip(few, many, strict=False):
        assert pytest.approx(one.A, abs=1e-12) == two.A
        assert one.gain == pytest.approx(two.gain)


def test_other_weights_are_refused():
    with pytest.raises(ValueError, match="stable"):
        Cells(FLAGS, LABELS).moments(FLAGS[0], weights.Gaussian(1.0))
