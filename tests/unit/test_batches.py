"""Questions that are asked together share a read of the rows, and nothing else: same answers, same price, same order, nothing lost."""

import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpexplain as dpx
from dpexplain import explainer as module
from dpexplain.errors import DataError, InputError, ParameterError
from dpexplain.mechanisms.basic import NoisyDescent
from dpexplain.noise.seeded import SeededNoise
from dpexplain.privacy.events import price
from rows_support import ray_session

WIDTH, ROWS = 4, 900
DOMAIN = dpx.Domain.encoded(WIDTH)
CHEAP = dict(epsilon=0.1, delta=1e-6)
POINTS = np.random.default_rng(1).random((9, WIDTH))
IDS = [f"q{i}" for i in range(len(POINTS))]


def answer(rows):
    X = np.asarray(rows) if isinstance(rows, np.ndarray) else np.column_stack([rows[f"x{j}"] for j in range(WIDTH)])
    return np.sign(X[:, 0] - X[:, 1] + 0.1)


def private_rows():
    return np.random.default_rng(0).random((ROWS, WIDTH))


def in_memory(folder):
    return dpx.PrivateData(private_rows(), DOMAIN, model=answer)


def write(folder):
    X = private_rows()
    table = pa.table({f"x{j}": column for j, column in enumerate(X.T)})
    pq.write_table(table, folder / "rows.parquet", row_group_size=200)
    return folder


def streamed_data(folder):
    return dpx.PrivateData.scan(write(folder), DOMAIN, model=answer)


def cluster(folder):
    """The model goes to the workers, which do not know this module."""
    ray_session().cloudpickle.register_pickle_by_value(sys.modules[__name__])
    return dpx.PrivateData.cluster(write(folder), DOMAIN, model=answer)


class Counted:
    """Rows that note how many questions come with each read."""

    def __init__(self, rows):
        self._rows, self.reads = rows, []

    def local(self, query):
        self.reads.append(1)
        return self._rows.local(query)

    def local_many(self, queries):
        self.reads.append(len(queries))
        return self._rows.local_many(queries)

    def __getattr__(self, name):
        return getattr(self._rows, name)


def count_reads(data):
    data._rows = Counted(data._rows)
    return data._rows.reads


@pytest.fixture
def data():
    return in_memory(None)


def make(data, mechanism=None, answers=1000, **options):
    """An explainer whose budget pays for so many answers."""
    mechanism = mechanism or dpx.Basic(**CHEAP, steps=5)
    each = price(mechanism.plan_alone(POINTS[0], data.setting).events)
    epsilon = dpx.Guarantee.of_quanta(int(each * (answers + 0.5)), 1e-6, data.setting.neighbours).epsilon
    return dpx.Explainer(data, dpx.Budget(epsilon, 1e-6), mechanism, **options)


MECHANISMS = [
    dpx.Basic(**CHEAP, steps=5),
    dpx.Basic(**CHEAP, steps=5, plane="anchored"),
    dpx.Basic(**CHEAP, steps=5, calibration="paper"),
    dpx.Influence(**CHEAP),
]


@pytest.mark.parametrize("place", [in_memory, streamed_data, pytest.param(cluster, marks=pytest.mark.slow)])
def test_answers_are_those_of_one_question_at_a_time_to_the_last_bit(place, tmp_path):
    data = place(tmp_path)
    reads = count_reads(data)
    for mechanism in MECHANISMS:
        alone, batch = (dpx.Explainer(data, dpx.Budget(5, 1e-6), mechanism, noise=SeededNoise(7)) for _ in range(2))
        one_by_one, before = [alone.explain(point) for point in POINTS], len(reads)
        together = batch.explain_many(POINTS)
        assert reads[before:] == [len(POINTS)]
        for one, many in zip(one_by_one, together, strict=True):
            assert (one.values == many.values).all()
            assert (one.cost, one.details) == (many.cost, many.details)
        assert batch.spent.mu == alone.spent.mu
        assert np.diff(totals(together)) == pytest.approx(np.diff(totals(one_by_one)))  # each tells what was spent up to it
        assert [one.point.tolist() for one in batch.history] == POINTS.tolist()
    data.close()


def totals(answers):
    return [one.guarantee.mu**2 for one in answers]


def test_groups_are_bounded_in_number_and_in_memory(data, monkeypatch):
    reads = count_reads(data)
    assert len(make(data).explain_many(np.tile(POINTS, (8, 1)))) == 72
    assert reads == [32, 32, 8]
    reads.clear()
    monkeypatch.setattr(module, "MAX_BATCH_BYTES", 4 * 8 * WIDTH**2)
    make(data).explain_many(POINTS)
    assert reads == [4, 4, 1]
    reads.clear()
    monkeypatch.setattr(module, "MAX_BATCH_BYTES", 1)
    make(data).explain_many(POINTS[:2])
    assert reads == [1, 1]


def test_answers_that_build_on_each_other_are_given_one_by_one(data):
    reads = count_reads(data)
    explainer = dpx.Explainer(data, dpx.Budget(5, 1e-6), dpx.Adaptive(**CHEAP, steps=20))
    answers = explainer.explain_many(np.concatenate([POINTS, POINTS[:1]]))
    assert reads == [1] * len(POINTS)  # the last one is a copy: the first was settled before it was planned
    assert answers[-1].copied


def test_a_refusal_in_the_middle_keeps_what_was_paid_for_and_reads_for_nothing_else(data):
    reads, explainer = count_reads(data), make(data, answers=5)
    answers = explainer.explain_many(POINTS)
    assert len(answers) == len(explainer.history) == 5
    assert isinstance(answers.refusal, dpx.BudgetExhausted)
    assert reads == [5]
    assert answers[-1].guarantee.mu == pytest.approx(explainer.spent.mu)
    assert len(explainer.explain_many(POINTS)) == 0
    assert reads == [5]


def test_a_crash_in_the_middle_is_counted_in_full_and_goes_on_under_the_same_ids(data, monkeypatch, tmp_path):
    ledger, finish, calls = f"sqlite:///{tmp_path / 'x.ledger'}", NoisyDescent.run, []

    def crash(*args):
        calls.append(1)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return finish(*args)

    monkeypatch.setattr(NoisyDescent, "run", crash)
    with pytest.raises(KeyboardInterrupt):
        make(data, ledger=ledger).explain_many(POINTS, request_ids=IDS)
    monkeypatch.setattr(NoisyDescent, "run", finish)
    explainer = make(data, ledger=ledger)
    counted_before, kept = explainer.spent.mu, [one.values for one in explainer.history]
    assert len(kept) == 2
    assert counted_before**2 == pytest.approx(len(POINTS) * explainer.explain(POINTS[0], request_id="q0").cost.mu ** 2)
    reads = count_reads(data)
    answers = explainer.explain_many(POINTS, request_ids=IDS)
    assert [one.request_id for one in answers] == IDS
    assert all((one.values == before).all() for one, before in zip(answers, kept, strict=False))
    assert reads == [len(POINTS) - 2]  # those that were settled are not read for again
    assert explainer.spent.mu == counted_before
    again = explainer.explain_many(POINTS, request_ids=IDS)
    assert [one.values.tolist() for one in again] == [one.values.tolist() for one in answers]
    assert reads == [len(POINTS) - 2]


def test_rows_that_vanish_before_they_are_read_leave_the_group_counted_and_no_more(tmp_path):
    data = streamed_data(tmp_path)
    explainer = make(data)

    def vanish(queries):
        (tmp_path / "rows.parquet").unlink()
        return type(data._rows).local_many(data._rows, queries)

    data._rows.local_many = vanish
    with pytest.raises(dpx.DpexplainError, match="private rows"):
        explainer.explain_many(np.tile(POINTS, (8, 1)))
    spent = explainer.spent.mu
    assert spent > 0
    assert len(explainer.history) == 0
    with pytest.raises(dpx.DpexplainError, match="private rows"):
        explainer.explain_many(POINTS)
    assert explainer.spent.mu == spent  # found out before anything is reserved


def test_an_id_that_stands_for_another_question_stops_the_batch_after_what_was_paid(data):
    explainer = make(data)
    explainer.explain(POINTS[0], request_id="q4")
    with pytest.raises(InputError, match="another question"):
        explainer.explain_many(POINTS, request_ids=IDS)
    assert [one.point.tolist() for one in explainer.history] == POINTS[[0, 0, 1, 2, 3]].tolist()


def test_what_is_wrong_is_said_before_anything_is_spent(data):
    explainer = make(data)
    with pytest.raises(ParameterError, match="3 different request_ids for 9 records"):
        explainer.explain_many(POINTS, request_ids=IDS[:3])
    with pytest.raises(ParameterError, match="8 different request_ids for 9 records"):
        explainer.explain_many(POINTS, request_ids=[*IDS[:8], IDS[0]])
    asked = []

    def answer_then_fail(rows):
        asked.append(len(rows))
        if len(asked) > 4:
            raise RuntimeError("gone")
        return answer(rows)

    influence = dpx.Explainer(
        dpx.PrivateData(private_rows(), DOMAIN, model=answer_then_fail), dpx.Budget(5, 1e-6), dpx.Influence(**CHEAP)
    )
    with pytest.raises(DataError, match="RuntimeError"):
        influence.explain_many(POINTS)
    assert explainer.spent.mu == influence.spent.mu == 0
