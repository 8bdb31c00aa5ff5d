"""What was released: append-only, searchable at any size, written down and read back."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import spatial

import dpexplain as dpx
from dpexplain.core.ball import Ball
from dpexplain.errors import InputError
from dpexplain.estimation.regression import PENALTIES, LevelledRegression, Ridge
from dpexplain.mechanisms import start
from dpexplain.mechanisms.history import History, ReleasedAnswer
from dpexplain.mechanisms.history_prediction import by_regression
from dpexplain.mechanisms.setting import Setting
from dpexplain.mechanisms.start import PastPlanes, cold_start, fitted_count, predict_start
from dpexplain.privacy.relation import Neighbours

SETTING = Setting(6, 1000, Neighbours(), 1e-13)


def test_releases_cannot_be_changed():
    mine = np.array([0.1, 0.2])
    released = ReleasedAnswer(mine, mine)
    mine[0] = 9.0
    assert released.point[0] == 0.1
    with pytest.raises(ValueError, match="read-only"):
        released.values[0] = 1.0


def test_the_nearest_computed_answer_agrees_with_a_search_of_everything():
    rng, history, points = np.random.default_rng(0), History(), []
    for i in range(1500):  # past several rebuilds of the tree
        point, copied = rng.random(5), i % 3 == 0
        history.append(ReleasedAnswer(point, np.full(5, float(i)), copied))
        points.append(np.full(5, np.inf) if copied else point)
        if i % 37 == 1:
            query = rng.random(5)
            distances = np.linalg.norm(np.array(points) - query, axis=1)
            found, distance = history.nearest(query)
            assert found.values[0] == distances.argmin()
            assert distance == pytest.approx(distances.min())
    assert history.computed_count == 1000
    assert len(history) == 1500
    assert repr(history) == "History(1500 answers, 500 of them copied)"


def test_copies_alone_are_nothing_to_copy():
    assert History().nearest(np.zeros(2)) is None
    assert History.of([ReleasedAnswer(np.zeros(2), np.zeros(2), copied=True)]).nearest(np.zeros(2)) is None


@pytest.mark.slow
def test_a_hundred_thousand_entries_are_searched_without_building_the_tree_again(monkeypatch):
    rng = np.random.default_rng(0)
    history = History.of(ReleasedAnswer(point, point[:1]) for point in rng.random((100_000, 10)))
    built = []
    tree = spatial.cKDTree
    monkeypatch.setattr(spatial, "cKDTree", lambda rows: built.append(len(rows)) or tree(rows))
    for _ in range(300):
        point = rng.random(10)
        history.nearest(point)
        history.append(ReleasedAnswer(point, point[:1]))
        assert history.nearest(point)[1] == 0.0  # the newest entries are found too
    assert built == [100_000]  # once; entries since then are searched beside it


def test_threads_append_and_search_at_once():
    history = History.of([ReleasedAnswer(np.zeros(4), np.zeros(4))])

    def work(seed):
        for point in np.random.default_rng(seed).random((400, 4)):
            history.append(ReleasedAnswer(point, point))
            points, values = history.latest(50)
            assert (points == values).all()
            assert history.nearest(point)[1] == 0

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert history.computed_count == 1601


def test_a_history_is_written_down_and_read_back():
    domain = dpx.Domain([dpx.Numeric("age", 0, 100), dpx.Categorical("work", values=["a", "b"])])
    rows = {"age": [20, 40, 60] * 20, "work": ["a", "b", "a"] * 20}
    explainer = dpx.Explainer(dpx.PrivateData(rows, domain, labels=[1, -1, 1] * 20), dpx.Budget(1, 1e-6), dpx.Basic(0.1, 1e-6, 5))
    explainer.explain({"age": 30, "work": "a"})
    again = History.from_json(explainer.history.to_json())
    assert (again[0].values == explainer.history[0].values).all()
    assert again.domain == domain
    assert str(again.guarantee) == str(explainer.history.guarantee)
    assert dpx.NonInteractive(again).explain({"age": 31, "work": "a"}).names == domain.names
    with pytest.raises(InputError, match="not version 1 of a dpexplain history"):
        History.from_dict({"format": "other"})


def test_points_of_another_width_are_refused():
    history = History.of([ReleasedAnswer(np.zeros(2), np.zeros(2))])
    with pytest.raises(InputError, match="points of 2 numbers"):
        history.append(ReleasedAnswer(np.zeros(3), np.zeros(3)))


@pytest.mark.parametrize("count", [6, 12, 60])
def test_leave_one_out_errors_are_those_of_fits_without_each_row(count):
    """The closed form against fitting count times; more columns than rows, and fewer."""
    rng = np.random.default_rng(1)
    inputs, values = rng.random((count, 9)), rng.normal(size=(count, 4))
    ridge = Ridge.fit(inputs, values)
    assert ridge.penalty / np.square(inputs - inputs.mean(axis=0)).sum(axis=1).mean() == pytest.approx(
        min(PENALTIES, key=lambda one: abs(np.log(one * np.square(inputs - inputs.mean(0)).sum(1).mean() / ridge.penalty)))
    )

    def residual_without(i):
        x, y = np.delete(inputs, i, 0), np.delete(values, i, 0)
        centred = x - x.mean(0)
        slope = np.linalg.solve(centred.T @ centred + ridge.penalty * np.eye(9), centred.T @ (y - y.mean(0)))
        return values[i] - y.mean(0) - (inputs[i] - x.mean(0)) @ slope

    errors = np.array([residual_without(i) for i in range(count)])
    assert ridge.left_out == pytest.approx(errors, rel=1e-6, abs=1e-12)


def test_predictions_agree_on_the_label_in_the_middle():
    """Explanations whose values are noisy but whose label at the centre is 0.3 for all: predictions say so, and are closer for it."""
    rng = np.random.default_rng(2)
    points = rng.random((200, 10))
    centre = points.mean(0)
    towards = centre - points
    noisy = rng.normal(size=(200, 10)) * 0.1
    level = ((noisy * towards).sum(1) - 0.3) / (towards**2).sum(1)
    values = noisy - towards * level[:, None]
    fitted, point = LevelledRegression.fit(points, values), rng.random(10)
    assert fitted.level == pytest.approx(0.3)
    assert fitted.predict(point) @ (centre - point) == pytest.approx(0.3, abs=1e-6)
    assert np.linalg.norm(fitted.errors) < np.sqrt((fitted.ridge.left_out**2).sum(1).mean())
    assert np.isfinite(fitted.predict(centre)).all()  # no direction to move in


@pytest.mark.parametrize("intercept", [False, True])
@given(seed=st.integers(0, 1000), scale=st.floats(1e-3, 1e3))
@settings(max_examples=25, deadline=None)
def test_predictions_do_not_depend_on_the_unit_of_the_columns(intercept, seed, scale):
    """All points times s, all slopes divided by s: the same planes, with the same errors, from history and for a start."""
    rng = np.random.default_rng(seed)
    points, slopes = rng.random((30, 6)), rng.normal(size=(30, 6)) + 1
    answers = rng.uniform(-1, 1, 30)
    here = rng.random(6)

    def past(s):
        pairs = zip(points * s, slopes / s, answers, strict=True)
        return History.of(ReleasedAnswer(z, phi, intercept=float(a) if intercept else None) for z, phi, a in pairs)

    found, scaled = (by_regression(past(s), here * s, Ball(100.0 / s)) for s in (1.0, scale))
    assert scaled.values * scale == pytest.approx(found.values, rel=1e-5, abs=1e-9)
    assert scaled.error * scale == pytest.approx(found.error, rel=1e-5)
    if intercept:
        assert scaled.intercept == pytest.approx(found.intercept, rel=1e-5, abs=1e-9)
    starts = [predict_start(past(s), here * s, Ball(100.0 / s), SETTING, cold_start(6), 0.1) for s in (1.0, scale)]
    assert starts[1].distance == pytest.approx(starts[0].distance, rel=1e-5)


def test_a_long_history_is_fitted_again_only_once_in_a_while(monkeypatch):
    """Answers by a descent may not become slower with each past one: a fit serves up to 128 starts, and leaves out less than a sixteenth."""
    counts = [fitted_count(n) for n in range(1, 20_000)]
    assert counts[:33] == [*range(1, 33), 32]
    assert all(0 <= n - count < min(128, n / 16) for n, count in enumerate(counts, 1))
    assert len(set(counts[:1500])) < 160
    fits, fit = [], PastPlanes.fit
    monkeypatch.setattr(start.PastPlanes, "fit", lambda *given: fits.append(len(given[0])) or fit(*given))
    rng, history = np.random.default_rng(0), History()
    for _ in range(300):
        point = rng.random(6)
        history.append(ReleasedAnswer(point, np.ones(6) + 0.1 * rng.normal(size=6)))
        predict_start(history, point, Ball(100.0), SETTING, cold_start(6), 0.1)
    assert fits == sorted(set(fits))
    assert len(fits) < 100


def test_a_kept_fit_predicts_what_a_fresh_one_does():
    """What is predicted follows from the history alone, whether it was asked before or has just been read back."""
    rng, point = np.random.default_rng(1), np.full(6, 0.5)
    kept = History()
    for _ in range(77):
        kept.append(ReleasedAnswer(rng.random(6), np.ones(6) + 0.1 * rng.normal(size=6)))
        predict_start(kept, point, Ball(100.0), SETTING, cold_start(6), 0.1)
        by_regression(kept, point, Ball(100.0)) if len(kept) > 5 else None
    fresh = History.from_json(kept.to_json())
    starts = [predict_start(one, point, Ball(100.0), SETTING, cold_start(6), 0.1) for one in (kept, fresh)]
    assert starts[0].values == pytest.approx(starts[1].values, rel=1e-12)
    assert starts[0].distance == pytest.approx(starts[1].distance, rel=1e-12)
    found = [by_regression(one, point, Ball(100.0)) for one in (kept, fresh)]
    assert found[0].values == pytest.approx(found[1].values, rel=1e-12)


def test_a_budgets_total_is_not_called_that_of_the_data():
    domain = dpx.Domain([dpx.Numeric("age", 0, 100)])
    data = dpx.PrivateData({"age": [20, 40, 60] * 20}, domain, labels=[1, -1, 1] * 20)
    first, second = (dpx.Explainer(data, dpx.Budget(1, 1e-6), dpx.Basic(0.1, 1e-6, 5)) for _ in range(2))
    first.explain({"age": 30})
    answer = second.explain({"age": 30})
    assert str(second.spent).startswith("Everything that this budget has paid for ")
    assert str(answer.guarantee).startswith("Everything released so far ")
    assert answer.guarantee.mu == data.spent.mu > second.spent.mu
