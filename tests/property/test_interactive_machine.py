"""Queries, refusals, restarts and several explainers on one budget, in any order: the total is never exceeded and never forgotten."""

import tempfile
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

import dpexplain as dpx
from dpexplain.noise.seeded import SeededNoise
from hypothesis_support import examples

BUDGET = dpx.Budget(0.5, 1e-6)
CHEAP = dict(epsilon=0.1, delta=1e-6, steps=12)
MECHANISMS = [
    dpx.Adaptive(**CHEAP),
    dpx.Enhanced(**CHEAP),
    dpx.Adaptive(**CHEAP, rule="paper"),
    dpx.Enhanced(**CHEAP, rule="paper"),
    dpx.Basic(**CHEAP),
    dpx.Adaptive(0.1, 1e-6),  # by moments: pays for what the history lacks
    dpx.Enhanced(0.2, 1e-6, plane="fitted", weight=dpx.weights.Gaussian(0.8)),
]
which = st.integers(0, 2)
points = st.tuples(*[st.sampled_from([0.0, 0.3, 0.6, 1.0])] * 3)


class Sharing(RuleBasedStateMachine):
    """Three explainers with mechanisms of their own, on one SQLite ledger."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        rng = np.random.default_rng(0)
        self.rows = rng.random((300, 3))
        self.labels = np.sign(self.rows[:, 0] - 0.5)
        self.chosen = [0, 2, 5]
        self.answered = 0
        self.paid = 0.0  # Σ μ² of the answers that left
        self.restart()

    @rule()
    def restart(self):
        """Everything in memory is lost; the ledger is not."""
        self.data = dpx.PrivateData(self.rows, dpx.Domain.encoded(3), labels=self.labels, name="shared")
        where = f"sqlite:///{Path(self.folder.name) / 'one.ledger'}"
        noise = SeededNoise(self.answered)
        self.explainers = [dpx.Explainer(self.data, BUDGET, MECHANISMS[i], ledger=where, noise=noise) for i in self.chosen]

    @rule(who=which, mechanism=st.integers(0, len(MECHANISMS) - 1))
    def replace_one(self, who, mechanism):
        self.chosen[who] = mechanism
        self.restart()

    @rule(who=which, point=points)
    def ask(self, who, point):
        before = self.explainers[who].spent.mu
        answers = self.explainers[who].explain_many(np.array([point]))
        if answers.refusal is not None:
            assert answers.refusal.requested.mu**2 + before**2 > BUDGET.mu**2 * (1 - 1e-9)
            assert self.explainers[who].spent.mu == before
            return
        self.answered += 1
        self.paid += answers[0].cost.mu ** 2
        assert not answers[0].copied or answers[0].cost.mu == 0

    @rule(who=which, many=st.lists(points, min_size=1, max_size=6))
    def ask_many(self, who, many):
        answers = self.explainers[who].explain_many(np.array(many))
        assert answers.complete == (len(answers) == len(many))
        self.answered += len(answers)
        self.paid += sum(a.cost.mu**2 for a in answers)

    @invariant()
    def nothing_is_exceeded_or_forgotten(self):
        spent = self.explainers[0].spent
        assert spent.mu <= BUDGET.mu
        assert spent.epsilon <= BUDGET.epsilon
        assert abs(spent.mu - sqrt(self.paid)) <= 1e-9
        assert all(explainer.spent.mu == spent.mu for explainer in self.explainers)
        assert self.data.spent.mu == spent.mu
        assert len(self.explainers[0].history) == self.answered

    def teardown(self):
        self.folder.cleanup()


QUICK = settings(
    max_examples=examples(3), stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)


def test_a_few_interleavings():
    run_state_machine_as_test(Sharing, settings=QUICK)


@pytest.mark.slow
def test_many_interleavings():
    run_state_machine_as_test(Sharing, settings=settings(QUICK, max_examples=examples(40), stateful_step_count=40))
