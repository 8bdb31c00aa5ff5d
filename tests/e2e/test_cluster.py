"""Rows on a Ray cluster: the same answers, nothing private in an error, and a killed worker costs nothing."""

import os
import pickle
import signal
import sys
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpexplain as dpx
from dpexplain.backends import distributed
from dpexplain.backends.distributed import Worker, shares
from dpexplain.backends.parquet import RowGroup
from dpexplain.core.moments import LocalMoments
from dpexplain.errors import DataError, ParameterError, RowsUnavailable
from dpexplain.noise.seeded import SeededNoise
from rows_support import ray_session

pytestmark = pytest.mark.slow

ROWS, WIDTH = 3000, 5
DOMAIN, BUDGET = dpx.Domain.encoded(WIDTH), dpx.Budget(1, 1e-6)
POINT = np.full(WIDTH, 0.4)


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.random((WIDTH, ROWS))
    people = rng.integers(0, 900, ROWS)
    table = pa.table({f"x{j}": column for j, column in enumerate(X)} | {"y": X[0] - X[1], "person": people})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=250)
    return tmp_path


@pytest.fixture
def cluster():
    """Registers data on the cluster, and frees its workers afterwards."""
    ray_session()
    opened = []

    def register(*args, **options):
        opened.append(dpx.PrivateData.cluster(*args, **options))
        return opened[-1]

    yield register
    for data in opened:
        data.close()


def pids(data):
    ray = ray_session()
    return [ray.get(worker.__ray_call__.remote(lambda _: os.getpid())) for worker in data._rows.workers]


@pytest.mark.filterwarnings("ignore::dpexplain.errors.UnaskedModel")  # it needs a column outside the domain
def test_a_release_and_its_units_are_those_of_the_rows_in_memory(folder, cluster):
    table = pq.read_table(folder)
    options = {"unit": "person", "max_rows_per_unit": 2}
    memory = dpx.PrivateData(table, DOMAIN, labels=table["y"].to_numpy(), **options)
    there = cluster(folder, DOMAIN, model=lambda rows: rows["y"].to_numpy(), output="value", bounds=(-1, 1), **options)
    assert there.size == memory.size
    one, other = (dpx.release(data, BUDGET, noise=SeededNoise(4)).explain(POINT) for data in (memory, there))
    assert other.values == pytest.approx(one.values, rel=1e-6, abs=1e-9)


def test_shapley_values_are_to_the_last_bit_those_of_the_rows_in_memory(folder, cluster):
    def model(rows):
        return np.tanh(2 * np.asarray(rows["x0"]) - 3 * np.asarray(rows["x1"]) * np.asarray(rows["x2"]))

    options = {"model": model, "unit": "person", "max_rows_per_unit": 2}
    answers = [
        dpx.Explainer(data, BUDGET, dpx.Shapley(0.5, rows=800), noise=SeededNoise(3)).explain(POINT)
        for data in (dpx.PrivateData(pq.read_table(folder), DOMAIN, **options), cluster(folder, DOMAIN, **options))
    ]
    assert (answers[0].values == answers[1].values).all()


def test_a_worker_killed_in_the_middle_of_a_query_changes_neither_the_answer_nor_the_cost(folder, cluster, tmp_path, monkeypatch):
    # as where many rows have owners: a restart fetches what to read from the driver
    monkeypatch.setattr(distributed, "INLINE", 0)
    table = pq.read_table(folder)
    data = cluster(folder, DOMAIN, label="y")
    mechanism, ledger = dpx.Basic(0.1, 1e-7, steps=20), f"sqlite:///{tmp_path / 'test.ledger'}"
    explainer = dpx.Explainer(data, BUDGET, mechanism, ledger=ledger, noise=SeededNoise(9))
    first, second = pids(data)
    os.kill(second, signal.SIGSTOP)  # it cannot answer: whatever is asked now stays unanswered until it is replaced
    answers = []
    asking = threading.Thread(target=lambda: answers.append(explainer.explain(POINT, request_id="once")))
    asking.start()
    while explainer.spent.mu == 0:  # paid, so the query is under way
        assert asking.is_alive()
        time.sleep(0.02)
    os.kill(second, signal.SIGKILL)
    asking.join(timeout=300)
    memory = dpx.PrivateData(table, DOMAIN, labels=table["y"].to_numpy())
    expected = dpx.Explainer(memory, BUDGET, mechanism, noise=SeededNoise(9)).explain(POINT)
    assert answers[0].values == pytest.approx(expected.values, rel=1e-6, abs=1e-9)
    assert explainer.spent.mu == pytest.approx(expected.guarantee.mu, rel=1e-6)
    assert len(list(explainer._ledger.settled())) == 1
    survivor, replaced = pids(data)
    assert survivor == first
    assert replaced != second


def test_a_worker_that_comes_back_to_other_rows_refuses(folder, cluster):
    data = cluster(folder, DOMAIN, label="y")
    changed = pq.read_table(folder)
    pq.write_table(changed.set_column(0, "x0", pa.array(np.zeros(ROWS))), folder / "rows.parquet", row_group_size=250)
    query = LocalMoments(POINT, dpx.weights.Stable())
    data._rows.local(query)  # what workers hold is what was registered
    os.kill(pids(data)[0], signal.SIGKILL)
    with pytest.raises(RowsUnavailable, match="changed since they were registered"):
        data._rows.local(query)
    data.close()
    with pytest.raises(RowsUnavailable, match="closed"):
        data._rows.local(query)


def test_nothing_a_worker_meets_is_quoted(folder, cluster):
    def quote_row(rows):
        raise ValueError(f"cannot score {rows['x0'][0]}")

    with pytest.raises(DataError, match="the model raised ValueError on the private rows") as told:
        cluster(folder, DOMAIN, model=quote_row, output="probability")
    assert str(pq.read_table(folder)["x0"][0]) not in str(told.value)

    def broken_weight(distances):
        raise ArithmeticError(f"at {distances[0]}")

    data = cluster(folder, DOMAIN, label="y")
    with pytest.raises(RowsUnavailable, match=r"^a worker of the cluster could not answer\. Register the rows again$"):
        data._rows.local(LocalMoments(POINT, dpx.weights.Custom(broken_weight)))


def test_row_groups_are_shared_out_in_order_and_about_equally():
    groups = [RowGroup(0, i, 100 * i, 100) for i in range(10)]
    assert [[group.index for group in share] for share in shares(groups, 3)] == [[0, 1, 2], [3, 4, 5, 6], [7, 8, 9]]
    assert [len(share) for share in shares(groups[:1], 4)] == [1]


def test_a_worker_without_rows_answers_with_zeros(folder):
    data = dpx.PrivateData.scan(folder, DOMAIN, label="y")
    worker = Worker(data._rows._source, [])
    kind, answer = worker.ask("local_many", pickle.dumps([LocalMoments(POINT, dpx.weights.Stable())]), worker.content_digest()[1])
    assert kind == "done"
    assert not answer[0].A.any()


def test_without_ray_the_extra_is_named(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ParameterError, match=r"pip install \"dpexplain\[ray\]\""):
        dpx.PrivateData.cluster(folder, DOMAIN, label="y")


def three_classes():
    class Grades:
        classes_ = np.array(["low", "middle", "high"])

        def predict_proba(self, rows):
            scores = np.stack([-3 * np.asarray(rows["x0"]), np.full(len(rows["x0"]), -1.0), np.asarray(rows["x1"]) - 2], axis=1)
            return np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)

    return Grades()


def test_all_classes_of_rows_on_a_cluster_are_those_of_rows_in_files(folder, cluster):
    model = three_classes()
    one, other = (
        dpx.release(data, BUDGET, noise=SeededNoise(3), reference=1024)
        for data in (
            dpx.PrivateData.scan(folder, DOMAIN, model=model, target="all"),
            cluster(folder, DOMAIN, model=model, target="all"),
        )
    )
    for name in one.targets:  # answers are mixed by their errors, and those come from rounded rehearsals
        explained = one.explain(POINT, target=name), other.explain(POINT, target=name)
        assert np.linalg.norm(explained[1].values - explained[0].values) < 1e-3 * np.linalg.norm(explained[0].values)
