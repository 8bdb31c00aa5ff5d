"""Many columns: the cheaper arithmetic finds what the plain one finds."""

from dataclasses import replace

import numpy as np
import pytest

from dpexplain.backends.oracle import OracleRows
from dpexplain.core.layout import Layout
from dpexplain.core.release_moments import CentreMoments, NormalisedMoments, NormalisedSums, centre_of
from dpexplain.estimation import local_reference, reference
from dpexplain.estimation.calibrate import as_sums
from dpexplain.estimation.denoise import WIDE, estimate, with_label_moments
from dpexplain.estimation.label_newton import LabelNewton, ReusedLabelNewton

SIZES = [3, 1, 1] * 30  # 150 columns: codes of three and binaries
STOPS = tuple(int(stop) for stop in np.cumsum(SIZES))
LAYOUT = Layout((0, *STOPS[:-1]), STOPS, (False,) * len(SIZES))


@pytest.fixture(scope="module")
def wide():
    """(estimate, query) of noisy moments of 3,000 rows of 150 columns."""
    rng, m = np.random.default_rng(0), 3000
    hidden, X = rng.standard_normal((m, 2)), np.zeros((m, LAYOUT.width))
    for start, size in zip(LAYOUT.starts, SIZES, strict=True):
        lean = hidden @ rng.standard_normal((2, size)) + rng.gumbel(size=(m, size))
        X[np.arange(m), start + lean.argmax(axis=1)] = 1.0 if size > 1 else lean[:, 0] > 0
    store = OracleRows(X, np.tanh(X[:, :20] @ rng.standard_normal(20) - 1))
    query = NormalisedMoments(LAYOUT, *centre_of(store.centre(CentreMoments(LAYOUT)), LAYOUT, m, 0.0))
    vector = query.vector(store.normalised(query))
    noisy = vector + 0.5 * rng.standard_normal(len(vector))
    return estimate(NormalisedSums.from_vector(noisy, query.scales, LAYOUT), query, 0.5), query


def test_the_table_is_wide():
    assert LAYOUT.width > WIDE
    assert [len(panel) for panel in reference._panels(LAYOUT)] != [len(SIZES)]


def test_codes_drawn_panel_by_panel_are_those_drawn_at_once(wide, monkeypatch):
    found, _ = wide
    drawn = []
    for panel in (1, 40, 10_000):  # one product for each code, for some, for none
        monkeypatch.setattr(reference, "PANEL", panel)
        assert [a for group in reference._panels(LAYOUT) for a in group] == list(range(len(SIZES)))
        drawn.append(reference.draw(found, LAYOUT, 512))
    assert (drawn[0] == drawn[2]).mean() > 0.9999  # a uniform number may lie on a step, to the last digit
    assert (drawn[1] == drawn[2]).mean() > 0.9999


def test_queries_are_drawn_without_the_points_before_them(wide):
    found, _ = wide
    alone = reference.sample_public_points(found, LAYOUT, 16)
    codes = reference.draw(found, LAYOUT, 2 * reference.POINTS)[:, reference.POINTS : reference.POINTS + 16]
    among = reference.Reference(codes, np.empty(0), np.empty(0)).points(LAYOUT)
    assert (alone == among).mean() > 0.9999


def test_labels_are_the_same_with_an_old_hessian(wide, monkeypatch):
    found, _ = wide
    codes = reference.draw(found, LAYOUT, 1024)
    points = reference.Reference(codes, np.empty(0), np.empty(0)).points(LAYOUT)
    quick, coefficients = reference.fit_labels(points, found)
    monkeypatch.setattr(reference, "ReusedLabelNewton", LabelNewton)
    plain, expected = reference.fit_labels(points, found)
    assert quick == pytest.approx(plain, abs=1 / reference.LABEL_STEPS)
    assert coefficients == pytest.approx(expected, abs=1e-3)


def test_a_hessian_is_used_again_only_while_it_helps(monkeypatch):
    rng, summed = np.random.default_rng(1), []
    Z = np.column_stack([np.ones(500), rng.standard_normal((500, 3))])
    newton = ReusedLabelNewton(Z, np.full(4, 0.01))
    original = ReusedLabelNewton._hessian
    monkeypatch.setattr(ReusedLabelNewton, "_hessian", lambda self, labels: summed.append(1) or original(self, labels))
    labels, gradient = np.tanh(Z @ [0.1, 0.5, -0.5, 0.2]), np.array([1.0, 0.5, -0.2, 0.1])
    exact = LabelNewton(Z, np.full(4, 0.01)).step(labels, gradient)
    assert newton.step(labels, gradient) == pytest.approx(exact, rel=1e-4)
    newton.step(labels, 0.1 * gradient)  # a hundredth of the decrement: the old one serves
    assert len(summed) == 1
    newton.step(labels, 0.09 * gradient)
    assert len(summed) == 2


def test_raking_with_symmetric_products_finds_the_same_weights(wide, monkeypatch):
    found, _ = wide
    codes = reference.draw(found, LAYOUT, 1024)
    points = reference.Reference(codes, np.empty(0), np.empty(0)).points(LAYOUT)
    labels = np.tanh(points[:, 0] - points[:, 3])
    targets = local_reference.MomentTargets(
        found.mean, found.covariance, found.t0, found.t1, 0.01, 0.01, 0.01, np.zeros(LAYOUT.width)
    )
    quick = local_reference.MomentRaking(points, labels, np.ones(1024), targets).weights()
    monkeypatch.setattr(local_reference, "WIDE", 10_000)
    plain = local_reference.MomentRaking(points, labels, np.ones(1024), targets).weights()
    assert quick == pytest.approx(plain, rel=2e-3)


def test_other_label_moments_are_centred_as_a_whole_estimate_centres_them(wide):
    found, query = wide
    rng = np.random.default_rng(2)
    sums = as_sums(found, query)
    t1 = sums.t1 / sums.w0 + 3 * found.spread.t1 * rng.standard_normal(LAYOUT.width)
    whole = estimate(replace(sums, t1=t1 * sums.w0), query, 0.5)
    other = with_label_moments(estimate(sums, query, 0.5), t1, query)
    assert np.linalg.norm(other.t1 - found.t1) > 0.1 * np.linalg.norm(found.t1)
    assert other.t1 == pytest.approx(whole.t1, abs=1e-12)
    assert (other.shrunk == whole.shrunk).all()
