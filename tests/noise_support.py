"""What statistical tests of noise share: the relations to try, and noise that is wrong on purpose, which a test must notice."""

import pytest
from scipy import stats

from dpexplain.privacy.relation import Neighbours, Relation

every_relation = pytest.mark.parametrize(
    "neighbours",
    [Neighbours(), Neighbours(Relation.REPLACE_ONE), Neighbours(unit="person", rows_per_unit=3)],
    ids=lambda n: n.describe(),
)


class Scaled:
    """A mutant: every normal is too small (or too large) by a factor."""

    secure = False

    def __init__(self, noise, factor):
        self.noise, self.factor = noise, factor

    def standard_normal(self, size):
        return self.factor * self.noise.standard_normal(size)


def has_unit_scale(standardised):
    """Whether `standardised(factor)` draws standard normals at factor 1, and is seen not to at factor 0.8."""
    right, wrong = (stats.kstest(standardised(factor), "norm").pvalue for factor in (1.0, 0.8))
    return right > 1e-4 and wrong < 1e-12
