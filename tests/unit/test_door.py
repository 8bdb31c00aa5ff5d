"""The door counts what passes it, refuses what was not reserved, and settles what it counted."""

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.backends.oracle import OracleRows
from dpexplain.errors import NotPrivateError, ParameterError, ReservationExceeded
from dpexplain.mechanisms.door import Door, listening
from dpexplain.mechanisms.gaussian import GaussianMechanism
from dpexplain.mechanisms.gradient import GradientSum, Place
from dpexplain.mechanisms.history import History, ReleasedAnswer
from dpexplain.mechanisms.setting import Outcome, Setting
from dpexplain.noise.seeded import SeededNoise
from dpexplain.privacy.events import mu_of, price
from dpexplain.privacy.relation import Neighbours
from noise_support import Declared, gaussian


class Counting:
    """Noise that knows how many numbers were drawn."""

    secure = False

    def __init__(self):
        self.drawn = 0

    def standard_normal(self, size):
        self.drawn += size
        return np.zeros(size)


def door(mechanism, count, noise=None):
    return Door(None, noise or Counting(), (mechanism.event(count),))


def test_what_passes_is_counted():
    mechanism = gaussian(1.0, 2, 0.1)
    opened = door(mechanism, 5)
    opened.release(mechanism, np.zeros(2))
    several = opened.releases(mechanism, 3)
    several(np.ones(2))
    assert [event.count for event in opened.events] == [1, 3]
    assert {event.what for event in opened.events} == {"declared"}


def test_one_release_too_many_is_refused_before_its_noise_is_drawn():
    mechanism, noise = gaussian(1.0, 2, 0.1), Counting()
    opened = door(mechanism, 2, noise)
    opened.releases(mechanism, 2)
    before = noise.drawn
    with pytest.raises(ReservationExceeded, match="more than was reserved"):
        opened.release(mechanism, np.zeros(2))
    assert noise.drawn == before
    assert price(opened.events) == price((mechanism.event(2),))


def test_a_function_for_two_releases_releases_two():
    mechanism = gaussian(1.0, 2, 0.1)
    release = door(mechanism, 2).releases(mechanism, 2)
    release(np.zeros(2))
    release(np.zeros(2))
    with pytest.raises(ReservationExceeded, match="one more"):
        release(np.zeros(2))


def test_less_noise_than_reserved_is_refused():
    opened = door(gaussian(1.0, 2, 0.1), 1)
    with pytest.raises(ReservationExceeded):
        opened.release(gaussian(1.0, 2, 0.1001), np.zeros(2))


def test_exact_values_are_refused_where_privacy_is_promised():
    query = Declared(1.0, 2)
    with pytest.raises(NotPrivateError, match="declared"):
        Door(None, Counting(), ()).exact(query, np.zeros(2))
    assert (Door(None, Counting(), (), private=False).exact(query, np.ones(2)) == 1).all()


class Greedy:
    """A mechanism whose plan releases fifty vectors and reserves one."""

    delta, private = 1e-6, True

    def plan(self, point, setting, history, hint=None):
        return GreedyPlan(gaussian(1.0, len(point), 0.01))

    def to_dict(self):
        return {"mechanism": "greedy"}


class GreedyPlan:
    def __init__(self, mechanism):
        self.mechanism = mechanism

    @property
    def events(self):
        return (self.mechanism.event(),)

    def run(self, opened):
        for _ in range(50):
            values = opened.release(self.mechanism, np.zeros(self.mechanism.dimension))
        return Outcome(values)


class Modest(Greedy):
    """Reserves fifty and releases one."""

    def plan(self, point, setting, history, hint=None):
        return ModestPlan(gaussian(1.0, len(point), 0.01))


class ModestPlan(GreedyPlan):
    @property
    def events(self):
        return (self.mechanism.event(50),)

    def run(self, opened):
        return Outcome(opened.release(self.mechanism, np.zeros(self.mechanism.dimension)))


def private_data():
    rng = np.random.default_rng(0)
    return dpx.PrivateData(rng.random((300, 3)), dpx.Domain.encoded(3), labels=np.sign(rng.random(300) - 0.2))


def test_a_plan_that_releases_more_than_it_reserved_gives_no_answer():
    explainer = dpx.Explainer(private_data(), dpx.Budget(1, 1e-6), Greedy(), noise=SeededNoise(0))
    with pytest.raises(ReservationExceeded):
        explainer.explain(np.zeros(3))
    assert explainer.spent.mu == pytest.approx(0.01, rel=1e-6)  # its reservation stays counted
    assert not len(explainer.history)


def test_what_is_settled_is_what_the_door_counted():
    explainer = dpx.Explainer(private_data(), dpx.Budget(1, 1e-6), Modest(), noise=SeededNoise(0))
    assert explainer.explain(np.zeros(3)).cost.mu == pytest.approx(0.01, rel=1e-6)
    assert explainer.spent.mu == pytest.approx(0.01, rel=1e-6)


def test_a_listener_hears_what_is_released_and_at_which_public_parameters():
    heard = []
    explainer = dpx.Explainer(private_data(), dpx.Budget(1, 1e-6), dpx.Basic(0.5, 1e-6, steps=4), noise=SeededNoise(0))
    with listening(lambda *one: heard.append(one)):
        answer = explainer.explain(np.full(3, 0.5))
    assert [mechanism.query.what for mechanism, _, _ in heard] == ["gradient"] * 3
    assert (heard[0][1].phi == 0).all()
    assert answer.cost.mu == pytest.approx(mu_of(price((heard[0][0].event(3),))))
    explainer.explain(np.full(3, 0.4))
    assert len(heard) == 3  # nobody listens any more


# A gradient's bound holds inside its ball, so that is where it may be asked.


def gradient(radius):
    setting = Setting(2, 100, Neighbours(), 1e-13)
    return GradientSum(dpx.Basic().plan(np.zeros(2), setting, History()).query, radius, setting)


def test_a_gradient_is_not_asked_outside_the_ball_that_its_bound_is_for():
    rows, query = OracleRows(np.ones((1, 2)), np.ones(1)), gradient(1.0)
    mechanism = GaussianMechanism(query, 0.1)
    with pytest.raises(ParameterError, match="outside the ball"):
        Door(rows, Counting(), (mechanism.event(),)).release(mechanism, Place(np.array([0.9, 0.9])))
    Door(rows, Counting(), (mechanism.event(),)).release(mechanism, Place(np.array([0.6, 0.8])))


def test_the_norm_is_measured_inside_the_ball_also_where_the_past_had_a_larger_one():
    """After answers from a ball of radius 50, β̃ was measured at norm 17.7, where a record moves it by 11.5 instead of 1."""
    setting = Setting(2, 100, Neighbours(), 1e-13)
    past = History.of([ReleasedAnswer(np.full(2, 5.0), np.array([10.0, 14.6]))])
    plan = dpx.Adaptive(1.0, 1e-6, steps=20, rule="paper", radius=1.0, plane="paper").plan(np.zeros(2), setting, past)
    assert np.linalg.norm(plan.start.values) == pytest.approx(1.0)
    assert np.linalg.norm(plan.norm.query.phi) <= 1 + 1e-12
    without = plan.norm.query.evaluate(OracleRows(np.zeros((1, 2)), np.ones(1)))
    for record in np.random.default_rng(0).uniform(-3, 3, (200, 2)):
        moved = plan.norm.query.evaluate(OracleRows(np.array([[0.0, 0.0], record]), np.array([1.0, -1.0])))
        assert abs(moved - without)[0] <= plan.norm.sensitivity
