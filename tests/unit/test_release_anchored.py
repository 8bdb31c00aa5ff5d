"""Explanations from a release that go through the model's answer: what they are, and what they refuse."""

from dataclasses import replace

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.core.layout import Layout
from dpexplain.errors import ParameterError
from dpexplain.estimation import calibrate
from dpexplain.estimation.local_reference import LocalReference
from dpexplain.noise.seeded import SeededNoise

DOMAIN = dpx.Domain([dpx.Numeric("age", 0, 1), dpx.Categorical("work", values=["a", "b", "c"]), dpx.Binary("married")])
STABLE = dpx.weights.Stable()


def rows(m, seed=0):
    rng = np.random.default_rng(seed)
    return {"age": rng.beta(2, 3, m), "work": rng.choice(["a", "b", "c"], m, p=[0.6, 0.3, 0.1]), "married": rng.random(m) < 0.4}


def model(table):
    age, work, married = (np.asarray(table[name]) for name in ("age", "work", "married"))
    return np.tanh(4 * (age - 0.5) + (work == "a") - 0.8 * married)


@pytest.fixture(scope="module")
def data():
    return dpx.PrivateData(rows(20_000), DOMAIN, model=model)


@pytest.fixture(scope="module")
def release(data):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calibrate, "replicates", lambda _: 2)
        return dpx.release(data, dpx.Budget(1.0, 1e-6), noise=SeededNoise(1))


@pytest.fixture(scope="module")
def queries_and_answers():
    queries = rows(100, seed=5)  # more than one batch
    return queries, model(queries)


def test_anchored_answers_come_close_to_the_anchored_optimum_and_far_from_the_plain_one(data, release, queries_and_answers):
    queries, answers = queries_and_answers
    many = release.explain_many(queries, anchor=answers)
    points = DOMAIN.encode_queries(queries)
    plain = release.explain_many(queries)
    distances = []
    for i in range(0, 100, 10):
        best = evaluation.optimum(data, points[i], anchor=answers[i])
        distances.append([np.linalg.norm(values[i] - best) for values in (many.values, plain.values)])
        assert distances[-1][0] < 0.1 * np.linalg.norm(best)
    near, far = np.mean(distances, axis=0)
    assert near < far / 2


def test_anchoring_is_a_shift_of_the_labels(release, queries_and_answers):
    queries, answers = queries_and_answers
    points = DOMAIN.encode_queries(queries)[:7]
    many = release.explain_many(queries, anchor=answers, radius=1.0)
    solver = release.solver
    for point, answer, values in zip(points, answers, many.values, strict=False):
        shifted = replace(
            solver, t0=solver.t0 - answer, reference=replace(solver.reference, labels=solver.reference.labels - answer)
        )
        assert shifted.answer(point[None], STABLE).values[0] == pytest.approx(values, abs=1e-12)


def test_one_and_many_agree_and_say_what_they_are(release, queries_and_answers):
    queries, answers = queries_and_answers
    many = release.explain_many(queries, anchor=answers)
    record = {name: column[70] for name, column in queries.items()}
    one = release.explain(record, anchor=answers[70])
    assert one.values == pytest.approx(many.values[70], abs=1e-10)
    assert one.error == pytest.approx(many.error[70], rel=1e-6)
    assert one.details["anchor"] == many[70].details["anchor"] == many[70:][0].details["anchor"] == answers[70]
    assert one.details["quantity"] == "anchored optima"
    assert one.cost.epsilon == 0
    plain = release.explain(record)
    assert "anchor" not in plain.details
    held, paper = release.explain(record, anchor=0.0, radius=1.0), release.explain(record, plane="paper")
    assert held.values == pytest.approx(paper.values, abs=1e-15)
    through = release.explain(record, anchor=plain.intercept)
    assert through.values == pytest.approx(plain.values, abs=1e-12)  # the fitted plane goes through its own answer


def test_labelled_reference_rows_are_shifted_too():
    rng = np.random.default_rng(2)
    points, labels, weights = rng.random((500, 4)), rng.uniform(-1, 1, 500), rng.uniform(0.5, 1.5, 500)
    weights /= weights.mean()
    changes = rng.standard_normal((3, 500)).astype(np.float32) / 10
    about = changes, Layout.of(dpx.Domain([dpx.Numeric(f"x{i}", 0, 1) for i in range(4)]).blocks), 1.0, 0.01, 400
    anchored = LocalReference(points, labels, weights, *about).answer(points[:3], STABLE, np.array([0.5, -0.3, 1.0]))
    for i, level in enumerate((0.5, -0.3, 1.0)):
        shifted = LocalReference(points, labels - level, weights, *about).answer(points[i : i + 1], STABLE)
        assert anchored.values[i] == pytest.approx(shifted.values[0], abs=1e-5)
        assert anchored.errors[i] == pytest.approx(shifted.errors[0], rel=1e-3)


@pytest.mark.parametrize("anchor", [1.5, float("nan"), "high", [0.1, 0.2], -2])
def test_an_anchor_that_is_no_answer_is_refused(release, queries_and_answers, anchor):
    record = {name: column[0] for name, column in queries_and_answers[0].items()}
    with pytest.raises(ParameterError, match="one number from -1 to 1 a record"):
        release.explain(record, anchor=anchor)


@pytest.mark.parametrize("anchor", [0.5, [0.5], np.zeros((100, 1)), np.full(100, np.inf)])
def test_many_records_need_as_many_anchors(release, queries_and_answers, anchor):
    with pytest.raises(ParameterError, match="one number from -1 to 1 a record"):
        release.explain_many(queries_and_answers[0], anchor=anchor)


@pytest.mark.parametrize(
    ("declared", "answers", "same"),
    [
        ({"output": "probability"}, lambda y: (y + 1) / 2, 0.7),
        ({"output": "value", "bounds": (1000, 3000)}, lambda y: 2000 + 1000 * y, 2400.0),
        ({}, lambda y: y, 0.4),
    ],
)
def test_an_anchor_is_in_the_units_of_the_answers(declared, answers, same):
    table = rows(800)
    given = {"model": lambda t: answers(model(t))} if declared else {"labels": model(table)}
    data = dpx.PrivateData(table, DOMAIN, **given, **declared)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calibrate, "replicates", lambda _: 2)
        release = dpx.release(data, dpx.Budget(1.0, 1e-6), noise=SeededNoise(1))
    record = {name: column[0] for name, column in table.items()}
    found = release.explain(record, anchor=same)
    assert found.contributions().answer == pytest.approx(same)
    assert found.intercept == pytest.approx(0.4)
    assert release.scale.answers(0.4) == pytest.approx(same)  # how a label becomes an anchor
    with pytest.raises(ParameterError, match=r"release\.scale\.answers"):
        release.explain(record, anchor=release.scale.low - 0.1)
