"""Slopes of the plane through all rows: shrunk by direction, with a posterior that covers; and planes from labelled records."""

from dataclasses import replace

import numpy as np
import pytest

from dpexplain.core.layout import Layout
from dpexplain.core.weights import Gaussian
from dpexplain.estimation.global_slopes import Guess, NoisyEquations, Slopes, guessed_slopes
from dpexplain.estimation.planes import Average, hold_in_ball
from dpexplain.estimation.reference_planes import ReferencePlanes


def equations(phi, eigenvalues, noise, seed=0, numbers=()):
    rng = np.random.default_rng(seed)
    vectors = np.linalg.qr(rng.standard_normal((len(phi), len(phi))))[0]
    t1 = (vectors * eigenvalues) @ (vectors.T @ phi) + noise * rng.standard_normal(len(phi))
    return NoisyEquations(np.asarray(eigenvalues), vectors, t1, noise, 0.0, np.array(numbers, dtype=np.int64)), vectors


def test_what_is_determined_is_left_alone_and_what_is_not_is_zero_with_a_wide_bar():
    rng = np.random.default_rng(1)
    phi, eigenvalues = rng.standard_normal(30), np.repeat([0.2, 1e-7], 15)
    made, vectors = equations(phi, eigenvalues, 1e-4)
    found = made.slopes()
    assert vectors.T[:15] @ found.values == pytest.approx(vectors.T[:15] @ phi, abs=0.005)
    assert vectors.T[15:] @ found.values == pytest.approx(np.zeros(15), abs=0.02)
    assert (found.spread[:15] < 0.001).all()
    assert (found.spread[15:] > 0.4).all()


def test_without_noise_the_equations_are_solved():
    phi = np.linspace(-1, 1, 8)
    made, _ = equations(phi, np.linspace(0.01, 0.3, 8), 0.0)
    assert made.slopes().values == pytest.approx(phi, abs=1e-4)


def test_the_posterior_covers_and_less_of_it_does_not():
    ratios = []
    for seed in range(150):
        rng = np.random.default_rng(1000 + seed)
        made, vectors = equations(0.3 * rng.standard_normal(20), np.geomspace(1e-4, 0.3, 20), 1e-3, seed=seed)
        found = made.slopes()
        truth = np.random.default_rng(1000 + seed).standard_normal(20) * 0.3
        ratios.append(np.abs(found.values - truth) / found.errors(vectors))
    assert 0.93 <= (np.array(ratios) <= 2).mean() <= 0.97
    assert (np.array(ratios) <= 1.6).mean() < 0.93


def test_a_good_guess_is_followed_where_moments_are_noisy_and_a_bad_one_is_not():
    rng = np.random.default_rng(4)
    phi = 0.5 * rng.standard_normal(25)
    near, far = phi + 0.02 * rng.standard_normal(25), phi + rng.standard_normal(25)
    noisy, clear = (equations(phi, np.full(25, 0.05), noise)[0] for noise in (0.05, 0.02))
    plain, helped = (noisy.slopes(guess).values for guess in (None, Guess(near, 0.2)))
    assert np.linalg.norm(helped - phi) < 0.3 * np.linalg.norm(plain - phi)
    plain, misled = (clear.slopes(guess).values for guess in (None, Guess(far, 0.2)))
    assert np.linalg.norm(misled - phi) < 1.5 * np.linalg.norm(plain - phi)


def test_quiet_moments_do_not_outvote_the_model():
    """Label moments that shrinkage made smaller than their noise are likelier without slopes; that says nothing against the model's answers."""
    phi = np.random.default_rng(5).standard_normal(20)
    made, _ = equations(phi, np.full(20, 0.02), 0.05)
    quiet = replace(made, t1=0.6 * made.t1, second_error=0.01)
    assert quiet.slopes(Guess(phi, 0.05)).values == pytest.approx(phi, abs=0.1)


def test_covariances_that_are_quieter_than_their_noise_do_not_outvote_the_model():
    """Noise in covariances would show in label moments as far as slopes are long; after denoising it does not, which says nothing for slopes of 0."""
    phi = 0.3 * np.random.default_rng(6).standard_normal(80)
    made, _ = equations(phi, np.full(80, 0.02), 0.02)
    doubtful = replace(made, second_error=0.02)
    assert doubtful.slopes(Guess(phi, 0.05)).values == pytest.approx(phi, abs=0.1)
    strong, _ = equations(phi, np.full(80, 0.2), 0.02)
    assert np.linalg.norm(replace(strong, second_error=0.02).slopes(Guess(-phi, 0.05)).values + phi) > np.linalg.norm(phi)


def test_weights_of_points_decide_how_far_each_column_is_shrunk():
    rng = np.random.default_rng(7)
    flags = (rng.random((4000, 2)) < [0.5, 0.002]).astype(float)
    flags = np.vstack([flags, np.column_stack([rng.random(64) < 0.5, np.ones(64)])])
    weights = np.where(flags[:, 1] == 1, 4000 / (4000 + 64 / 0.002), 1.0)
    guess = guessed_slopes(flags, flags @ [0.3, -0.8], weights)
    assert guess.values == pytest.approx([0.3, -0.8], abs=0.02)
    assert guess.few[1] < 0.2 * guess.few[0]


def test_guesses_are_least_squares_with_a_little_ridge():
    rng = np.random.default_rng(0)
    points = rng.random((5000, 4))
    guess = guessed_slopes(points, points @ [1.0, -2.0, 0.5, 0.0] + 0.3, rng.uniform(0.5, 2, 5000))
    assert guess.values == pytest.approx([1.0, -2.0, 0.5, 0.0], abs=0.02)
    assert (guess.residual < 1e-4).all()


def test_residuals_count_by_the_points_that_a_column_concerns():
    """A rare value whose answers scatter ten times as much as others makes its own slope doubtful, and no other."""
    rng = np.random.default_rng(1)
    points = (rng.random((50_000, 2)) < [0.5, 0.01]).astype(float)
    labels = np.where(points[:, 1] == 1, 1.0, 0.1) * rng.standard_normal(len(points))
    residual = guessed_slopes(points, labels, np.ones(len(points))).residual
    assert residual[0] == pytest.approx(0.01 * 0.99 + 0.01, rel=0.1)
    assert residual[1] == pytest.approx(0.99 + 0.01 * 0.01, rel=0.15)


def tied_numbers(slope, error, noise=None):
    """Three numbers of which the third nearly follows from the others, with a slope along the direction in which they hardly vary."""
    vectors, _ = np.linalg.qr(np.array([[1.0, 0.2, 0.7], [0.3, 1.0, -0.6], [0.1, 0.4, 0.4]]))
    vectors, eigenvalues = vectors[:, ::-1], np.array([2e-4, 0.04, 0.08])
    phi = vectors @ [slope, 0.3, -0.2]
    t1 = vectors @ (eigenvalues * (phi @ vectors)) + (0.0 if noise is None else noise)
    return NoisyEquations(eigenvalues, vectors, t1, error, error, np.arange(3)), phi


def test_errors_along_numbers_that_determine_each_other_do_not_depend_on_the_usual_size_of_slopes():
    """Slopes of 0.3 elsewhere, and of 4 along a direction that noise hides: the model's guess of 0.5 is no evidence against 4."""
    made, phi = tied_numbers(4.0, 1e-3)
    found = made.slopes(Guess(made.vectors @ [0.5, 0.3, -0.2], 0.04, few=1e-4))
    errors = found.errors(made.vectors)
    assert np.abs(found.values - phi).max() > 1.0  # noise hides it
    assert (np.abs(found.values - phi) <= 2 * errors).all()
    straight = made.slopes(Guess(made.vectors @ [0.5, 0.3, -0.2], 1e-5, few=1e-4))  # a model that does not bend
    assert straight.errors(made.vectors).max() < 0.2 * errors.max()


def test_noise_that_hides_a_variance_leaves_its_slope_unsure():
    """The more noise, the less a variance of nearly 0 says about whether there is any; what is left is that either is equally likely."""
    spreads = []
    for noise in (3e-3, 1e-2, 3e-2, 1.0):
        made, _ = tied_numbers(4.0, noise)
        spreads.append(made.slopes(Guess(made.vectors @ [0.5, 0.3, -0.2], 0.04, few=1e-4)).spread[0])
    assert spreads[0] > 4.0
    assert min(spreads) > 0.7 * spreads[0]


def test_slopes_along_tied_numbers_are_no_surer_under_the_prior_around_zero():
    """Labels that do not follow the guess elsewhere say nothing about a direction that noise hides."""
    spreads = []
    for guess in ([0.5, 0.3, -0.2], [0.5, 6.0, -5.0]):
        made, _ = tied_numbers(4.0, 3e-3)
        found = made.slopes(Guess(made.vectors @ guess, 0.04, few=1e-4))
        assert np.square(found.seen.spread) + np.square(found.hidden) == pytest.approx(np.square(found.spread))
        spreads.append(found.spread[0])
    assert np.abs(found.values).max() < 1.0  # the guess was not followed
    assert spreads[1] > 0.9 * spreads[0]


def test_moments_that_show_a_slope_along_tied_numbers_are_followed():
    made, phi = tied_numbers(4.0, 2e-5)
    found = made.slopes(Guess(made.vectors @ [0.5, 0.3, -0.2], 0.04, few=1e-4))
    assert found.values == pytest.approx(phi, abs=0.6)
    assert found.spread[0] < 0.5


def test_half_of_the_models_slope_is_expected_where_noise_hides_whether_numbers_vary():
    made, _ = tied_numbers(0.0, 3e-3)
    along = made.slopes(Guess(made.vectors @ [0.5, 0.3, -0.2], 0.04, few=1e-4)).values @ made.vectors
    assert along[0] == pytest.approx(0.25, abs=0.08)
    kept = made.slopes(Guess(made.vectors @ [0.5, 0.3, -0.2], 1e-6, few=1e-4)).values @ made.vectors
    assert kept[0] == pytest.approx(0.5, abs=0.05)  # a straight model has the same slopes everywhere


def test_slopes_along_a_difference_that_noise_hides_are_covered():
    """Two numbers that agree to a hundredth of their range: often noise makes a variance of their difference that looks seen."""
    rng, slope, inside = np.random.default_rng(8), np.array([15.0, -15.0]), []
    second = 0.05 * np.ones((2, 2)) + 2e-5 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    for _ in range(100):
        noise = 1e-3 * rng.standard_normal((2, 2))
        values, vectors = np.linalg.eigh(second + (noise + noise.T) / 2)
        t1 = second @ slope + 1e-3 * rng.standard_normal(2)
        made = NoisyEquations(np.maximum(values, 1e-7), vectors, t1, 1e-3, 1e-3, np.arange(2))
        found = made.slopes(Guess(np.array([2.0, -2.0]), 0.1, few=1 / 4096))
        inside.append(np.abs(found.values - slope) <= 2 * found.errors(vectors))
    assert np.mean(inside) > 0.9


def test_slopes_outside_a_ball_are_moved_to_its_nearest_point_in_prediction():
    eigenvalues, vectors = np.array([0.1, 1.0]), np.eye(2)
    held, capped = hold_in_ball(np.array([[3.0, 4.0], [0.1, 0.2]]), eigenvalues, vectors, 1.0)
    assert capped.tolist() == [True, False]
    assert np.linalg.norm(held[0]) == pytest.approx(1.0)
    assert held[0, 1] / held[0, 0] > 4 / 3  # the direction that predicts more is kept longer
    assert (held[1] == [0.1, 0.2]).all()


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(6)
    points = np.column_stack([rng.random((20_000, 2)), np.eye(3)[rng.choice(3, 20_000, p=[0.6, 0.3, 0.1])]])
    labels = np.tanh(3 * points[:, 0] - 2 * points[:, 1] ** 2 + points[:, 2] - 1)
    layout = Layout((0, 1, 2), (1, 2, 5), (True, True, False))
    values, vectors = np.linalg.eigh(np.cov(points.T))
    slopes = Slopes(guessed_slopes(points, labels, np.ones(20_000)).values, np.full(5, 0.01), 1e-4)
    known = (points.mean(axis=0), float(labels.mean()), slopes, np.maximum(values, 1e-7), vectors, np.ones(5))
    average = Average(points.mean(axis=0), 1e-4)
    return ReferencePlanes(
        points, labels, np.ones(20_000), np.zeros((2, 20_000), dtype=np.float32), layout, *known, average, 1e-6, 10**9
    )


@pytest.mark.parametrize("anchor", [None, 0.4])
def test_planes_from_many_records_are_weighted_least_squares(records, anchor):
    weight, z = Gaussian(1.0), np.array([0.3, 0.6, 0.0, 1.0, 0.0])
    found = records.fit(z[None], weight, None if anchor is None else np.array([anchor]))
    root = np.sqrt(weight(np.linalg.norm(records.points - z, axis=1)))
    free = np.ones(len(root)) if anchor is None else np.zeros(len(root))
    design = np.column_stack([free, records.points - z]) * root[:, None]
    best = np.linalg.lstsq(design, (records.labels - (anchor or 0.0)) * root, rcond=1e-9)[0]
    assert found.values[0][:2] == pytest.approx(best[1:3], abs=0.02)
    assert np.diff(found.values[0][2:]) == pytest.approx(np.diff(best[3:]), abs=0.03)
    assert found.answer[0] == pytest.approx(best[0] if anchor is None else anchor, abs=0.01)
    assert found.base + found.added.sum(axis=1) == pytest.approx(found.answer, abs=1e-12)
    assert (found.errors > 0).all()
    assert (found.answer_error[0] == 0) == (anchor is not None)


def test_numbers_that_hardly_vary_may_have_larger_slopes_than_codes():
    """A collinear pair of amounts: nothing determines their difference, and its bar is as wide as amounts' slopes are, not as codes'."""
    variance = np.array([0.2, 0.2, 0.2, 0.2, 0.003, 0.003])
    covariance = np.diag(variance)
    covariance[4, 5] = covariance[5, 4] = 0.003
    eigenvalues, vectors = np.linalg.eigh(covariance + 1e-9 * np.eye(6))
    phi = np.array([0.3, -0.3, 0.2, -0.2, 3.0, 1.0])
    made = NoisyEquations(eigenvalues, vectors, covariance @ phi, 1e-5, 1e-6, np.array([4, 5]))
    codes = NoisyEquations(eigenvalues, vectors, covariance @ phi, 1e-5, 1e-6, np.array([], dtype=np.int64))
    wide, narrow = made.slopes().errors(vectors), codes.slopes().errors(vectors)
    assert (wide[4:] > 1.2 * narrow[4:]).all()
    assert (np.abs(made.slopes().values - phi)[4:] <= 2 * wide[4:]).all()
    assert wide[:4] == pytest.approx(narrow[:4], rel=0.2)


def test_a_guess_from_few_points_does_not_make_rare_columns_certain():
    eigenvalues, vectors, phi = np.array([1e-4, 0.2, 0.25]), np.eye(3), np.array([0.8, 0.3, -0.4])
    t1 = eigenvalues * phi + np.array([3e-4, 0.0, 0.0])
    made = NoisyEquations(eigenvalues, vectors, t1, 3e-4, 0.0, np.array([], dtype=np.int64))
    drawn_to_zero = Guess(np.array([0.05, 0.3, -0.4]), 0.01, few=1 / 4096)
    found = made.slopes(drawn_to_zero)
    assert np.abs(found.values - phi)[0] <= 2.5 * found.errors(vectors)[0]
    sure = made.slopes(Guess(drawn_to_zero.values, 0.01, few=0.0))
    assert sure.errors(vectors)[0] < 0.7 * found.errors(vectors)[0]


def test_private_rows_that_are_few_widen_the_bars(records):
    z, weight = np.array([0.3, 0.6, 0.0, 1.0, 0.0]), Gaussian(0.8)
    many, few = records.fit(z[None], weight), replace(records, rows=200).fit(z[None], weight)
    assert (few.values == many.values).all()
    assert (few.errors > 1.3 * many.errors).mean() > 0.5
    assert (few.errors >= many.errors).all()


def test_directions_that_the_released_covariance_leaves_open_have_the_bars_of_the_plane_through_all_rows(records):
    loose = replace(records, slopes=Slopes(records.slopes.values, np.full(5, 0.7), records.slopes.doubt))
    z = np.array([0.3, 0.6, 0.0, 1.0, 0.0])
    known, unknown = (replace(loose, second_error=error).fit(z[None], Gaussian(0.8)) for error in (1e-6, 1.0))
    assert (known.values == unknown.values).all()
    assert (unknown.errors[0] > 0.3).all()
    assert (known.errors[0][:2] < 0.3).all()


def test_numbers_in_a_curved_relation_are_covered():
    """total = rate x time: the public points have the rows' covariance, but a straight relation, so the model's slopes there are another's."""
    rng = np.random.default_rng(3)
    time, rate = np.minimum(rng.exponential(0.3, 60_000), 1), rng.beta(2, 3, 60_000)
    rows = np.stack([time, rate, time * rate], axis=1)
    rows += 0.003 * rng.standard_normal(rows.shape)
    covariance = np.cov(rows.T)
    points = rng.multivariate_normal(rows.mean(axis=0), covariance, 4_000)

    def model(x):
        return np.tanh(2 * x[:, 1] - 3 * x[:, 0] + 0.5)

    guess = guessed_slopes(points, model(points), np.ones(len(points)))
    eigenvalues, vectors = np.linalg.eigh(covariance)
    exact = np.linalg.solve(covariance, (model(rows) - model(rows).mean()) @ (rows - rows.mean(axis=0)) / len(rows))
    of_numbers, of_codes = (
        NoisyEquations(eigenvalues, vectors, covariance @ exact, 1e-3, 5e-4, np.arange(count)).slopes(guess) for count in (3, 0)
    )
    assert (np.abs((of_numbers.values - exact) @ vectors) < 2 * of_numbers.spread).all()
    assert of_numbers.spread[0] > 1.3 * of_codes.spread[0]  # codes in the same place: their relation has no curve to doubt
    assert of_numbers.spread[1:] == pytest.approx(of_codes.spread[1:], rel=0.2)


@pytest.mark.parametrize("scales", [(), (2.0, 0.5, 3.0)])
def test_no_record_is_further_from_a_point_than_the_diameter(scales):
    layout, rng = Layout((0, 1, 4), (1, 4, 5), (True, False, False), scales), np.random.default_rng(0)
    unit = np.array(scales or np.ones(3))[[0, 1, 1, 1, 2]]
    codes = np.vstack([np.eye(3), np.zeros(3)])  # a code, or a value that is none of its categories
    records = np.array([[number, *code, flag] for number in (0.0, 1.0) for code in codes for flag in (0.0, 1.0)])
    for point, moves in ((records[0], (1, 2, 1)), (rng.random(5), (1, 3, 1))):
        apart = np.linalg.norm((records - point) * unit, axis=1)
        assert apart.max() <= layout.diameter(point)
        squares = np.square(scales or np.ones(3))
        assert layout.diameter(point) == pytest.approx(np.sqrt(np.dot(squares, moves)), rel=1e-9)
