"""Records that follow tables of pairs learn from labels in these what three features have in common, and error bars know the noise."""

import numpy as np
import pytest

from dpexplain.estimation.label_raking import LabelRaking

OFFSETS = np.array([0, 2, 4, 6])
CELLS = 12
PRIOR = 0.15


def make_raking(error=0.0, rows=64_000, seed=0):
    """Records of three independent yes/no features; the model mostly answers by their parity."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2, (3, rows)).astype(np.int32)
    labels = np.where(codes.sum(axis=0) % 2, 1.0, -1.0) * np.where(rng.random(rows) < 0.1, -1.0, 1.0)
    return LabelRaking(codes, OFFSETS, labels, error, 0.0)


def truth(records, bias=0.3):
    """Labels in the tables of rows in which odd parity is more frequent, as no table of pairs shows."""
    weights = 1 + bias * records.labels
    return records.tables(weights / weights.sum() * records.labels)[:CELLS]


def test_records_learn_what_no_table_of_pairs_shows():
    records = make_raking()
    found = np.exp(records.rake(np.ones(64_000), truth(records), PRIOR))
    found /= found.sum()
    assert found @ records.labels == pytest.approx(0.3, abs=0.02)


def test_tables_of_pairs_stay_as_they_are():
    records = make_raking()
    before = records.tables(np.full(64_000, 1 / 64_000))
    found = np.exp(records.rake(np.ones(64_000), truth(records), PRIOR))
    assert records.tables(found / found.sum()) == pytest.approx(before, abs=2e-3)


def test_labels_below_their_noise_move_little():
    quiet, loud = make_raking(), make_raking(error=1.0)
    target = truth(quiet)
    assert np.ptp(loud.rake(np.ones(64_000), target, PRIOR)) < 0.1 * np.ptp(quiet.rake(np.ones(64_000), target, PRIOR))


def test_answers_that_contradict_the_records_leave_many_of_them():
    """Fifty features that one cause moves, and rows whose labels are the opposite of the records': weights of all sizes would follow."""
    rng, features, rows = np.random.default_rng(0), 50, 4096
    cause = rng.random(rows) < 0.5
    codes = np.where(rng.random((features, rows)) < 0.5, cause, rng.random((features, rows)) < 0.5).astype(np.int32)
    records = LabelRaking(codes, 2 * np.arange(features + 1), np.where(cause, 1.0, -1.0) * rng.random(rows), 1e-6, 1e-6)
    opposite = -records.tables(records.labels / rows)[: -2 * features]
    found = np.exp(records.rake(np.ones(rows), opposite, records.estimate_prior(np.ones(rows), opposite)))
    assert found.sum() ** 2 / (found @ found) > 0.05 * rows


def test_rehearsals_move_labels_by_their_noise():
    records = make_raking(error=0.004)
    weights, changes = np.ones(64_000), np.zeros((40, 64_000))
    normals = np.random.default_rng(1).standard_normal((40, CELLS))
    moved = records.rehearse(weights, changes, normals, PRIOR)
    means = [float(np.average(records.labels, weights=np.exp(change))) for change in moved]
    # Each of three tables has four cells with noise of 0.004: the mean label, a sum of four, is known three times to 0.008.
    assert np.std(means) == pytest.approx(0.008 / np.sqrt(3), rel=0.35)


def test_rehearsals_keep_what_labels_do_not_show():
    records = make_raking(error=10.0)
    change = np.where(records.codes[0] == 1, 0.1, -0.1)[None, :]
    moved = records.rehearse(np.ones(64_000), change, np.zeros((1, CELLS)), PRIOR)
    assert moved == pytest.approx(change - change.mean(), abs=0.02)


def test_the_prior_is_as_wide_as_what_there_is_to_learn():
    alike = np.ones(64_000)
    found = [make_raking().estimate_prior(alike, truth(make_raking(), bias)) for bias in (0.05, 0.1)]
    assert found == pytest.approx([0.05, 0.1], rel=0.2)


def test_where_noise_explains_everything_there_is_nothing_to_learn():
    records, alike = make_raking(error=0.01), np.ones(64_000)
    own = records.tables(alike / 64_000 * records.labels)[:CELLS]
    draws = np.random.default_rng(3).standard_normal((200, CELLS))
    found = [records.estimate_prior(alike, own + 0.01 * drawn) for drawn in draws]
    assert np.mean(np.array(found) == 0) > 0.4
    assert np.mean(found) < 0.03
