"""The three planes of an exact optimum, each against plain least squares on the rows."""

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.core.ball import minimise_free
from dpexplain.core.plane import plane_for, require_plane
from dpexplain.errors import ParameterError

DOMAIN = dpx.Domain([dpx.Numeric("a", 0, 1), dpx.Numeric("b", 0, 1), dpx.Categorical("c", values=["x", "y", "z"])])
WEIGHT = dpx.weights.Gaussian(0.9)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    table = {"a": rng.random(3_000), "b": rng.beta(1, 4, 3_000), "c": rng.choice(["x", "y", "z"], 3_000, p=[0.7, 0.2, 0.1])}
    X = DOMAIN.encode(table)
    labels = np.tanh(3 * X[:, 0] - 2 * X[:, 1] + X[:, 2] + 1)
    return X, labels, dpx.PrivateData(table, DOMAIN, labels=labels)


def least_squares(X, y, z, column):
    """Slopes of the weighted least-squares plane; `column`: 1 where a constant is fitted too, 0 where it is not."""
    root = np.sqrt(WEIGHT(np.linalg.norm(X - z, axis=1)))
    design = np.column_stack([np.full(len(X), column), X - z]) * root[:, None]
    return np.linalg.lstsq(design, y * root, rcond=1e-6)[0][1:]


def test_each_plane_is_plain_least_squares(rows):
    X, y, data = rows
    z = X[7]
    fitted = evaluation.optimum(data, z, weight=WEIGHT)
    # nothing along the code's sum
    assert fitted - fitted[2:].mean() * np.array([0, 0, 1, 1, 1]) == pytest.approx(fitted, abs=1e-6)
    expected = least_squares(X, y, z, 1.0)
    assert X @ fitted - X.mean(axis=0) @ fitted == pytest.approx(X @ expected - X.mean(axis=0) @ expected, abs=1e-4)
    anchored = evaluation.optimum(data, z, weight=WEIGHT, anchor=0.4)
    assert (X - z) @ anchored == pytest.approx((X - z) @ least_squares(X, y - 0.4, z, 0.0), abs=1e-4)
    paper = evaluation.optimum(data, z, weight=WEIGHT, plane="paper", radius=100.0)
    assert (X - z) @ paper == pytest.approx((X - z) @ least_squares(X, y, z, 0.0), abs=1e-4)
    assert np.linalg.norm(evaluation.optimum(data, z, weight=WEIGHT, plane="paper")) <= 1 + 1e-12


def test_relative_excess_of_the_fitted_plane_is_measured_against_the_best_constant(rows):
    X, _, data = rows
    best = evaluation.optimum(data, X[3])
    assert evaluation.score(best, data, X[3]).relative_excess == pytest.approx(0, abs=1e-9)
    assert evaluation.score(np.zeros(5), data, X[3]).relative_excess == pytest.approx(1)
    held = evaluation.optimum(data, X[3], radius=0.1)
    assert np.linalg.norm(held) == pytest.approx(0.1)
    assert 0 < evaluation.score(held, data, X[3]).relative_excess < 1


def test_a_constant_model_has_no_exact_explanation_but_the_papers(rows):
    X, y, _ = rows
    constant = dpx.PrivateData(
        dict(zip("abc", (X[:, 0], X[:, 1], ["x"] * len(X)), strict=True)), DOMAIN, labels=np.full(len(y), 0.9)
    )
    for options in ({}, {"anchor": 0.9}):
        assert evaluation.optimum(constant, X[0], **options) == pytest.approx(np.zeros(5), abs=1e-5)
    assert np.linalg.norm(evaluation.optimum(constant, X[0], plane="paper")) > 0.5


def test_directions_that_nothing_determines_are_zero():
    A = np.diag([1.0, 1e-8, 0.0])
    assert minimise_free(A, np.array([0.5, 1e-8, 1e-12])) == pytest.approx(np.array([0.5, 0.0, 0.0]), abs=1e-12)


def test_planes_that_do_not_exist_or_lack_their_anchor_are_refused(rows):
    with pytest.raises(ParameterError, match="'fitted', 'anchored' or 'paper'"):
        require_plane("flat")
    with pytest.raises(ParameterError, match="Pass it as anchor="):
        plane_for("anchored", None)
    with pytest.raises(ParameterError, match="belongs to plane='anchored'"):
        evaluation.optimum(rows[2], rows[0][0], plane="fitted", anchor=0.1)
    assert plane_for(None, None) == "fitted"
    assert plane_for(None, 0.2) == "anchored"
