"""Public points with rare values: the model tells what a category does that hardly a row has, and the bar stays honest."""

from dataclasses import replace

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.estimation.global_slopes import guessed_slopes
from dpexplain.estimation.plane_building import GUESSED
from dpexplain.estimation.public_points import public_points
from dpexplain.estimation.reference import POINTS
from dpexplain.noise import SeededNoise

DOMAIN = dpx.Domain(
    [dpx.Numeric("age", 0, 1), dpx.Categorical("trade", values=list("abcdefgh")), dpx.Binary("member"), dpx.Binary("local")]
)
RARE = DOMAIN.blocks[1].start + 7  # "h": one row of a thousand, and the largest effect
MEMBER = DOMAIN.blocks[2].start  # one row of two hundred is none


def table(m=40_000):
    rng = np.random.default_rng(3)
    common = rng.choice(6, m, p=[0.3, 0.2, 0.2, 0.1, 0.1, 0.1])
    trade = np.where(rng.random(m) < 0.001, 7, np.where(rng.random(m) < 0.003, 6, common))
    age = rng.beta(2 + 0.3 * common, 3)
    return {
        "age": age,
        "trade": np.array(list("abcdefgh"))[trade],
        "member": rng.random(m) > 0.005,
        "local": rng.random(m) < 0.6 * age,
    }


def model(rows):
    x = DOMAIN.encode(rows)
    return np.tanh(0.8 * x[:, 0] - 1.1 * x[:, RARE] + 0.3 * x[:, RARE - 4] + 0.5 * x[:, MEMBER] - 0.6)


@pytest.fixture(scope="module")
def data():
    return dpx.PrivateData(table(), DOMAIN, model=model, output="value", bounds=(-1, 1))


@pytest.fixture(scope="module")
def release(data):
    return dpx.release(data, dpx.Budget(0.3, 1e-6), noise=SeededNoise(1))


def test_a_rare_category_whose_effect_only_the_model_tells_is_found(data, release):
    record = DOMAIN.decode(DOMAIN.encode(table(50))[:1])
    found, exact = release.explain_many(record), evaluation.optimum(data, DOMAIN.encode(record)[0], plane="fitted")
    difference = np.abs(found.values[0] - exact)
    assert exact[RARE] < -0.5
    assert difference[[RARE, MEMBER]].max() < 0.15  # noise of the moments alone would be off by about 0.5
    assert (difference <= 2 * found.error[0]).mean() > 0.9
    assert found.error[0][RARE] > 3 * found.error[0][RARE - 7]  # the rows hardly confirm it
    own = release.solver.reference.points(release.solver.layout)
    assert np.count_nonzero(own[:, RARE]) < 16


def test_every_value_is_taken_and_weighted_sums_are_those_of_the_reference(release):
    public, own = public_points(release.solver), release.solver.reference.points(release.solver.layout)
    assert (public.points[: len(own)] == own).all()
    assert len(own) < len(public.points) <= 2 * len(own)
    codes = np.setdiff1d(np.arange(DOMAIN.width), release.solver.layout.numbers)
    assert (np.count_nonzero(public.points[:, codes], axis=0) >= 64).all()
    assert np.count_nonzero(public.points[:, MEMBER] == 0) >= 64
    assert (public.points[:, DOMAIN.blocks[1].start : DOMAIN.blocks[1].stop].sum(axis=1) <= 1).all()
    share = public.weights / public.weights.sum()
    assert share @ public.points == pytest.approx(own.mean(axis=0), abs=0.01)
    assert share @ public.points[:, RARE : RARE + 1] == pytest.approx(release.solver.mean[RARE], rel=0.3)


def test_slopes_of_an_additive_answer_are_found_for_rare_values_too(release):
    public, rng = public_points(release.solver), np.random.default_rng(0)
    slopes = rng.standard_normal(DOMAIN.width)
    block = DOMAIN.blocks[1]
    slopes[block.start : block.stop] -= slopes[block.start : block.stop].mean()  # the constant has the rest
    guess = replace(public, labels=public.points @ slopes + 0.4).guess()
    assert guess.values == pytest.approx(slopes, abs=0.05)
    assert np.max(guess.residual) < 1e-3
    assert guess.few[RARE] < 0.1 * guess.few[0]


def test_without_rare_values_only_the_reference_is_asked():
    domain = dpx.Domain([dpx.Numeric("age", 0, 1), dpx.Binary("local")])
    rng = np.random.default_rng(0)
    rows = {"age": rng.random(5_000), "local": rng.random(5_000) < 0.5}
    data = dpx.PrivateData(rows, domain, model=lambda r: domain.encode(r)[:, 0], output="value", bounds=(-1, 1))
    solver = dpx.release(data, dpx.Budget(1.0, 1e-6), noise=SeededNoise(0)).solver
    public = public_points(solver)
    assert (public.points == solver.reference.points(solver.layout)).all()
    assert (public.weights == 1).all()


def asked_about(explain):
    """How many points a model was asked about each time that it was asked about many."""
    counts = []

    def count_and_answer(rows):
        counts.append(len(rows["age"]))
        return model(rows)

    explain(dpx.PrivateData(table(3_000), DOMAIN, model=count_and_answer, output="value", bounds=(-1, 1)))
    return [count for count in counts if count >= POINTS]


def test_planes_for_many_questions_ask_the_model_about_more_points_than_one_answer():
    record = {"age": 0.4, "trade": "a", "member": True, "local": False}
    made = asked_about(lambda data: dpx.release(data, dpx.Budget(0.3, 1e-6), noise=SeededNoise(1)))
    shared = asked_about(lambda data: dpx.Explainer(data, dpx.Budget(9.0, 1e-6), noise=SeededNoise(1)).explain(record))
    alone = asked_about(
        lambda data: dpx.Explainer(data, dpx.Budget(9.0, 1e-6), dpx.Basic(0.3, 1e-6), noise=SeededNoise(1)).explain(record)
    )
    assert GUESSED <= max(made) <= 2 * GUESSED
    assert max(shared) >= GUESSED
    assert max(alone) <= 2 * POINTS


def test_many_points_do_not_make_relations_among_numbers_more_certain():
    """Slopes of hard answers vary less over more points, and the slope of a number is not taken for surer than from 4,096."""
    rng = np.random.default_rng(5)
    points = np.column_stack([rng.random(1 << 15), rng.random((1 << 15, 2)) < 0.3])
    labels, ones = np.where(points.sum(axis=1) > 1, 1.0, -1.0), np.ones(1 << 15)
    guess = guessed_slopes(points, labels, ones, np.array([0]))
    assert guess.few[0] == 1 / POINTS
    assert guess.few[1:] == pytest.approx([1 / (1 << 15)] * 2)
