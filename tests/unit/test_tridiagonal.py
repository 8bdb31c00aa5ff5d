"""A with three diagonals has the optimum, the steps and the scores of the A that it was turned from."""

import numpy as np
import pytest
from experiments.paper import _lanes
from experiments.paper._exact import Problem
from experiments.paper._tridiagonal import Tridiagonal

WIDTH, LANES, STEPS = 30, 3, 12
RNG = np.random.default_rng(5)
ROWS = RNG.normal(size=(400, WIDTH)) * np.linspace(0.05, 1.0, WIDTH)
A, B = ROWS.T @ ROWS / len(ROWS), RNG.normal(size=WIDTH)


def whole(matrix):
    return np.diag(matrix.diagonal) + np.diag(matrix.beside, 1) + np.diag(matrix.beside, -1)


def test_turning_keeps_lengths_and_the_quadratic_form():
    turned, moved = Tridiagonal.turn(A, B)
    assert np.linalg.eigvalsh(whole(turned)) == pytest.approx(np.linalg.eigvalsh(A), abs=1e-6)
    assert np.linalg.norm(moved) == pytest.approx(np.linalg.norm(B), rel=1e-6)
    assert moved @ whole(turned) @ moved == pytest.approx(B @ A @ B, rel=1e-5)
    assert np.stack([moved, 2 * moved]) @ turned == pytest.approx(np.stack([moved, 2 * moved]) @ whole(turned))


@pytest.mark.parametrize("size", [1.0, 1e-3])  # the optimum is on the ball, and inside
def test_the_optimum_gains_as_much(size):
    expected = Problem.of(None, A, size * B)
    found = Problem.of(None, *Tridiagonal.turn(A, size * B))
    assert np.linalg.norm(found.best) == pytest.approx(np.linalg.norm(expected.best), rel=1e-3)
    assert found.gain == pytest.approx(expected.gain, rel=1e-5)


def test_steps_are_those_of_any_other_basis():
    turned, moved = Tridiagonal.turn(A, B)
    noise, lanes = RNG.normal(size=(LANES, STEPS, WIDTH)), np.ones(LANES)
    found = _lanes.descend(turned, moved, np.zeros((LANES, WIDTH)), 0.3 * lanes, 0.2 * lanes, noise)
    phi = np.zeros((LANES, WIDTH))
    for t in range(STEPS):
        phi = phi - 0.2 / np.sqrt(t + 1) * (2 * (phi @ whole(turned) - moved) + 0.3 * noise[:, t])
        phi /= np.maximum(np.linalg.norm(phi, axis=1), 1.0)[:, None]
    assert found == pytest.approx(phi, abs=1e-9)


def test_answers_without_noise_lose_as_much():
    silent, lanes = np.zeros((LANES, STEPS, WIDTH)), np.ones(LANES)
    losses = []
    for matrix, target in ((A, B), Tridiagonal.turn(A, B)):
        values = _lanes.descend(matrix, target, np.zeros((LANES, WIDTH)), lanes, 0.2 * lanes, silent)
        losses.append(Problem.of(None, matrix, target).scores(values)["excess_loss"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-4, abs=1e-7)
