"""Projection onto balls, and exact minimisers, the hard case included."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import optimize

from dpexplain.core.ball import Ball, minimise_1, minimise_2
from dpexplain.errors import ParameterError

points = arrays(np.float64, 5, elements=st.floats(-100, 100))


@pytest.mark.parametrize("norm", [1, 2])
@given(points, st.floats(0.01, 10))
def test_projection_lands_inside_and_is_the_nearest_point(norm, point, radius):
    ball = Ball(radius, norm)
    near = ball.project(point)
    assert np.linalg.norm(near, norm) <= radius
    assert ball.project(near) == pytest.approx(near, rel=1e-12)
    for corner in np.vstack([np.eye(5), -np.eye(5)]) * radius:  # the angle condition that characterises a projection
        assert (point - near) @ (corner - near) <= 1e-9 * (1 + np.linalg.norm(point)) * (1 + radius)


def objective(A, b, phi):
    return phi @ A @ phi - 2 * b @ phi


def problem(seed, rank=6, scale=1.0):
    rng = np.random.default_rng(seed)
    M = rng.normal(size=(6, rank))
    return M @ M.T, scale * rng.normal(size=6)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("rank", [6, 3])
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_the_constrained_optimum_satisfies_its_optimality_conditions(seed, rank, scale):
    A, b = problem(seed, rank, scale)
    phi = minimise_2(A, b, 1.0)
    residual = b - A @ phi  # = λφ with λ ≥ 0, and λ = 0 inside
    multiplier = residual @ phi / (phi @ phi)
    assert np.linalg.norm(phi) <= 1 + 1e-9
    assert multiplier >= -1e-9 * scale
    assert residual == pytest.approx(multiplier * phi, abs=1e-7 * max(scale, 1.0))
    if np.linalg.norm(phi) < 1 - 1e-6:
        assert abs(multiplier) < 1e-7 * max(scale, 1.0)


def test_the_hard_case_b_without_a_share_in_the_null_space():
    A, b = np.diag([0.0, 1.0, 2.0]), np.array([0.0, 0.5, 0.5])
    assert minimise_2(A, b, 1.0) == pytest.approx([0.0, 0.5, 0.25])
    assert np.linalg.norm(minimise_2(A, 100 * b, 1.0)) == pytest.approx(1.0)


def test_a_null_direction_with_a_pull_goes_to_the_boundary():
    phi = minimise_2(np.diag([0.0, 1.0]), np.array([1e-3, 0.0]), 1.0)
    assert phi == pytest.approx([1.0, 0.0])


def test_nothing_to_fit_gives_nothing():
    assert minimise_2(np.zeros((3, 3)), np.zeros(3), 1.0) == pytest.approx(np.zeros(3))
    assert minimise_1(np.zeros((3, 3)), np.zeros(3), 1.0) == pytest.approx(np.zeros(3))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scale", [0.05, 3.0])
def test_the_one_norm_optimum_against_a_general_solver(seed, scale):
    A, b = problem(seed, scale=scale)
    ours = minimise_1(A, b, 1.0)
    split = optimize.minimize(  # φ = p - q with p, q ≥ 0 and Σ(p + q) ≤ 1
        lambda v: objective(A, b, v[:6] - v[6:]),
        np.full(12, 1e-2),
        bounds=[(0, None)] * 12,
        constraints={"type": "ineq", "fun": lambda v: 1 - v.sum()},
        method="SLSQP",
        options={"maxiter": 2000, "ftol": 1e-14},
    )
    assert np.abs(ours).sum() <= 1 + 1e-9
    assert objective(A, b, ours) <= split.fun + 1e-7


@pytest.mark.parametrize(("radius", "norm"), [(0, 2), (-1, 2), (float("nan"), 2), (float("inf"), 1), (1, 3)])
def test_meaningless_balls_are_refused(radius, norm):
    with pytest.raises(ParameterError):
        Ball(radius, norm)
