"""The start from the model's plane: public, the same in every process, asked for once, and 0 where the model cannot answer."""

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.core.layout import Layout
from dpexplain.mechanisms.history import History
from dpexplain.mechanisms.model_start import POINTS, AskedPlane, ModelPlane, spread_points
from dpexplain.mechanisms.setting import Setting
from dpexplain.noise import SeededNoise
from dpexplain.privacy import gdp
from dpexplain.privacy.events import mu_of, price
from dpexplain.privacy.relation import Neighbours

DOMAIN = dpx.Domain(
    [dpx.Numeric("a", 0, 1), dpx.Numeric("b", 0, 1), dpx.Categorical("c", values=["u", "v", "w"]), dpx.Binary("d")]
)
LAYOUT = Layout.of(DOMAIN.blocks)
SETTING = Setting(6, 50_000, Neighbours(), 1e-13, ((2, 5),), layout=LAYOUT)
SLOPES = np.array([0.4, -0.2, 0.2, -0.1, -0.1, 0.1])
Z = np.array([0.3, 0.6, 1.0, 0.0, 0.0, 1.0])


def linear(points):
    return points @ SLOPES - 0.1


class Asked:
    """A model that counts how often it is asked."""

    def __init__(self, answers=linear):
        self.answers, self.times, self.points = answers, 0, None

    def __call__(self, points):
        self.times += 1
        self.points = points
        return self.answers(points)


def fails(points):
    raise ConnectionError("no model here")


def test_points_fill_the_declared_domain_evenly_and_are_the_same_every_time():
    points = spread_points(LAYOUT, POINTS)
    assert points.tobytes() == spread_points(LAYOUT, POINTS).tobytes()
    assert points.min() >= 0
    assert points.max() <= 1
    assert points[:, 2:5].sum(axis=1) == pytest.approx(1)
    assert points.mean(axis=0) == pytest.approx([0.5, 0.5, 1 / 3, 1 / 3, 1 / 3, 0.5], abs=0.01)
    assert np.corrcoef(points[:, :2].T)[0, 1] == pytest.approx(0, abs=0.02)


def test_the_plane_of_a_linear_model_is_the_model():
    points = spread_points(LAYOUT, POINTS)
    plane = ModelPlane.fit(points, linear(points))
    assert plane.slopes == pytest.approx(SLOPES, abs=1e-9)
    assert plane.slopes[2:5].mean() == pytest.approx(0, abs=1e-12)  # no part along a direction that rows do not determine
    start = dpx.Basic(0.1, 1e-6, by="descent").with_model(linear).plan(Z, SETTING, History()).start
    assert start == pytest.approx([*SLOPES, linear(Z)], abs=1e-9)


@pytest.mark.parametrize("kind", ["basic", "adaptive", "anchored"])
def test_the_model_is_asked_about_public_points_once(kind):
    model = Asked()
    given = (
        dpx.Adaptive(0.1, 1e-6, by="descent")
        if kind == "adaptive"
        else dpx.Basic(0.1, 1e-6, plane="anchored" if kind == "anchored" else None, by="descent")
    )
    mechanism = given.with_model(model)
    assert model.times == 0  # not before a question needs it
    mechanism.plan(Z, SETTING, History())
    asked = model.times
    mechanism.plan(Z[::-1], SETTING, History())
    assert model.times == asked + (kind == "anchored")  # an anchored plane asks about each query
    if kind != "anchored":
        assert model.points.tobytes() == spread_points(LAYOUT, POINTS).tobytes()


@pytest.mark.parametrize("plane", ["fitted", "anchored"])
def test_a_start_from_the_model_costs_the_same(plane):
    plan = dpx.Basic(0.1, 1e-6, plane=plane, by="descent").with_model(linear).plan(Z, SETTING, History())
    assert mu_of(price(plan.events)) == pytest.approx(gdp.mu(0.1, 1e-6), rel=1e-6)
    assert plan.kind == "model"
    assert len(plan.start) == (7 if plane == "fitted" else 6)


@pytest.mark.parametrize(
    "answers",
    [fails, lambda points: np.full(len(points), np.nan), lambda points: np.zeros(3), lambda points: ["?"] * len(points)],
    ids=["raises", "NaN", "too few", "text"],
)
def test_a_model_that_cannot_answer_leaves_the_start_at_zero(answers):
    model = Asked(answers)
    mechanism = dpx.Basic(0.1, 1e-6, by="descent").with_model(model)
    plan = mechanism.plan(Z, SETTING, History())
    assert not plan.start.any()
    assert (plan.guide, plan.kind) == (None, "cold")
    mechanism.plan(Z, SETTING, History())
    assert model.times == 1  # it is not asked again


def test_no_start_where_no_domain_is_declared_or_it_is_too_wide_or_rows_are_few():
    public = AskedPlane(fails)
    wide = Layout.of(dpx.Domain([dpx.Binary(f"x{j}") for j in range(600)]).blocks)
    assert public.plane(Setting(6, 50_000, Neighbours(), 1e-13)) is None
    assert public.plane(Setting(600, 50_000, Neighbours(), 1e-13, layout=wide)) is None
    assert public.plane(Setting(6, 900, Neighbours(), 1e-13, ((2, 5),), layout=LAYOUT)) is None


def test_the_papers_plane_and_calibration_do_not_use_the_model():
    for mechanism in (dpx.Basic(plane="paper"), dpx.Basic(calibration="paper"), dpx.Adaptive(plane="paper")):
        assert mechanism.with_model(fails) is mechanism


def test_a_constant_model_starts_at_its_constant_without_slopes():
    plan = dpx.Basic(0.1, 1e-6, by="descent").with_model(lambda points: np.full(len(points), 0.6)).plan(Z, SETTING, History())
    assert plan.start == pytest.approx([0, 0, 0, 0, 0, 0, 0.6], abs=1e-12)


def test_walks_are_shorter_where_noise_is_large_and_the_plane_tells_something():
    telling, flat = (ModelPlane(SLOPES, Z, 0.0, spread) for spread in (0.5, 0.0))
    assert flat.walk_share(1.0) == 1
    assert telling.walk_share(1.0) == pytest.approx(0.4)
    assert telling.walk_share(1e-6) == pytest.approx(1, abs=1e-4)
    assert telling.walk_share(1e-3) > telling.walk_share(3e-3)


def test_a_guide_shortens_steps_across_the_planes_direction_only():
    plan = dpx.Basic(0.1, 1e-6, by="descent").with_model(linear).plan(Z, SETTING, History())
    guide = plan.guide
    along, across = np.append(SLOPES, 0.0), np.array([0.2, 0.4, 0, 0, 0, 0, 0.0])  # across: no part along the slopes
    assert across @ along == pytest.approx(0)
    assert guide.turn(along) == pytest.approx(along)
    assert guide.turn(across) == pytest.approx(guide.rest * across)
    assert guide.turn(np.eye(7)[6])[6] == 1  # the plane's answer at the query
    assert 0 < guide.rest < 1


def test_answers_of_a_registered_model_are_closer_where_noise_hides_slopes():
    rng = np.random.default_rng(5)
    rows = {"a": rng.random(4000), "b": rng.random(4000), "c": rng.choice(["u", "v", "w"], 4000, p=[0.9, 0.07, 0.03])}
    rows["d"] = rng.random(4000) < 0.1
    model = lambda table: linear(DOMAIN.encode(table))  # noqa: E731
    record = {"a": 0.3, "b": 0.6, "c": "u", "d": False}
    asked = dpx.PrivateData(rows, DOMAIN, model=model, output="value", bounds=(-1, 1))
    labelled = dpx.PrivateData(rows, DOMAIN, labels=model(rows))
    found = {}
    for name, data in (("model", asked), ("cold", labelled)):
        answer = dpx.Explainer(data, dpx.Budget(5, 1e-6), dpx.Basic(0.1, 1e-6, by="descent"), noise=SeededNoise(3)).explain(
            record
        )
        assert answer.details["start"] == name
        found[name] = evaluation.score(answer.values, data, record, plane="fitted").relative_excess
    assert asked.spent.model_answers
    assert not labelled.spent.model_answers
    assert found["model"] < 0.5 * found["cold"]
