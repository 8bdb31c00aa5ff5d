"""Codes that noise may have hidden, and what they add to the error bars of SHAP values."""

from dataclasses import replace

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.core.cells import CodeCells, LevelCells, NumberCells
from dpexplain.core.layout import Layout
from dpexplain.core.marginals import Bins
from dpexplain.errors import DataError
from dpexplain.estimation.hidden_codes import find_hidden_codes, propose_alternatives
from dpexplain.estimation.raking import Tables
from dpexplain.noise.seeded import SeededNoise

VALUES = ["common", "other", "rare"]
DOMAIN = dpx.Domain(
    [
        dpx.Categorical("kind", values=VALUES),
        dpx.Ordinal("level", levels=[1, 2, 3]),
        *(dpx.Binary(f"flag{i}") for i in range(5)),
        dpx.Numeric("age", 0, 1),
    ]
)
RECORD = {"kind": "common", "level": 2, **{f"flag{i}": False for i in range(5)}, "age": 0.4}


def model(rows):
    """Says yes to one rare kind only."""
    return np.where(np.asarray(rows["kind"]) == "rare", 1.0, -1.0)


@pytest.fixture(scope="module")
def release():
    rng, m = np.random.default_rng(0), 4000
    rows = {
        "kind": rng.choice(VALUES, m, p=[0.6, 0.393, 0.007]),
        "level": rng.integers(1, 4, m),
        **{f"flag{i}": rng.random(m) < 0.4 for i in range(5)},
        "age": rng.random(m),
    }
    data = dpx.PrivateData(rows, DOMAIN, model=model)
    found = dpx.release(data, dpx.Budget(0.3, 1e-6), reference=2048, noise=SeededNoise(2))
    rare = found.reference.codes[0] == 2
    assert found.reference.weights[rare].sum() < 0.002 * found.reference.weights.sum()  # the case that is tested
    return found


def test_shares_below_their_error_are_found_and_numbers_and_missing_values_are_not():
    cells = (CodeCells(0, 3), LevelCells(3, 3), CodeCells(4, 5), NumberCells(5))
    joined = (np.array([0, 1, 2, 0]), np.arange(3), np.arange(2), np.arange(258) // 129)
    p = np.concatenate([[0.699, 0.3, 0.001, 0.0], [0.5, 0.496, 0.004], [0.2, 0.8], [0.5, 0.5]])
    tables = Tables(np.array([0, 4, 7, 9, 11]), p, np.empty((0, 0)), np.empty((0, 0)), 0.02, np.empty((0, 0)))
    layout = Layout.of(
        dpx.Domain(
            [dpx.Categorical("a", values=VALUES), dpx.Ordinal("b", levels=[1, 2, 3]), dpx.Binary("c"), dpx.Numeric("d", 0, 1)]
        ).blocks
    )
    found = find_hidden_codes(tables, Bins(cells, joined, (4, 3, 2, 2)), layout)
    assert found[:, :2].tolist() == [[0, 2], [1, 4096]]  # the third value, and the highest level as a reference stores it
    errors = 0.02 / np.sqrt([1 / 3 + 1 / 2 + 1 / 2, 1 / 3 + 1 / 2 + 1 / 2])
    assert found[:, 2] == pytest.approx(np.sqrt(errors**2 - np.square([0.001, 0.004])))


def test_alternatives_have_the_code_and_nothing_else_is_changed():
    hidden = np.array([[0.0, 2.0, 0.01], [1.0, 4096.0, 0.02]])
    stored = np.stack([np.arange(100) % 2, np.full(100, 2048)])
    found = propose_alternatives(hidden, 100)
    made = found.of(stored)
    assert len(found) == 64
    for a, code in ((0, 2), (1, 4096)):
        own = found.attributes == a
        assert (made[a, own] == code).all()
        assert (made[1 - a, own] == stored[1 - a, found.records[own]]).all()
    values = np.concatenate([np.zeros(100), np.where(found.attributes == 0, 1.0, 0.0)])[:, None]
    # every alternative moves by 1: the share of all
    assert sorted(np.abs(found.shifts(values)[:, 0])) == pytest.approx([0, 0.01])


def test_few_alternatives_represent_many():
    rng = np.random.default_rng(0)
    found = propose_alternatives(np.column_stack([np.zeros(40), np.arange(40), np.full(40, 0.01)]), 1000)
    effects = np.where(found.hidden == 3, 2.0, 0.0) + 0.01 * rng.random(len(found))
    kept, times = found.worth_keeping(effects)
    few = found.take(kept, times)
    assert len(few) <= 64 < len(found)
    exact = np.bincount(found.hidden, found.weights * effects)
    assert np.bincount(few.hidden, few.weights * effects[kept], minlength=40)[3] == pytest.approx(exact[3], rel=0.05)


def test_the_effect_of_a_kind_that_noise_removed_is_within_the_bar(release):
    truth = -1.0 - (0.007 - 0.993)  # f(record) minus the average answer over the people, all of it due to the kind
    found = release.shapley(RECORD)
    assert abs(found.values[0] - truth) <= 2 * found.error[0]
    assert abs(found.base - -0.986) <= 2 * found.base_error
    known = replace(release, reference=replace(release.reference, hidden_codes=None)).shapley(RECORD)
    assert known.error[0] < 0.2 * found.error[0]
    assert np.array_equal(known.values, found.values)


def test_a_summary_has_it_too(release):
    found = release.summary(records=20, background=64)
    known = replace(release, reference=replace(release.reference, hidden_codes=None)).summary(records=20, background=64)
    share = 0.007 * 0.993 * 4  # mean |contribution| of the kind: 2·0.993 for the rare, 2·0.007 for the others
    assert abs(found.importance[0] - share) <= 2 * found.error[0]
    assert known.error[0] < found.error[0]
    curve, plain = (one.dependence("age") for one in (found, known))
    assert (curve.error > plain.error).all()  # the average answer could be higher at any age
    assert np.array_equal(curve.answers, plain.answers)


def test_a_model_that_refuses_a_declared_value_is_explained_without_it(release):
    def refuses(rows):
        if (np.asarray(rows["kind"]) == "rare").any():
            raise ValueError("unknown kind")
        return model(rows)

    with pytest.raises(DataError):
        release.shapley(RECORD | {"kind": "rare"}, model=refuses)
    assert np.isfinite(release.shapley(RECORD, model=refuses).error).all()


def test_a_file_stores_them(release, tmp_path):
    release.save(tmp_path / "rows.dpx")
    found = dpx.load(tmp_path / "rows.dpx")
    assert np.array_equal(found.reference.hidden_codes, release.reference.hidden_codes)
    np.testing.assert_allclose(found.shapley(RECORD, model=model).error, release.shapley(RECORD).error)
