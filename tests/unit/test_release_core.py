"""The mathematics behind a release: layouts, repair, the batched ball solve, the reference, factors of error bars."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpexplain.backends.oracle import OracleRows
from dpexplain.core import weights
from dpexplain.core.ball import minimise_2
from dpexplain.core.layout import Layout
from dpexplain.core.release_moments import CentreMoments, NormalisedMoments, NormalisedSums, centre_of, normalised_dimension
from dpexplain.estimation import reference
from dpexplain.estimation.answer import Solver
from dpexplain.estimation.calibrate import (
    NoiseRehearsal,
    as_sums,
    column_factors,
    equations_of,
    rehearsal_draws,
    replicates,
    solver_replicates,
)
from dpexplain.estimation.denoise import RIDGE, estimate
from dpexplain.estimation.global_slopes import Guess
from dpexplain.estimation.local_solve import Solutions, error_shape, solve, solve_one
from hypothesis_support import examples

LAYOUT = Layout((0, 3, 4, 5), (3, 4, 5, 6), (False, False, True, True))  # a code of three, a binary, two numbers


def rows(m=4000, unknown=0.0, seed=0):
    rng = np.random.default_rng(seed)
    code = rng.choice(3, m, p=[0.6, 0.3, 0.1])
    X = np.zeros((m, 6))
    known = rng.random(m) >= unknown
    X[np.flatnonzero(known), code[known]] = 1
    X[:, 3] = rng.random(m) < 0.2 + 0.4 * X[:, 0]
    X[:, 4] = rng.beta(2, 2 + 2 * X[:, 3])
    X[:, 5] = np.clip(0.5 * X[:, 4] + 0.3 * rng.random(m), 0, 1)
    return X, np.where(X[:, 4] + 0.4 * X[:, 0] > 0.7, 1.0, -1.0)


def exact_query(store, m):
    return NormalisedMoments(LAYOUT, *centre_of(store.centre(CentreMoments(LAYOUT)), LAYOUT, m, 0.0))


def find_estimate(unknown=0.0, sigma=0.0, shrink=False, seed=0):
    X, y = rows(unknown=unknown)
    store = OracleRows(X, y)
    query = exact_query(store, len(X))
    vector = query.vector(store.normalised(query))
    vector = vector + sigma * np.random.default_rng(seed).standard_normal(len(vector))
    sums = NormalisedSums.from_vector(vector, query.scales, LAYOUT)
    return estimate(sums, query, sigma, shrink=shrink), query, X, y


def test_a_layout_knows_its_columns():
    assert LAYOUT.owner.tolist() == [0, 0, 0, 1, 2, 3]
    assert LAYOUT.numbers.tolist() == [4, 5]
    assert LAYOUT.codes == (0, 1)
    assert LAYOUT.centre == pytest.approx([1 / 3] * 3 + [0.5] * 3)
    assert LAYOUT.reach == pytest.approx([2 / 3, 0.25, 0.25, 0.25])
    assert len(LAYOUT.pairs[0]) == 15 - 3
    assert LAYOUT.choices == [0]
    assert normalised_dimension(LAYOUT) == 2 + 12 + 12 + 2 + 1
    assert LAYOUT.per_attribute(np.arange(6.0)).tolist() == [3, 3, 4, 5]


@pytest.mark.parametrize("unknown", [0.0, 0.3])
def test_without_noise_the_moments_are_those_of_the_weighted_rows(unknown):
    got, query, X, y = find_estimate(unknown)
    w = query.weights(X)
    w = w / w.sum()
    mean = w @ X
    centred = X - mean
    assert got.mean == pytest.approx(mean, abs=1e-9)
    assert got.covariance == pytest.approx((centred * w[:, None]).T @ centred + RIDGE * np.eye(6), abs=1e-9)
    assert got.t0 == pytest.approx(w @ y)
    assert got.t1 == pytest.approx((w * y) @ centred, abs=1e-9)
    assert got.missing[0] == pytest.approx(1 - mean[:3].sum() if unknown else 0, abs=1e-9)
    assert got.missing[1] == pytest.approx(1 - mean[3])


@pytest.mark.parametrize("sigma", [1.0, 30.0, 1e3, 1e6])
def test_noise_is_repaired_into_moments_that_could_be(sigma):
    for seed in range(5):
        got, *_ = find_estimate(sigma=sigma, shrink=True, seed=seed)
        assert np.isfinite(got.covariance).all()
        assert (got.values > 0).all()
        assert ((got.mean > 0) & (got.mean < 1)).all()
        assert got.mean[:3].sum() <= 1 + 1e-9
        assert abs(got.t0) <= 1
        assert got.centred_error >= got.spread.t1


def test_shrinkage_brings_noisy_moments_closer_to_the_truth():
    truth, *_ = find_estimate()

    def distance(shrink):
        errors = [
            np.linalg.norm(find_estimate(sigma=400.0, shrink=shrink, seed=seed)[0].covariance - truth.covariance)
            for seed in range(20)
        ]
        return np.mean(errors)

    assert distance(True) < 0.82 * distance(False)


def test_a_variance_that_noise_hides_is_expected_to_be_positive():
    found = [find_estimate(sigma=900.0, shrink=True, seed=seed)[0] for seed in range(40)]
    truth, errors = find_estimate()[0].covariance[4:, 4:].diagonal(), [one.spread.squares for one in found]
    assert np.median(errors) > 2 * truth.max()
    variances = np.array([one.shrunk[4:, 4:].diagonal() for one in found])
    assert (variances > np.minimum(0.2 * np.array(errors)[:, None], 0.25)).all()  # not 0.0001, as if a number did not vary


def test_pure_noise_leaves_no_slopes():
    found = [find_estimate(sigma=1e5, shrink=True, seed=seed)[0] for seed in range(10)]
    assert np.median([np.linalg.norm(equations_of(one, LAYOUT).slopes().values) for one in found]) < 0.1


def test_label_moments_are_as_noisy_as_said_where_labels_are_far_from_0():
    """E y(x - μ) has the noise of μ too, times E y: three quarters of its variance where practically all labels are 1."""
    truth, query, *_ = find_estimate()
    world = replace(as_sums(truth, query), t0=0.9 * truth.total)
    world = replace(world, t1=truth.total * 0.9 * (truth.mean - query.centre))
    drawn = np.random.default_rng(3).standard_normal((400, normalised_dimension(LAYOUT)))
    rehearsal = NoiseRehearsal(query, 5.0, 1.0, weights.Stable())
    found = [estimate(rehearsal.with_noise(world, one), query, 5.0) for one in drawn]
    numbers = [one.t1[LAYOUT.numbers] for one in found]
    assert np.sqrt(np.square(numbers).mean()) == pytest.approx(float(found[0].centred_error), rel=0.08)
    assert found[0].centred_error > 1.3 * found[0].spread.t1


@pytest.mark.parametrize("sigma", [0.0, 5.0, 100.0])
def test_an_explanation_says_nothing_along_the_sum_of_a_complete_code(sigma):
    """Records differ from each other and from a query by vectors that sum to 0 over the code: there is nothing to explain."""
    got, query, X, _ = find_estimate(sigma=sigma, shrink=sigma > 0)
    assert got.missing[0] == 0
    assert got.covariance[:3].sum(axis=0) == pytest.approx(np.zeros(6), abs=1e-6)
    assert got.t1[:3].sum() == pytest.approx(0, abs=1e-12)
    solver = Solver.of(got, reference.build(got, query)[0], LAYOUT, 1.0, np.ones(6))
    many = solver.answer(X[:20], weights.Stable())
    assert many.values[:, :3].sum(axis=1) == pytest.approx(np.zeros(20), abs=1e-9)
    assert many.errors.max() < 1e3


def test_one_problem_alone_is_solved_as_in_a_batch():
    rng = np.random.default_rng(0)
    w, H = 10 ** rng.uniform(-3, 1, 9), rng.standard_normal((40, 9))
    B = 10 ** rng.uniform(-5, 2, (40, 1)) * rng.standard_normal((40, 9))
    many = solve(w, H, B, 1.0)
    assert (many.multiplier > 0).any()
    assert (many.multiplier == 0).any()
    for guess in (0.0, 0.1, 100.0):
        for values, multiplier, h, b in zip(many.values, many.multiplier, H, B, strict=True):
            one, found_multiplier = solve_one(w, h, b, 1.0, guess)
            assert one == pytest.approx(values, abs=1e-12)
            assert found_multiplier == pytest.approx(multiplier, rel=1e-9, abs=1e-12)
        again = solve(w, H, B, 1.0, guess)
        assert again.values == pytest.approx(many.values, abs=1e-12)


def test_an_estimate_written_as_sums_is_read_back():
    got, query, *_ = find_estimate(sigma=5.0, shrink=True)
    again = estimate(as_sums(got, query), query, 0.0, shrink=False)
    assert again.mean == pytest.approx(got.mean, abs=1e-8)
    assert again.t1 == pytest.approx(got.t1, abs=1e-4)
    assert again.t0 == pytest.approx(got.t0)


def test_a_centre_with_no_missing_mass_sums_to_one_even_when_clipped():
    X, y = rows()
    sums = OracleRows(X, y).centre(CentreMoments(LAYOUT))
    sums[:3] += [0, 0.25 * len(X), -0.25 * len(X)]
    centre, variance = centre_of(sums, LAYOUT, len(X), 1.0)
    assert centre[:3].sum() == pytest.approx(1, abs=1e-12)
    assert (centre >= 0).all()
    assert (variance > 0).all()


@settings(max_examples=examples(100), deadline=None)
@given(st.integers(1, 9), st.integers(0, 2**32 - 1), st.floats(-6, 1), st.floats(-3, 2))
def test_batched_solves_agree_with_the_one_by_one_solver(n, seed, smallest, scale):
    rng = np.random.default_rng(seed)
    w, H, B = 10 ** rng.uniform(smallest, 1, n), rng.standard_normal((7, n)), 10**scale * rng.standard_normal((7, n))
    got = solve(w, H, B, 1.0)
    for p, h, b, multiplier in zip(got.values, H, B, got.multiplier, strict=True):
        A = np.diag(w) + np.outer(h, h)
        best = minimise_2(A, b, 1.0)
        assert p @ A @ p - 2 * b @ p <= best @ A @ best - 2 * b @ best + 1e-9 * (1 + np.abs(b).max())
        assert np.linalg.norm(p) <= 1 + 1e-12
        assert (A + multiplier * np.eye(n)) @ p == pytest.approx(b, abs=1e-7 * (1 + np.abs(b).max()))


@settings(max_examples=examples(50), deadline=None)
@given(st.integers(2, 8), st.integers(0, 2**32 - 1), st.sampled_from([0.01, 10.0]))
def test_the_error_shape_is_the_derivative_of_the_solution(n, seed, scale):
    """diag(K²) with K = dφ/db, by finite differences."""
    rng = np.random.default_rng(seed)
    V = np.linalg.qr(rng.standard_normal((n, n)))[0]
    w, H, B = rng.uniform(0.5, 2, n), rng.standard_normal((1, n)), scale * rng.standard_normal((1, n))
    got = solve(w, H, B, 1.0)
    shape = error_shape(w, V, V**2, H, got)[0]
    steps = 1e-6 * np.eye(n)
    ahead, behind = (solve(w, np.repeat(H, n, 0), B + sign * steps, 1.0).values for sign in (1, -1))
    K = V @ ((ahead - behind) / 2e-6).T @ V.T
    assert shape == pytest.approx(np.square(K).sum(axis=1), rel=1e-3, abs=1e-6)


def test_the_ball_not_binding_has_no_multiplier():
    got = solve(np.ones(3), np.zeros((1, 3)), np.array([[0.1, 0.2, 0.0]]), 1.0)
    assert got.multiplier == pytest.approx([0])
    assert got.values[0] == pytest.approx([0.1, 0.2, 0])
    assert isinstance(got, Solutions)


@pytest.mark.parametrize("unknown", [0.0, 0.3])
def test_the_reference_reproduces_the_moments(unknown):
    got, query, *_ = find_estimate(unknown)
    made, coefficients = reference.build(got, query)
    points = made.points(LAYOUT)
    assert points.mean(axis=0) == pytest.approx(got.mean, abs=0.02)
    assert np.cov(points.T) == pytest.approx(got.covariance, abs=0.02)
    assert made.labels.mean() == pytest.approx(got.t0, abs=0.02)
    assert made.labels @ (points - got.mean) / len(points) == pytest.approx(got.t1, abs=0.02)
    assert (points[:, :3].sum(axis=1) <= 1).all()
    assert ((points >= 0) & (points <= 1)).all()
    assert (np.abs(made.labels) <= 1).all()
    assert made.inverse_weight.max() == 1
    again, _ = reference.build(got, query)
    assert (again.codes == made.codes).all()
    assert (again.labels == made.labels).all()
    assert coefficients.shape == (7,)


def test_points_differ_a_little_along_numbers_of_which_noise_hides_whether_they_are_equal():
    """Otherwise a model could not be asked what it does with their difference."""
    got, *_ = find_estimate()
    mean, covariance = np.r_[got.mean[:4], 0.5, 0.5], np.diag(got.covariance.diagonal())
    covariance[4:, 4:] = 0.05
    values, vectors = np.linalg.eigh(covariance)
    spreads = []
    for error in (0.0, 1e-4, 4e-4):
        equal = replace(got, mean=mean, values=values, vectors=vectors, idle=0 * got.idle, spread=replace(got.spread, s2=error))
        points = reference.Reference.without_labels(reference.draw(equal, LAYOUT)).points(LAYOUT)
        spreads.append((points[:, 4] - points[:, 5]).std() / np.sqrt(2))
    assert spreads[0] < 2e-4  # the grid of numbers
    assert spreads[1:] == pytest.approx(np.sqrt(np.array([1e-4, 4e-4]) / np.sqrt(2)), rel=0.1)


def test_strangers_are_like_the_reference_but_not_in_it():
    got, query, *_ = find_estimate()
    points = reference.build(got, query)[0].points(LAYOUT)
    others = reference.sample_public_points(got, LAYOUT, 256)
    assert others.mean(axis=0) == pytest.approx(points.mean(axis=0), abs=0.03)
    assert min(np.linalg.norm(points - other, axis=1).min() for other in others[:50]) > 0


def test_the_reference_knows_its_weights():
    got, query, *_ = find_estimate()
    made, _ = reference.build(got, query)
    inverse = 1 / query.weights(made.points(LAYOUT))
    assert made.inverse_weight == pytest.approx(inverse / inverse.max(), abs=2e-5)


def test_locality_is_corrected_towards_the_local_optimum():
    got, query, X, y = find_estimate()
    made, _ = reference.build(got, query)
    solver = Solver.of(got, made, LAYOUT, 1.0, np.ones(6))
    weight, before, after = weights.Gaussian(0.9), [], []
    for z in X[:20]:
        u = X - z
        alpha = weight(np.linalg.norm(u, axis=1))
        A, b = (u * alpha[:, None]).T @ u, (alpha * y) @ u
        best = minimise_2(A, b, 1.0)
        h = got.mean - z
        uniform = minimise_2(got.covariance + np.outer(h, h), got.t1 + got.t0 * h, 1.0)
        loss = [phi @ A @ phi - 2 * b @ phi for phi in (best, uniform, solver.answer(z[None], weight).values[0])]
        before.append((loss[1] - loss[0]) / -loss[0])
        after.append((loss[2] - loss[0]) / -loss[0])
    assert np.mean(after) < 0.6 * np.mean(before)


def test_a_window_that_sees_nothing_leaves_the_uniform_answer():
    got, query, X, _ = find_estimate()
    made, _ = reference.build(got, query)
    solver = Solver.of(got, made, LAYOUT, 1.0, np.ones(6))
    answer = solver.answer(X[:1] + 100.0, weights.Window(0.1))
    assert np.isfinite(answer.values).all()


def test_factors_follow_columns_and_cover_as_promised():
    rng = np.random.default_rng(0)
    scale = np.array([1.0, 1.0, 2.0, 4.0])
    moved = np.abs(rng.standard_normal((400, 50, 4))) * scale
    factors = column_factors(moved, np.ones_like(moved))
    assert factors == pytest.approx(scale, rel=0.05)
    assert (moved <= 2 * factors).mean() == pytest.approx(0.9545, abs=0.003)
    few = np.abs(rng.standard_normal((6, 50, 300))) * (1 + 0.3 * rng.standard_normal((6, 1, 300)))  # queries share a draw's noise
    fresh = np.abs(rng.standard_normal((200, 1, 300)) * (1 + 0.3 * rng.standard_normal((200, 1, 300))))
    assert (fresh <= 2 * column_factors(few, np.ones_like(few))).mean() == pytest.approx(0.9545, abs=0.012)
    layouts = [Layout((0,), (n,), (False,)) for n in (10, 200, 500)]
    assert [replicates(layout) for layout in layouts] == [16, 10, 6]
    assert [solver_replicates(layout) for layout in layouts] == [16, 6, 4]
    assert [rehearsal_draws(layout) for layout in layouts] == [32, 20, 12]


def test_sobol_points_are_those_of_scipy(monkeypatch):
    from scipy.stats import qmc

    from dpexplain.estimation import sobol

    for dimensions, points in ((1, 8), (40, 256), (900, 64)):
        expected = qmc.Sobol(dimensions, scramble=False).random(points)
        assert (sobol.sobol_points(dimensions, points) == expected).all()
    assert sobol.sobol_points(3, 5).shape == (5, 3)
    monkeypatch.setattr(sobol, "_direction_numbers", lambda: None)  # a SciPy that keeps them elsewhere
    assert (sobol.sobol_points(40, 256) == qmc.Sobol(40, scramble=False).random(256)).all()


@pytest.mark.parametrize("unknown", [0.0, 0.2])
def test_several_estimates_together_are_those_of_each_alone(unknown):
    got, query, *_ = find_estimate(unknown)
    rehearsal, dimension = NoiseRehearsal(query, 40.0, 1.0, weights.Stable()), normalised_dimension(LAYOUT)
    drawn = np.random.default_rng(1).standard_normal((5, dimension))
    world = as_sums(got, query)
    (together,) = rehearsal.estimates(world, 5, lambda size: drawn.reshape(-1)[:size])
    equations = equations_of(together, LAYOUT)
    guess = Guess(np.linspace(-1, 1, 6), 0.1, 1e-3)
    for k, noise in enumerate(drawn):
        alone = estimate(rehearsal.with_noise(world, noise), query, 40.0)
        for name in ("mean", "values", "t0", "t1", "missing", "total", "idle", "shrunk", "level", "centred_error"):
            assert np.asarray(getattr(together, name))[k] == pytest.approx(np.asarray(getattr(alone, name)), rel=1e-9, abs=1e-12)
        for prior in (None, guess):
            several, one = equations.slopes(prior), equations_of(alone, LAYOUT).slopes(prior)
            assert several.values[k] == pytest.approx(one.values, rel=1e-6, abs=1e-9)
            assert several.errors(together.vectors)[k] == pytest.approx(one.errors(alone.vectors), rel=1e-6)
