"""Parallel composition: disjoint shards by construction, and the worst shard's total."""

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.errors import DataError, LedgerMismatch, ParameterError

DOMAIN = dpx.Domain([dpx.Numeric("v", 0, 1000), dpx.Numeric("w", 0, 1)])


def table(rows=900, seed=0):
    rng = np.random.default_rng(seed)
    return {"v": np.arange(rows, dtype=float), "w": rng.random(rows), "owner": [f"p{i // 3}" for i in range(rows)]}


def private(rows=900, **options):
    columns = table(rows)
    return dpx.PrivateData(columns, DOMAIN, labels=np.sign(columns["w"] - 0.5), name="t", **options)


def values_in(shard):
    """The first column of a shard's rows, from its private store."""
    rows = np.concatenate(list(shard._rows.row_major()))
    return np.rint(rows[:, 0] * 1000).astype(int)


@pytest.mark.parametrize("shards", [2, 3, 7])
def test_shards_are_disjoint_and_together_are_everything(shards):
    parts = private().split(shards)
    held = np.concatenate([values_in(part) for part in parts])
    assert sorted(held) == list(range(900))
    assert all(part.size == 900 // shards for part in parts)
    assert len({part.name for part in parts}) == shards


def test_a_shard_answers_as_its_rows_registered_alone():
    columns, second = table(), private().split(3)[1]
    held = np.sort(values_in(second))
    alone = dpx.PrivateData(
        {name: np.asarray(column)[held] for name, column in columns.items()}, DOMAIN, labels=np.sign(columns["w"] - 0.5)[held]
    )
    asked = {"v": 400, "w": 0.5}
    scale = len(held) / second.size
    assert evaluation.optimum(second, asked) == pytest.approx(evaluation.optimum(alone, asked), rel=1e-9)
    assert scale == pytest.approx(1, abs=0.2)


def test_nobody_else_moves_when_a_row_leaves_or_rows_are_reordered():
    columns, labels = table(), np.sign(table()["w"] - 0.5)
    where = {int(v): i for i, part in enumerate(private().split(3)) for v in values_in(part)}
    for order in (np.arange(1, 900), np.random.default_rng(1).permutation(900)):
        some = {name: np.asarray(column)[order] for name, column in columns.items()}
        again = dpx.PrivateData(some, DOMAIN, labels=labels[order], size=900).split(3)
        assert {int(v): i for i, part in enumerate(again) for v in values_in(part)} == {int(i): where[i] for i in order}


def test_equal_rows_are_spread_too_and_one_of_them_less_changes_one_shard_by_one_row():
    rows, labels = np.array([[0.0, 1.0]] * 500 + [[1.0, 0.0]] * 400), np.array([1.0, -1.0] * 450)

    def rows_of_shards(keep):
        shards = dpx.PrivateData(rows[keep], dpx.Domain.encoded(2), labels=labels[keep], size=900).split(3)
        return [sorted(map(tuple, np.concatenate(list(shard._rows.labelled_pieces())))) for shard in shards]

    whole = rows_of_shards(np.arange(900))
    assert all(200 < len(shard) < 400 for shard in whole)
    for gone in (0, 1, 499, 700, 899):
        without = rows_of_shards(np.delete(np.arange(900), gone))
        (changed,) = [i for i in range(3) if without[i] != whole[i]]
        without[changed].append((*rows[gone], labels[gone]))
        assert sorted(without[changed]) == whole[changed]


def test_what_the_same_ledger_paid_for_the_whole_data_is_part_of_each_shards_total(tmp_path):
    """A domain that was found in the rows, say, or answers about them before they were split."""
    where, asked, budget = f"sqlite:///{tmp_path}/l", {"v": 400, "w": 0.5}, dpx.Budget(1.0, 1e-6)
    before = private()
    dpx.Explainer(before, budget, dpx.Basic(0.3), ledger=where).explain(asked)
    whole = private()
    shards = whole.split(2)
    explainers = [dpx.Explainer(shard, budget, dpx.Basic(0.1), ledger=where) for shard in shards]
    assert whole.spent.mu == pytest.approx(before.spent.mu)
    explainers[0].explain(asked)
    alone = explainers[0].spent.mu
    assert shards[0].spent.mu == pytest.approx(np.hypot(before.spent.mu, alone))
    assert shards[1].spent.mu == pytest.approx(before.spent.mu)
    assert whole.spent.mu == pytest.approx(shards[0].spent.mu)
    with pytest.raises(LedgerMismatch, match="another relation"):
        dpx.Explainer(private(relation="replace-one").split(3)[0], budget, dpx.Basic(0.1), ledger=where)
    nested = private().split(2)[0].split(2)[0]
    dpx.Explainer(nested, budget, dpx.Basic(0.1), ledger=where)
    assert nested.spent.mu == pytest.approx(shards[0].spent.mu)


@pytest.mark.parametrize("error", [2.0**-52, 1e-7])
def test_other_last_bits_of_answers_move_no_row(error):
    """They differ from machine to machine, and with networks in float32 by more than the last bits."""
    columns, labels = table(), np.tanh(table()["w"] - 0.5)
    shards = dpx.PrivateData(columns, DOMAIN, labels=labels).split(3)
    again = dpx.PrivateData(columns, DOMAIN, labels=labels * (1 + error)).split(3)
    for one, other in zip(shards, again, strict=True):
        assert values_in(one).tolist() == values_in(other).tolist()


def test_one_owners_rows_stay_together_and_nobody_else_moves_when_they_leave():
    parts = private(unit="owner", max_rows_per_unit=3).split(3)
    where = {int(value) // 3: i for i, part in enumerate(parts) for value in values_in(part)}
    assert sum(len(values_in(part)) for part in parts) == 900
    for i, part in enumerate(parts):
        assert all(where[int(value) // 3] == i for value in values_in(part))
    columns = {name: column[3:] for name, column in table().items()}  # the first owner leaves
    without = dpx.PrivateData(columns, DOMAIN, labels=np.ones(897), unit="owner", max_rows_per_unit=3, size=900, name="t").split(
        3
    )
    assert {int(v) // 3: i for i, part in enumerate(without) for v in values_in(part)} == {
        k: v for k, v in where.items() if k > 0
    }


def test_what_was_split_refuses_every_further_use():
    data = private()
    open_before = data._rows
    data.split(2)
    for use in (
        lambda: dpx.Explainer(data, dpx.Budget(1, 1e-6)),
        lambda: dpx.release(data, dpx.Budget(1, 1e-6)),
        lambda: data.split(2),
        lambda: evaluation.optimum(data, {"v": 1, "w": 0}),
    ):
        with pytest.raises(DataError, match="these data were split"):
            use()
    assert data._rows is not open_before


def test_data_in_use_are_not_split():
    data = private()
    dpx.Explainer(data, dpx.Budget(1, 1e-6))
    with pytest.raises(DataError, match="Split data before anything is opened"):
        data.split(2)


@pytest.mark.parametrize("shards", [0, 1, 2.5, "3"])
def test_meaningless_numbers_of_shards_are_refused(shards):
    with pytest.raises(ParameterError):
        private().split(shards)


def test_the_total_is_the_worst_shards():
    data = private()
    explainers = [dpx.Explainer(part, dpx.Budget(2, 1e-6), dpx.Basic(0.2, 1e-6, 5)) for part in data.split(3)]
    assert data.spent.mu == 0
    for times, explainer in enumerate(explainers):
        for _ in range(times):
            explainer.explain({"v": 1, "w": 0})
    assert data.spent.mu == explainers[2].spent.mu > explainers[1].spent.mu > 0
    assert "from 3 disjoint shards (the worst shard's total) satisfies" in str(data.spent)


def test_shards_can_be_split_again():
    data = private()
    first, second = data.split(2)
    quarters = first.split(2)
    assert sorted(np.concatenate([values_in(part) for part in (*quarters, second)])) == list(range(900))
    dpx.Explainer(quarters[1], dpx.Budget(2, 1e-6), dpx.Basic(0.2, 1e-6, 5)).explain({"v": 1, "w": 0})
    assert data.spent.mu == first.spent.mu > second.spent.mu == 0


def test_a_shard_that_was_read_without_paying_spoils_the_whole():
    data = private()
    part = data.split(2)[1]
    dpx.Explainer(part, dpx.Budget(2, 1e-6), dpx.Adaptive(calibration="paper")).explain({"v": 1, "w": 0})
    assert "NOT differentially private" in str(data.spent)
