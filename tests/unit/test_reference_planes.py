"""Planes from reference records."""

import numpy as np

import dpexplain as dpx
from dpexplain.noise import SeededNoise


def test_records_say_nothing_about_a_number_that_stays_within_a_cell() -> None:
    """Declared up to 50,000 and below 1: records have it anywhere between 0 and 195, where the model answers otherwise."""
    rng = np.random.default_rng(1)
    rows = {"used": rng.random(40_000), "age": rng.random(40_000)}
    domain = dpx.Domain([dpx.Numeric("used", 0, 50_000), dpx.Numeric("age", 0, 1)])

    def model(table: dict[str, np.ndarray]) -> np.ndarray:
        return 0.1 + 0.006 * np.minimum(np.asarray(table["used"]), 100) + 0.2 * np.asarray(table["age"])

    data = dpx.PrivateData(rows, domain, model=model, output="probability")
    release = dpx.release(data, dpx.Budget(1.0, 1e-6), reference=8_192, noise=SeededNoise(1))
    planes = release._reference_planes
    assert planes is not None
    hidden = np.diag(planes.reference._unresolved)
    assert hidden[0] > 0.8
    assert abs(hidden[1]) < 1e-3
    found = planes.reference.fit(domain.encode_queries([{"used": 0.4, "age": 0.5}]), dpx.weights.Stable())
    assert abs(found.values[0, 0] - planes.reference.slopes.values[0]) < 20
