"""Rehearsed noise in the errors of averages over a background: what drawing the background adds to it is not counted twice."""

import numpy as np
import pytest

from dpexplain.estimation.background import Background, NoiseShifts

COUNT = 2_000


def background(changes, responses=None):
    """Equal weights, and a constant for the only feature."""
    share, constant = np.full(COUNT, 1 / COUNT), np.ones((COUNT, 1))
    responses = np.zeros((len(changes), 1)) if responses is None else responses
    return Background(np.arange(COUNT), share, constant, responses, changes, 0.0, 1e12)


def test_changes_that_have_nothing_to_do_with_the_values_hardly_count():
    rng = np.random.default_rng(0)
    values, over = rng.normal(size=(COUNT, 40)), background(rng.normal(size=(200, COUNT)))
    shifts = over.shifts(values)
    assert np.square(shifts.rest).mean() == pytest.approx(1 / COUNT, rel=0.1)  # as large as what drawing causes
    assert shifts.drawn == pytest.approx(1 / COUNT, rel=0.2)
    assert shifts.variance(np.ones(40)).mean() < 0.1 / COUNT


def test_changes_that_move_the_average_count_whole():
    rng = np.random.default_rng(1)
    values = rng.normal(size=(COUNT, 3))
    moves = 0.2 * rng.normal(size=200)  # of the log weights, for each unit of the first column
    shifts = background(moves[:, None] * values[:, 0] + rng.normal(size=(200, COUNT))).shifts(values)
    found = shifts.variance(np.array([1.0, 0.0, 0.0]))  # no spread: nothing is pooled with the others
    assert found[0] == pytest.approx(np.square(moves).mean(), rel=0.15)
    assert found[1] < 0.1 * found[0]


def test_it_is_never_less_than_what_all_records_show():
    explained, drawn = np.array([[0.3, 0.0], [-0.3, 0.0]]), np.array([10.0, 10.0])
    found = NoiseShifts(explained, np.zeros((2, 2)), drawn).variance(np.zeros(2))
    assert found == pytest.approx([0.09 * 2 / 10, 0.0])


def test_queries_that_noise_weighs_otherwise_move_their_average():
    rng = np.random.default_rng(2)
    sizes, changes = np.abs(rng.normal(size=(500, 2))), rng.normal(size=(300, 500))
    none = NoiseShifts(np.zeros((300, 2)), np.zeros((300, 2)), np.zeros(2))
    alone = none.with_queries(changes, sizes)
    assert alone.drawn == pytest.approx(np.square(alone.rest).mean(axis=0), rel=0.4)
    together = none.with_queries(changes + 0.5 * (sizes[:, 0] - sizes[:, 0].mean()), sizes)
    assert together.variance(np.zeros(2))[0] > 10 * alone.variance(np.zeros(2))[0]


def test_a_reference_without_rehearsals_has_no_such_error():
    assert background(np.zeros((0, COUNT))).shifts(np.ones((COUNT, 2))).variance(np.ones(2)).tolist() == [0.0, 0.0]
