"""What may be wrong about the change of slopes near a record: where numbers are tied to each other, and where no model was asked."""

import numpy as np
import pytest

from dpexplain.core.layout import Layout
from dpexplain.core.weights import Gaussian
from dpexplain.estimation.global_slopes import DOUBT_WITHOUT_MODEL, Slopes, guessed_slopes
from dpexplain.estimation.local_change import LocalChange
from dpexplain.estimation.planes import Average
from dpexplain.estimation.reference_planes import ReferencePlanes

LAYOUT = Layout((0, 1, 2), (1, 2, 4), (True, True, False))


def change_of(correlation, *, asked=True, left=0.1):
    covariance = np.diag([0.04, 0.04, 0.2, 0.2])
    covariance[0, 1] = covariance[1, 0] = 0.04 * correlation
    values, vectors = np.linalg.eigh(covariance)
    return LocalChange.of((values, vectors), left / (values + left), LAYOUT, 0.5, asked=asked)


def test_numbers_that_determine_each_other_may_change_unseen_and_free_ones_hardly():
    free, tied = change_of(0.0), change_of(0.99)
    assert free.unseen == pytest.approx(0.0, abs=1e-12)
    assert (tied.unseen[:2] > 0.04).all()
    assert (tied.unseen[2:] == 0).all()


def test_columns_of_little_variance_may_change_by_more():
    found = change_of(0.0)
    assert found.usual == pytest.approx(np.array([5, 5, 1, 1]) * found.usual[2])


def test_a_direction_that_is_seen_adds_nothing():
    assert change_of(0.99, left=1e-9).unseen == pytest.approx(0.0, abs=1e-9)


def test_without_a_model_every_column_may_change():
    found = change_of(0.0, asked=False)
    assert (found.unseen > 0).all()
    assert not Slopes(np.zeros(1), np.zeros(1), DOUBT_WITHOUT_MODEL).asked
    assert Slopes(np.zeros(1), np.zeros(1), 4e-4).asked


def test_a_plane_for_all_rows_has_no_part_in_it_and_a_narrower_one_has_more():
    tied, still = change_of(0.99), np.zeros((1, 4))
    assert tied.variances(still, np.ones(1)) == pytest.approx(0.0)
    half, tenth = (tied.variances(still, np.array([share]))[0, 0] for share in (0.5, 0.1))
    assert 0 < half < tenth


def test_a_larger_change_of_any_column_is_less_certain():
    tied, change = change_of(0.5), np.array([[0.3, -0.1, 0.1, 0.0], [0.6, -0.2, 0.2, 0.0], [0.0, 0.0, 0.4, 0.1]])
    once, twice, codes = tied.variances(change, np.full(3, 1.0))
    assert twice == pytest.approx(4 * once)
    assert (codes > 0).all()


def records(apart):
    """Planes from records whose two numbers differ by `apart` where the released covariance says 0.01; the first has the slope 1."""
    rng = np.random.default_rng(1)
    first = rng.uniform(0.2, 0.8, 6_000)
    code = np.eye(2)[rng.integers(0, 2, 6_000)]
    released = np.column_stack([first, first + 0.01 * rng.standard_normal(6_000), code])
    points = np.column_stack([first, first + apart * rng.standard_normal(6_000), code])
    labels = points[:, 0] - 0.5
    values, vectors = np.linalg.eigh(np.cov(released.T))
    slopes = Slopes(guessed_slopes(points, labels, np.ones(6_000)).values, np.full(4, 0.3), 1e-4)
    known = (points.mean(axis=0), 0.0, slopes, np.maximum(values, 1e-7), vectors, np.ones(4))
    made = np.zeros((2, 6_000), dtype=np.float32)
    return ReferencePlanes(points, labels, np.ones(6_000), made, LAYOUT, *known, Average(points.mean(axis=0), 1e-4), 1e-6, 10**6)


def test_slopes_along_a_direction_in_which_records_are_known_to_vary_too_much_are_uncertain():
    query = np.array([[0.5, 0.5, 1.0, 0.0]])
    right, wrong = (records(apart).fit(query, Gaussian(1.2)).errors[0] for apart in (0.01, 0.06))
    assert wrong[0] > 1.2 * right[0]
    assert wrong[1] > right[1]
    assert wrong[2:] == pytest.approx(right[2:], abs=0.01)


def test_a_number_whose_slopes_disagree_may_change_by_more():
    layout = Layout((0, 1, 3), (1, 3, 4), (True, False, True))
    covariance = np.full(4, 0.1), np.eye(4)
    plain, apart = (LocalChange.of(covariance, np.zeros(4), layout, 0.2, asked=True, apart=np.full(4, e)) for e in (0.0, 0.04))
    longer = apart.unseen_variances(np.array([0.5])) - plain.unseen_variances(np.array([0.5]))
    assert (longer[0, [0, 3]] > 0).all()
    assert (longer[0, [1, 2]] == 0).all()  # codes have the margins that were released
    assert not apart.unseen_variances(np.array([1.0])).any()  # where all rows count nothing changes
