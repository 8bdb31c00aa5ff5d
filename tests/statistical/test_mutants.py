"""Every fault that is put into the library on purpose is noticed, and the check that notices it is silent without the fault."""

import pytest

from dpexplain.evaluation.audit.mutants import MUTANTS, find_mutants
from dpexplain.evaluation.audit.registration_audit import registration_moves

QUICK = {
    "half of the steps reserved",
    "code gains times 0.5",
    "the constant of a free plane left out of its reach",
    "sums scaled by the private row count",
    "labels read by the type of the whole column",
    "owners told apart by repr",
    "Shapley orders by position",
    "a start that is not projected",
    "histograms of several numbers with the bound of one",
    "further sums with half of the noise that is paid for",
}


IN_TEST_AUDIT = {  # where docs/claims.md points
    "an exact gradient norm that nobody paid for",
    "exp(-d²) with the constant 1 instead of 1.527",
    "noise for an added record under a claim for a replaced one",
    "labels that are compared and not clipped",
    "labels in all tables with the bound of one",
}


def names(quick):
    return [one.name for one in MUTANTS if (one.name in QUICK) == quick and one.name not in IN_TEST_AUDIT]


LONGEST = "sums scaled by the private row count"  # by an audit, several times as long as the others


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[pytest.mark.slow] if one == LONGEST else []) for one in names(quick=True)]
)
def test_a_mutant_is_caught(name):
    (found,) = find_mutants(200 if name == LONGEST else 60, (name,))  # the others are refused or found without an audit's runs
    assert found.sound
    assert found.caught, name


@pytest.mark.slow
@pytest.mark.parametrize("name", names(quick=False))
def test_a_mutant_is_caught_by_an_audit(name):
    (found,) = find_mutants(400, (name,))
    assert found.sound
    assert found.caught, name


def test_registration_moves_no_bounded_query_further_than_claimed():
    moves = list(registration_moves())
    assert max(one.ratio for one in moves) <= 1
    assert max(one.ratio for one in moves) > 0.1  # the odd records do count
