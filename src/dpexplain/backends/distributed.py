"""Private rows spread over a Ray cluster: each worker holds its row groups in memory and answers for them; the driver adds.

A worker that dies is started again by Ray, reads its row groups again, and answers the question it had not answered. What it has read is
compared with what was registered by a digest of every encoded row and label. Only the driver draws noise, once, after the sum,
and the ledger is charged before the first worker is asked: a worker that answers twice releases and costs nothing more.
"""

from __future__ import annotations

import logging
import os
import pickle
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Any
from weakref import finalize

import numpy as np

from dpexplain.backends.encoded import Chunk, EncodedFiles
from dpexplain.backends.parquet import RowGroup, changed_files_error
from dpexplain.backends.summed import ADDING, SummedRows, answers, total
from dpexplain.errors import DataError, DpexplainError, ParameterError, RowsUnavailable

LOCAL_WORKERS = 2
STORE = 1 << 28  # bytes of shared memory for a Ray that is started here: questions and sums, never rows
INLINE = 50_000  # bytes that Ray sends with a call instead of storing them
CPU_SHARE = 0.1  # asked for by each worker: without any, Ray does not spread them; with a whole one, no node could replace the workers of a lost one
PATIENCE = 900.0  # seconds that workers get to answer, restarts included

WorkerReply = tuple[str, Any]  # ("done", answer), ("changed", "") or ("failed", a text without rows)


class Worker:
    """Holds some row groups in another process. A failure there is reported by its kind alone, because a message or a trace might quote a row."""

    def __init__(self, source: EncodedFiles, groups: Sequence[RowGroup]) -> None:
        digest = sha256()
        try:
            parts = list(source.parts(_digest(source.chunks(groups), digest)))
            self._parts = parts or [source.part([])]  # where no row of a share is used
            self._loaded: WorkerReply = ("done", digest.hexdigest())
        except Exception as error:
            self._loaded = _failure(error)

    def content_digest(self) -> WorkerReply:
        """A digest of everything this worker holds."""
        return self._loaded

    def ask(self, question: str, query: bytes, expected: str) -> WorkerReply:
        """The sum of its parts' answers, if it holds what it held at registration.

        The query comes pickled: arrays that Ray itself unpacks are read-only, and kernels would be compiled again for those.
        """
        if self._loaded[0] != "done" or self._loaded[1] != expected:
            return "changed", ""
        try:
            asked = pickle.loads(query)  # from the driver, which holds the rows' registration
            return "done", total(answers(self._parts, question, asked))
        except Exception as error:
            return _failure(error)


class _Actor(Worker):
    """A worker that fetches from the driver what is too large to be sent."""

    def __init__(self, source: EncodedFiles | list[Any], groups: Sequence[RowGroup]) -> None:
        import ray

        super().__init__(ray.get(source[0]) if isinstance(source, list) else source, groups)


def _digest(chunks: Iterable[Chunk], digest: Any) -> Iterator[Chunk]:
    for X, y in chunks:
        for array in (*_arrays(X), y):
            digest.update(array)
        yield X, y


def _arrays(rows: Any) -> tuple[Any, ...]:
    return (rows,) if isinstance(rows, np.ndarray) else (rows.indptr, rows.indices, rows.data)


def _failure(error: Exception) -> WorkerReply:
    """What may be reported of an error: the message of dpexplain's own errors, which quote no row, and the type name of any other."""
    return "failed", str(error) if isinstance(
        error, DpexplainError
    ) else f"a worker raised {type(error).__name__}. Check that workers can read the files and have the same packages"


class ClusterRows(SummedRows):
    """Implements the `Rows` port: one call to each worker for each question, answers added in the order of the rows."""

    def __init__(self, source: EncodedFiles, *, address: str | None = None, workers: int | None = None) -> None:
        self._width, self._part_error = source.domain.width, source.summation_error
        self._ray, started = connect(address, workers)
        count = workers or max(int(self._ray.cluster_resources().get("CPU", 1)), 1)
        self._source = _portable(self._ray, source)  # held here for as long as a worker may be started again
        self.workers = _start(self._ray, self._source, shares(source.files.groups, count))
        self._close = finalize(self, _stop, self._ray, self.workers, started)
        replies = self._gather([worker.content_digest.remote() for worker in self.workers])
        for kind, what in replies:
            if kind != "done":
                self.close()
                raise DataError(str(what))
        self._digests = [str(digest) for _, digest in replies]

    @property
    def width(self) -> int:
        return self._width

    @property
    def summation_error(self) -> float:
        """A part's own error, that of adding parts in a worker, and that of adding workers."""
        return self._part_error + 2 * ADDING

    def close(self) -> None:
        """Stop the workers, and Ray where it was started here."""
        self._close()

    def _ask(self, question: str, query: Any) -> Any:
        if not self._close.alive:
            raise RowsUnavailable("these data were closed. Register them again")
        shared = self._ray.put(self._ray.cloudpickle.dumps(query))
        pairs = zip(self.workers, self._digests, strict=True)
        return total(_answer(reply) for reply in self._gather([w.ask.remote(question, shared, digest) for w, digest in pairs]))

    def _gather(self, promises: list[Any]) -> list[WorkerReply]:
        try:
            return list(self._ray.get(promises, timeout=PATIENCE))
        except self._ray.exceptions.RayError:
            raise RowsUnavailable(
                "the cluster did not answer. Check that its workers have enough memory and can read the files"
            ) from None


def _answer(reply: WorkerReply) -> Any:
    kind, what = reply
    if kind == "done":
        return what
    raise (
        changed_files_error()
        if kind == "changed"
        else RowsUnavailable("a worker of the cluster could not answer. Register the rows again")
    )


def shares(groups: Sequence[RowGroup], workers: int) -> list[list[RowGroup]]:
    """Neighbouring row groups for each worker, about equally many rows; fewer shares where there are fewer row groups."""
    rows = sum(group.rows for group in groups)
    found: dict[int, list[RowGroup]] = {}
    for group in groups:
        middle = group.start + group.rows / 2
        found.setdefault(min(int(middle * workers / max(rows, 1)), workers - 1), []).append(group)
    return list(found.values())


def connect(address: str | None, workers: int | None) -> tuple[Any, bool]:
    """Connect to Ray: (ray, whether it was started here). A session that is open already is used, and left open."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise ParameterError('a cluster needs Ray, which is not installed. Run: pip install "dpexplain[ray]"') from None
    if ray.is_initialized():
        return ray, False
    if address is not None:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        return ray, True
    ray.init(
        address="local",
        num_cpus=workers or LOCAL_WORKERS,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        object_store_memory=STORE,
        _node_ip_address="127.0.0.1",
    )
    return ray, True


def _portable(ray: Any, source: EncodedFiles) -> Any:
    """What workers are started with: `source` itself, or where it is large a list with a reference to it.

    Ray would store a large argument by itself, and drop it before a restart needs it (ray-project/ray#53727).
    """
    return source if len(ray.cloudpickle.dumps(source)) < INLINE else [ray.put(source)]


def _start(ray: Any, source: Any, parts: list[list[RowGroup]]) -> list[Any]:
    """Actors over all nodes, which Ray starts again, and calls again, as often as they or their nodes die."""
    actor = ray.remote(_Actor).options(num_cpus=CPU_SHARE, max_restarts=-1, max_task_retries=-1, scheduling_strategy="SPREAD")
    return [actor.remote(source, part) for part in parts]


def _stop(ray: Any, workers: list[Any], started: bool) -> None:
    if not ray.is_initialized():
        return
    for worker in workers:
        ray.kill(worker)
    if started:
        ray.shutdown()
