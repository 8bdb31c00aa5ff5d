"""What statistical tests of noise share: the relations to try, a few rows, and noise that is wrong on purpose, which a test must notice."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from dpexplain.backends.oracle import OracleRows
from dpexplain.core.layout import Layout
from dpexplain.core.moments import Moments
from dpexplain.mechanisms.door import Door, listening
from dpexplain.mechanisms.gaussian import GaussianMechanism
from dpexplain.privacy.relation import Neighbours, Relation

every_relation = pytest.mark.parametrize(
    "neighbours",
    [Neighbours(), Neighbours(Relation.REPLACE_ONE), Neighbours(unit="person", rows_per_unit=3)],
    ids=lambda n: n.describe(),
)
# of `mixed_rows`: two numbers, a code of three columns and one of one
LAYOUT = Layout((0, 1, 4, 5), (1, 4, 5, 6), (True, False, False, True))


def mixed_rows(m=60):
    rng = np.random.default_rng(0)
    X = np.zeros((m, 6))
    X[:, [0, 5]] = rng.random((m, 2))
    X[np.arange(m), rng.integers(1, 4, m)] = 1
    X[:, 4] = rng.integers(0, 2, m)
    return OracleRows(X, rng.choice([-1.0, 1.0], m))


class ZeroRows:
    """Rows whose sums are all zero, so that what is released is its noise."""

    summation_error = 1e-13

    def __init__(self, width):
        self.width = width

    def local(self, query):
        return Moments(np.zeros((self.width, self.width)), np.zeros(self.width), np.zeros(self.width))

    def shapley(self, query):
        return np.zeros(query.players)


class Scaled:
    """A mutant: every normal is too small (or too large) by a factor."""

    secure = False

    def __init__(self, noise, factor):
        self.noise, self.factor = noise, factor

    def standard_normal(self, size):
        return self.factor * self.noise.standard_normal(size)

    auxiliary_normal = standard_normal


def has_unit_scale(standardised):
    """Whether `standardised(factor)` draws standard normals at factor 1, and is seen not to at factor 0.8."""
    right, wrong = (stats.kstest(standardised(factor), "norm").pvalue for factor in (1.0, 0.8))
    return right > 1e-6 and wrong < 1e-12


@dataclass(frozen=True)
class Declared:
    """A bounded query whose statistic is whatever it is asked at, and whose bound is taken on trust: for tests of the noise alone."""

    sensitivity: float
    dimension: int
    what: str = "declared"

    def evaluate(self, rows, at):
        return at


def gaussian(sensitivity, dimension, mu):
    return GaussianMechanism(Declared(sensitivity, dimension), mu)


def release(mechanism, value, noise):
    """One release of `value`, whatever the mechanism's own query says."""
    (drawn,) = mechanism.draw(noise, 1)
    return mechanism.perturb(value, drawn)


def releases(mechanism, value, noise, count):
    """(count, dimension): as many releases of `value`, with noise drawn in one go, as a door does it."""
    return np.array([mechanism.perturb(value, drawn) for drawn in mechanism.draw(noise, count)])


def run(plan, rows, noise, *, private=True):
    """(what the plan returns, what its door counted)."""
    door = Door(rows, noise, plan.events, private=private)
    return plan.run(door), door.events


def record_releases(plan, rows, noise):
    """Everything that passes the door in one run: [(mechanism, public parameters, what was released)]."""
    passed = []
    with listening(lambda *one: passed.append(one)):
        run(plan, rows, noise)
    return passed
