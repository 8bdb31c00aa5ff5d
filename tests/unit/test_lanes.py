"""The paper's algorithms for many seeds at once do what the library does for one: same steps, same numbers of them, same totals."""

from itertools import product

import numpy as np
import pytest
from experiments.paper import _copies, _lanes, _stops, _streams
from experiments.paper._exact import Problem, axes, optima, problems

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.noise import SeededNoise
from dpexplain.privacy import gdp, paper

DOMAIN = dpx.Domain.encoded(5)
RNG = np.random.default_rng(3)
ROWS = RNG.random((900, 5))
LABELS = np.where(ROWS[:, 0] + 0.3 * ROWS[:, 1] > 0.6, 1.0, -1.0)
QUERIES = RNG.random((12, 5)) * np.linspace(0.2, 1.0, 12)[:, None]
DELTA, STEPS = 1e-3, 40
BUDGET = dpx.Budget(1e6, 1e-6)
CORNERS = np.array(list(product((0.0, 1.0), repeat=5)))


class Silent:
    """Noise that is always 0, and a Gumbel variable that is always the same: both implementations then take one path."""

    secure = False

    def standard_normal(self, size):
        return np.zeros(size)

    def uniform(self, size):
        return np.full(size, 0.5)

    def gumbel(self, size):
        return np.zeros(size)


@pytest.fixture
def data():
    return dpx.PrivateData(ROWS, DOMAIN, labels=LABELS)


def test_the_optimum_is_the_librarys(data):
    for problem in problems(data, QUERIES[:4]):
        assert problem.best == pytest.approx(evaluation.optimum(data, problem.point, plane="paper"), abs=1e-9)
        assert optima(problem.A, problem.b[None])[0] == pytest.approx(problem.best, abs=1e-7)


def test_scores_are_the_librarys(data):
    problem = next(iter(problems(data, QUERIES[:1])))
    values = RNG.normal(size=(3, 5)) / 4
    found = problem.scores(values)
    for i, one in enumerate(values):
        there = evaluation.score(one, data, QUERIES[0], plane="paper")
        assert found["excess_loss"][i] == pytest.approx(there.excess_loss)
        assert found["relative_excess"][i] == pytest.approx(there.relative_excess)
        assert found["cosine"][i] == pytest.approx(there.cosine)


@pytest.mark.slow
def test_a_basic_answer_has_the_librarys_noise_and_cost(data):
    """Means and spreads of many seeds against the library's over as many seeds, and the same total."""
    problem = next(iter(problems(data, QUERIES[:1])))
    lanes = _lanes.Basic(900, 5, 50.0, DELTA, STEPS, lanes=400)
    values, iterations = lanes.answer(problem.point, problem.A, problem.b, _lanes.Normal(400, STEPS, 5, seed=1).draw())
    explainer = dpx.Explainer(
        data, dpx.Budget(1e6, 1e-6), dpx.Basic(50.0, DELTA, STEPS, calibration="paper"), noise=SeededNoise(5)
    )
    there = np.array([explainer.explain(QUERIES[0]).values for _ in range(150)])
    assert (iterations == STEPS).all()
    assert lanes.mu[0] == pytest.approx(explainer.spent.mu / np.sqrt(150), rel=1e-6)
    error = np.sqrt(values.var(axis=0) / 400 + there.var(axis=0) / 150)
    assert (np.abs(values.mean(axis=0) - there.mean(axis=0)) < 4.5 * error).all()
    assert values.std(axis=0) == pytest.approx(there.std(axis=0), rel=0.25)


def test_noise_that_several_algorithms_share_is_used_from_its_first_step(data):
    problem = next(iter(problems(data, QUERIES[:1])))
    noise = RNG.standard_normal((2, STEPS, 5)).astype(np.float32)
    short, long = (
        _lanes.Basic(900, 5, 50.0, DELTA, steps, lanes=2).answer(problem.point, problem.A, problem.b, noise)[0]
        for steps in (2, STEPS)
    )
    one = _lanes.Basic(900, 5, 50.0, DELTA, 2, lanes=2)
    expected = one.rate * (2 * problem.b @ axes(problem.A)[1] - one.sigma * noise[:, 0]) @ axes(problem.A)[1].T
    assert short == pytest.approx(expected / np.maximum(np.linalg.norm(expected, axis=1), 1)[:, None], abs=1e-6)
    assert not np.allclose(short, long)


def test_noise_of_another_size_is_that_of_its_formula():
    many = _lanes.Basic(8_815_568, 500, 0.1, 1e-6, 300, lanes=1)
    assert many.sigma == paper.basic_sigma(8_815_568, 0.1, 1e-6, 300)
    assert many.sigma < paper.basic_sigma(50_000, 0.1 * 8_815_568 / 50_000, 1e-6, 300) / 1.15  # a larger ε is not the same


@pytest.mark.parametrize(("only_beta", "kind"), [(False, dpx.Adaptive), (True, dpx.Enhanced)])
def test_adaptive_answers_take_the_librarys_path(data, only_beta, kind):
    """Without noise: which answers are copied, starts, step sizes, iterations, the paper's books and the exact total agree."""
    huge, loose = 1e4, 0.5
    lanes = _lanes.Adaptive(900, 5, huge, loose, STEPS, lanes=3, seed=0, only_beta=only_beta)
    lanes.rng = Silent()
    found = [lanes.answer(each.point, each.A, each.b, np.zeros((3, STEPS, 5))) for each in problems(data, QUERIES)]
    explainer = dpx.Explainer(data, dpx.Budget(1e9, 0.6), kind(huge, loose, STEPS, calibration="paper"), noise=Silent())
    there = [explainer.explain(query) for query in QUERIES]
    assert [int(iterations[0] == 0) for _, iterations in found] == [int(one.copied) for one in there]
    for (values, iterations), one in zip(found, there, strict=True):
        assert values[0] == pytest.approx(one.values, abs=1e-6)
        if not one.copied:
            assert iterations[0] == one.details["gradients"] + 1
    booked = there[-1].details.get("paper") or next(one.details["paper"] for one in reversed(there) if "paper" in one.details)
    assert lanes.books[0].to_dict() == pytest.approx(booked["sums"], rel=1e-6)
    assert lanes.mu[0] == pytest.approx(explainer.spent.mu, rel=1e-3)


def test_a_lane_selects_copies_as_often_as_they_were_given(data):
    lanes = _lanes.Adaptive(900, 5, 1e-9, DELTA, STEPS, lanes=4000, seed=0)
    for point, value in ((np.zeros(5), 0.1), (np.ones(5), 0.2)):
        lanes._keep(point, np.full((4000, 5), value))
    lanes.sources = [0, 0, 0, 1]
    problem = next(iter(problems(data, QUERIES[:1])))
    start, _ = lanes._select(problem.A, problem.b)
    assert np.mean(start[:, 0] == 0.1) == pytest.approx(0.75, abs=0.04)  # three of four entries are the first answer


def test_sums_are_read_from_their_file_if_it_is_about_these_points(data, tmp_path):
    first = list(problems(data, QUERIES[:3], tmp_path / "sums.npz"))
    data.wrap_rows(lambda rows: None)  # nothing can be read any more
    again = list(problems(data, QUERIES[:3], tmp_path / "sums.npz"))
    assert all(np.array_equal(one.A, two.A) for one, two in zip(first, again, strict=True))
    with pytest.raises(AttributeError):
        list(problems(data, QUERIES[:4], tmp_path / "sums.npz"))


def test_a_problem_knows_what_its_optimum_gains(data):
    problem = Problem.of(QUERIES[0], np.eye(5), np.array([0.5, 0, 0, 0, 0]))
    assert problem.gain == pytest.approx(0.25)
    assert problem.scores(np.zeros((1, 5)))["relative_excess"][0] == pytest.approx(1.0)


@pytest.mark.parametrize(("only_beta", "kind"), [(False, dpx.Adaptive), (True, dpx.Enhanced)])
def test_streams_are_cut_where_the_library_stops(data, only_beta, kind, monkeypatch):
    """By the paper's tests of ε and δ, and by an exact budget: as many answers as the library gives with each.

    Enhanced ones are asked about corners, which are not copied: copies are drawn by weight in lanes, and silent noise draws none.
    """
    monkeypatch.setattr(_streams, "STEPS", STEPS)
    epsilon, points = 2.0, CORNERS if only_beta else RNG.random((30, 5))
    lanes = _lanes.Adaptive(900, 5, epsilon, _streams.DELTA, STEPS, lanes=2, seed=0, only_beta=only_beta)
    lanes.rng, lines = Silent(), []
    for each in problems(data, points):
        _, iterations = lanes.answer(each.point, each.A, each.b, np.zeros((2, STEPS, 5)))
        lines.append({"mu": lanes.mu, "claimed": lanes.claimed, "iterations": iterations})
    told = _streams.stack(lines)
    assert (told["iterations"][0] > 0).sum() > 7
    spent, deltas = _stops.spent_by_rule(told)
    assert spent[:, -1] == pytest.approx([book.epsilon(_streams.DELTA / 2) for book in lanes.books], rel=1e-3)
    assert deltas[:, -1] == pytest.approx([book.deltas + _streams.DELTA / 2 for book in lanes.books])

    def count_answers(budget=BUDGET, stop_at=None):
        mechanism = kind(epsilon, _streams.DELTA, STEPS, calibration="paper", stop_at=stop_at)
        return len(dpx.Explainer(data, budget, mechanism, noise=Silent()).explain_many(points))

    computed = np.flatnonzero(told["iterations"][0])
    for query in computed[[2, 4, 6]]:  # limits lie between the totals before and after it
        limit, delta_limit = (float(totals[0, query - 1 : query + 1].mean()) for totals in (spent, deltas))
        assert count_answers(stop_at=dpx.Budget(limit, 0.5)) == query
        assert count_answers(stop_at=dpx.Budget(1e6, delta_limit)) == query
    worst = _stops.worst_case(900, epsilon)
    total = gdp.epsilon(np.sqrt(3.5 * worst), 1e-6)
    assert count_answers(dpx.Budget(total, 1e-6)) == _stops.refusals(told, total, worst)[0].argmax()


def test_copies_at_a_scale_follow_from_the_queries():
    points = RNG.random((40, 5))
    for scale in (1.0, 0.5):
        lanes = _lanes.Adaptive(900, 5, 1.0, DELTA, STEPS, lanes=1, seed=0)
        for point in points * scale:
            lanes.answer(point, np.eye(5), np.zeros(5), np.zeros((1, STEPS, 5)))
        squares = _copies.squared_distances(points) * scale**2
        assert _copies.count_computed(squares, lanes.near**2) == lanes.count


def test_totals_of_full_answers_are_those_of_the_lanes(monkeypatch):
    """Every answer computed at T, which is what happens where √n·σ_min is above 1/√(ln T)."""
    monkeypatch.setattr(_streams, "STEPS", STEPS)
    lanes = _lanes.Adaptive(900, 5, 0.01, _streams.DELTA, STEPS, lanes=1, seed=0)
    for i in range(6):
        lanes.answer(np.full(5, 10.0 * i), np.eye(5) / 10, np.zeros(5), np.zeros((1, STEPS, 5)))
    assert lanes.claimed[0] == pytest.approx(_copies.book_total(6, 0.01))
