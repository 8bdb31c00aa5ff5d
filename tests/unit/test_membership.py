"""The membership attack: it finds members through exact means, not through noise, and its curves are curves."""

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain import evaluation

RNG = np.random.default_rng(0)
ROWS, LABELS = RNG.random((300, 12)), RNG.choice([-1.0, 1.0], 300)


def mean(rows, labels, seed):
    return rows.mean(axis=0)


def noisy_mean(rows, labels, seed):
    return rows.mean(axis=0) + np.random.default_rng(seed).normal(0, 5, 12)


def attack(explain, person=0):
    return evaluation.membership(explain, ROWS, LABELS, person, size=5, shadows=60, guesses=60, seed=person)


def test_exact_means_of_few_give_members_away_and_noisy_ones_do_not():
    exact = evaluation.Membership.pool(attack(mean, person) for person in range(3))
    private = evaluation.Membership.pool(attack(noisy_mean, person) for person in range(3))
    assert exact.auc > 0.8
    assert exact.hits(0.1) > 0.4
    assert 0.4 < private.auc < 0.6


def test_the_curve_and_its_area_agree():
    found = attack(mean)
    false_alarms, hits = found.roc()
    assert (np.diff(false_alarms) >= 0).all()
    assert (np.diff(hits) >= 0).all()
    assert (false_alarms[0], hits[0], false_alarms[-1], hits[-1]) == (0, 0, 1, 1)
    assert np.trapezoid(hits, false_alarms) == pytest.approx(found.auc)


def test_hits_are_counted_at_the_false_alarms_allowed():
    found = evaluation.Membership(inside=np.array([1.0, 2.0, 3.0, 4.0]), outside=np.array([0.0, 1.5, 2.5, 3.5]))
    assert found.hits(0.0) == 0.25
    assert found.hits(0.25) == 0.5
    assert found.hits(1.0) == 1.0
    assert found.auc == 10 / 16


def test_an_attack_without_a_person_or_shadows_is_refused():
    with pytest.raises(dpx.DpexplainError, match="population"):
        evaluation.membership(mean, ROWS, LABELS, 300, size=10)
    with pytest.raises(dpx.DpexplainError, match="shadows"):
        evaluation.membership(mean, ROWS, LABELS, 0, size=10, shadows=5)
