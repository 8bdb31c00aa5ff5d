"""The paper's plane from labelled records: bars that cover the answer of the private rows, of which only some are near a question."""

import numpy as np

import dpexplain as dpx
from dpexplain.core.layout import Layout
from dpexplain.core.weights import Gaussian
from dpexplain.estimation.local_reference import LocalReference

LAYOUT = Layout.of(dpx.Domain([dpx.Numeric(f"x{i}", 0, 1) for i in range(5)]).blocks)


def planes(points, rows):
    """From records that a model with a step answers, without noise."""
    labels = np.where(points[:, 0] + points[:, 1] * points[:, 2] > 0.8, 1.0, -1.0)
    still = np.zeros((1, len(points)), dtype=np.float32)
    return LocalReference(points, labels, np.ones(len(points)), still, LAYOUT, 10.0, 0.0, rows)


def test_bars_of_narrow_weights_cover_the_answer_of_finitely_many_rows():
    rng, weight, inside = np.random.default_rng(3), Gaussian(0.3), []
    for _ in range(12):
        private, records = rng.random((4_000, 5)), rng.random((16_000, 5))
        queries = 0.3 + 0.4 * rng.random((4, 5))
        exact, found = (
            planes(private, len(private)).answer(queries, weight),
            planes(records, len(private)).answer(queries, weight),
        )
        inside.append(np.abs(found.values - exact.values) <= 2 * found.errors)
    assert np.mean(inside) > 0.93


def test_rows_of_equal_weight_are_covered_without_bars_for_drawing():
    """Raking gives the records the moments of all rows: drawing moves local answers only as far as these differ from them."""
    records, everywhere, near = np.random.default_rng(4).random((16_000, 5)), Gaussian(1e3), Gaussian(0.5)
    wide, narrow = (planes(records, 16_000).answer(np.full((1, 5), 0.5), one).errors for one in (everywhere, near))
    assert wide.max() < 0.01 * narrow.min()
