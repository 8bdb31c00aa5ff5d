"""Thousands of answers, each started from the ones before: the rule must not talk itself into believing its own predictions."""

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.core.moments import Moments
from dpexplain.mechanisms.history import History, ReleasedAnswer
from dpexplain.mechanisms.setting import Setting
from dpexplain.noise.seeded import SeededNoise
from dpexplain.privacy.events import price
from dpexplain.privacy.relation import Neighbours
from noise_support import run

WIDTH, SIZE, QUERIES = 8, 300_000, 2500  # 2,000 in one corner, then 500 in another
SETTING = Setting(WIDTH, SIZE, Neighbours(), 1e-13)
CURVATURE = np.linspace(0.01, 0.15, WIDTH)


def truth(z):
    """An optimum that no regression on z alone gets right."""
    return 0.25 * np.sin(np.arange(1, WIDTH + 1) * z + z[::-1] * 2)


class Curved:
    width, summation_error = WIDTH, 1e-13

    def local(self, query):
        return Moments(SIZE * np.diag(CURVATURE), SIZE * CURVATURE * truth(query.point), np.zeros(len(CURVATURE)))


def relative_excess(values, z):
    best = truth(z)
    return float((values - best) ** 2 @ CURVATURE / (best**2 @ CURVATURE))


def stream(mechanism, points, seed=0):
    """(relative excess, price in units of a full answer) of each answer in turn."""
    history, rows, noise = History(), Curved(), SeededNoise(seed)
    full, told = dpx.Budget(mechanism.epsilon, mechanism.delta).quanta, []
    for z in points:
        outcome, events = run(mechanism.plan(z, SETTING, history), rows, noise)
        history.append(ReleasedAnswer(z, outcome.values, outcome.copied))
        told.append((relative_excess(outcome.values, z), price(events) / full))
    return np.array(told)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [dpx.Adaptive, dpx.Enhanced])
def test_quality_and_price_settle_instead_of_collapsing(kind):
    rng = np.random.default_rng(0)
    points = rng.random((QUERIES, WIDTH)) * 0.6
    points[2000:] += 0.4  # everybody moves to another corner
    told = stream(kind(0.01, 1e-7, plane="paper"), points)
    early, late, moved, after = (told[i : i + 300] for i in (300, 1700, 2000, 2200))
    assert late[:, 0].mean() <= 1.3 * early[:, 0].mean()
    # of these answers, which are shorter than the radius that prices were once a share of
    assert 0.1 - 1e-6 <= late[:, 1].mean() <= 0.4
    assert 0.8 * late[:, 1].mean() <= moved[:20, 1].mean()
    assert after[:, 0].mean() <= 2 * late[:, 0].mean()  # it has learnt the new corner
    assert told[:, 0].mean() < 0.05
