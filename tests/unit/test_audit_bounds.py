"""Bounds from counts: below the truth as often as they promise, near it where they can be, and sharp about rare and certain leaks."""

import numpy as np
import pytest
from scipy.stats import binom

from dpexplain.evaluation.audit.bounds import best_threshold, mu_from_errors, mu_from_scores, mu_from_wins, noticed_factor
from dpexplain.evaluation.audit.distinguisher import Distinguisher, stack_transcripts

ERROR = 0.1


@pytest.mark.parametrize("mu", [0.0, 0.5, 2.2])
def test_a_bound_passes_the_truth_no_more_often_than_it_says(mu):
    rng, times = np.random.default_rng(0), 300
    passed = sum(
        mu_from_scores(rng.normal(mu, 1, 200), rng.normal(0, 1, 200), threshold=mu / 2, error=ERROR) > mu for _ in range(times)
    )
    assert passed <= binom.ppf(0.9999, times, ERROR)


def test_bounds_come_near_the_truth():
    rng = np.random.default_rng(1)
    inside, outside = rng.normal(2, 1, 40_000), rng.normal(0, 1, 40_000)
    threshold = best_threshold(inside, outside, 40_000, ERROR)
    assert 1.93 < mu_from_scores(inside, outside, threshold, ERROR) <= 2.0


def test_without_any_success_there_is_no_bound():
    assert mu_from_wins(0, 100, ERROR) == 0
    assert mu_from_errors(100, 100, 100, ERROR) == 0


def test_a_rare_but_certain_leak_is_seen_by_the_threshold():
    """One run in twenty shows the record for certain: the area under the curve says hardly anything, one threshold does."""
    rng, runs = np.random.default_rng(2), 4000
    outside = rng.normal(0, 1, runs)
    inside = np.where(rng.random(runs) < 0.05, 100.0, rng.normal(0, 1, runs))
    seen = mu_from_scores(inside, outside, 50.0, 0.01)
    assert seen > 1.1
    assert seen > 4 * mu_from_wins(int((inside > outside).sum()), runs, 0.01)


def test_more_runs_notice_smaller_errors():
    few, many = (noticed_factor(2.0, 2.0, runs, 0.01) for runs in (200, 2000))
    assert 1.1 < many < 1.2 < few < 1.6
    assert noticed_factor(0.0, 2.0, 1000, 0.01) is None
    assert noticed_factor(1e-3, 2.0, 1000, 0.01) is None


def test_shared_noise_teaches_the_best_direction_from_few_runs():
    rng = np.random.default_rng(3)
    mixing, shift = np.eye(6) + 0.5 * rng.standard_normal((6, 6)), rng.standard_normal(6)
    shared = rng.standard_normal((60, 6)) @ mixing
    found = Distinguisher.learn_distinguisher(shared + shift, shared).direction
    best = np.linalg.solve(mixing.T @ mixing, shift)
    efficiency = (found @ shift) ** 2 / (found @ mixing.T @ mixing @ found) / (best @ shift)
    assert efficiency > 0.8


def test_a_single_number_that_tells_most_is_used_alone():
    rng = np.random.default_rng(5)
    outside, inside = rng.standard_normal((2, 60, 8))
    outside[:, 2], inside[:, 2] = 0.0, rng.exponential(1e-3, 60)  # nothing, or something: certain, and not Gaussian
    outside[:, 5] += 1e3 * outside[:, 2]
    assert (np.flatnonzero(Distinguisher.learn_distinguisher(inside, outside).direction) == [2]).all()


def test_what_tells_for_certain_decides():
    rng = np.random.default_rng(4)
    noise, certain, constant = rng.standard_normal((50, 3)), np.arange(2.0)[:, None] * np.ones(50), np.ones((50, 1))
    outside, inside = (np.hstack([noise, certain[i][:, None] * 1e-4 + 5, constant]) for i in (0, 1))
    telling = Distinguisher.learn_distinguisher(inside, outside)
    assert telling.score(inside).min() > telling.score(outside).max()
    assert telling.direction[4] == 0


def test_vectors_of_different_length_become_rows():
    rows = [np.ones(2), np.ones(4)]
    assert (stack_transcripts(rows) == [[1, 1, 0, 0], [1, 1, 1, 1]]).all()
    assert (stack_transcripts(rows, 3) == [[1, 1, 0], [1, 1, 1]]).all()
