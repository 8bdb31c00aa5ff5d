"""Moments kept for offline comparisons: each question reaches the rows once."""

import numpy as np

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.backends.oracle import OracleRows
from dpexplain.core import weights
from dpexplain.core.moments import LocalMoments, RawMoments
from dpexplain.evaluation.metrics.stored_moments import RememberedRows


class CountedRows(OracleRows):
    asked = 0

    def local_many(self, queries):
        self.asked += len(queries)
        return super().local_many(queries)


def test_a_question_is_read_once_alone_or_among_others():
    rng = np.random.default_rng(0)
    rows = CountedRows(rng.random((50, 3)), np.ones(50))
    remembered = RememberedRows(rows)
    first, second = (LocalMoments(rng.random(3), weights.Stable()) for _ in range(2))
    other_weight = LocalMoments(first.point, weights.Gaussian(1.0))
    remembered.local(first)
    answers = remembered.local_many([second, first, other_weight, second])
    assert rows.asked == 3
    for answer, query in zip(answers, (second, first, other_weight, second), strict=True):
        assert (answer.A == rows.local(query).A).all()


def test_old_answers_are_forgotten_and_other_questions_are_passed_on():
    rng = np.random.default_rng(0)
    rows = CountedRows(rng.random((50, 3)), np.ones(50))
    remembered = RememberedRows(rows, most=1)
    first, second = (LocalMoments(rng.random(3), weights.Stable()) for _ in range(2))
    raw = remembered.raw(RawMoments(first.point, first.weight))
    assert rows.asked == 0
    assert (remembered.local(first).A == raw.S2).all()
    assert len(remembered.local_many([second, first])) == 2
    assert (rows.asked, len(remembered.known)) == (2, 1)


def test_moments_of_many_queries_are_those_of_each():
    rng = np.random.default_rng(2)
    X = rng.random((80, 3))
    data = dpx.PrivateData(X, dpx.Domain.encoded(3), labels=np.sign(X[:, 0] - 0.5))
    together = evaluation.local_moments_of(data, X[:5], weights.Gaussian(0.5))
    for point, many in zip(X[:5], together, strict=True):
        alone = evaluation.local_moments(data, point, weights.Gaussian(0.5), plane="paper")
        assert (alone.A == many.A).all()
        assert (alone.b == many.b).all()
