"""Counts of a discovery have the stated noise; texts pass with the stated probability; an attack finds no more than was paid for."""

import sys
from math import exp

import numpy as np
import pytest
from scipy import stats

from dpexplain.core.text_prior import CHARACTERS, TextPrior
from dpexplain.evaluation.audit.bounds import mu_from_errors
from dpexplain.mechanisms.discovery_counts import CoarseCounts, TextCounts, plan_discovery
from dpexplain.mechanisms.door import Door
from dpexplain.mechanisms.gaussian import GaussianMechanism
from dpexplain.mechanisms.misfit_counts import MisfitCounts
from dpexplain.noise.seeded import SeededNoise
from dpexplain.privacy.events import mu_of, price
from dpexplain.privacy.relation import Neighbours
from noise_support import Scaled, every_relation, has_unit_scale

MU = 0.5


class Given:
    """Columns whose counts are given."""

    def __init__(self, texts=None, numbers=None):
        self.held, self.numbers = texts or {}, numbers

    def texts(self, name):
        return dict(self.held)

    def coarse(self, names):
        return self.numbers

    def misfits(self):
        return self.numbers


class Mutant(Scaled):
    def uniform(self, size):
        return self.noise.uniform(size)


@every_relation
@pytest.mark.parametrize("make", [lambda n: CoarseCounts(("a", "b"), n), lambda n: MisfitCounts(2, n)], ids=["bins", "misfits"])
def test_noise_on_counts_has_the_stated_scale_and_less_is_noticed(make, neighbours):
    mechanism = GaussianMechanism(make(neighbours), MU)
    counts = np.arange(float(mechanism.dimension))

    def standardised_draws(factor):
        noise = Mutant(SeededNoise(5), factor)
        rows, runs = Given(numbers=counts), 10_000 // mechanism.dimension
        draws = [Door(rows, noise, [mechanism.event()]).release(mechanism) - counts for _ in range(runs)]
        return np.concatenate(draws) / (np.sqrt(2) * neighbours.multiplier / MU)

    assert has_unit_scale(standardised_draws)


def count_shown(count, factor, seed, runs=4000, text="work"):
    """How often a text that `count` rows have is shown."""
    mechanism = GaussianMechanism(TextCounts((("c", TextPrior()),), Neighbours()), MU)
    noise = Mutant(SeededNoise(seed), factor)
    rows = Given({text: count})
    return sum(text in Door(rows, noise, [mechanism.event()]).visible(mechanism)["c"] for _ in range(runs)), mechanism.sigma


@pytest.mark.slow
@pytest.mark.parametrize("above", [-1, 0, 1])
def test_a_text_passes_with_the_stated_probability_and_less_noise_is_noticed(above):
    sigma = 1 / MU
    count = round(sigma * TextPrior().threshold("work") + above * sigma)
    expected = stats.norm.cdf(count / sigma - TextPrior().threshold("work"))
    hits, exact = count_shown(count, 1.0, seed=above + 7)
    assert np.isclose(exact, sigma, rtol=1e-5)
    assert stats.binomtest(hits, 4000, expected).pvalue > 1e-4
    if above:
        assert stats.binomtest(count_shown(count, 0.8, seed=above + 7)[0], 4000, expected).pvalue < 1e-6


@pytest.mark.slow
def test_texts_that_nobody_has_are_shown_as_often_as_stated_and_follow_the_prior():
    prior, noise = TextPrior(("yes", "no"), expected_spurious=0.3), SeededNoise(3)
    runs = 20_000
    found = [text for _ in range(runs) for text in prior.spurious(noise.uniform, frozenset())]
    assert abs(len(found) / runs - 0.3) < 5 * np.sqrt(0.3 / runs)
    for text in ("yes", "7", "e"):
        chance = 0.3 * exp(prior.log_probability(text))
        assert stats.binomtest(found.count(text), runs, chance).pvalue > 1e-4
    assert "yes" not in [text for _ in range(500) for text in prior.spurious(noise.uniform, frozenset({"yes"}))]
    assert 0.9 < sum(CHARACTERS.values()) < 1


def test_rare_characters_are_drawn_as_often_as_the_prior_says():
    """Numbers beyond the last code point are no draw of it: it would be shown more often where nobody has it than noise allows."""
    prior, last = TextPrior(expected_spurious=1.0), chr(sys.maxunicode)
    draws = iter([0.5, 0.9, 0.1, 0.9999999, 0.9999999, *[0.1] * 50])  # one text of one rare character, whose number is too large

    def uniform(size):
        return np.array([next(draws) for _ in range(size)])

    assert last not in prior.spurious(uniform, frozenset())


def attack(mechanism, factor, runs=3000):
    """Guess by whether the text is shown whether it occurs once more: a lower bound on μ at error probability 10⁻⁴."""
    threshold = mechanism.sigma * TextPrior().threshold("work")
    count = int(threshold)
    guesses = []
    for seed, rows in ((1, count), (2, count + 1)):
        noise = Mutant(SeededNoise(seed), factor)
        guesses.append(
            sum("work" in Door(Given({"work": rows}), noise, [mechanism.event()]).visible(mechanism)["c"] for _ in range(runs))
        )
    return mu_from_errors(guesses[0], runs - guesses[1], runs, 1e-4)


@pytest.mark.slow
def test_an_audit_finds_what_was_paid_and_not_more_and_refutes_too_little_noise():
    claimed = 2.0
    mechanism = GaussianMechanism(TextCounts((("c", TextPrior()),), Neighbours()), claimed)
    found = attack(mechanism, 1.0)
    assert 0.5 * claimed < found <= claimed
    assert attack(mechanism, 0.4) > claimed


def test_a_plan_costs_its_budget_and_not_more():
    for numbers, texts in (((), ("c",)), (("a", "b"), ()), (("a",), ("c", "d"))):
        plan = plan_discovery(numbers, tuple((name, TextPrior()) for name in texts), MU, Neighbours())
        assert MU * (1 - 1e-6) <= mu_of(price(plan.events)) <= MU
