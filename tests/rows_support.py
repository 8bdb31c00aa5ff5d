"""Every implementation of the `Rows` port, made from the same matrix: what the contract suites run on."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from weakref import finalize

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

import dpexplain as dpx
from dpexplain.backends.dense import DenseRows
from dpexplain.backends.distributed import ClusterRows, connect
from dpexplain.backends.sparse import SparseRows
from dpexplain.backends.streaming import StreamedRows
from dpexplain.core.layout import Layout
from dpexplain.registration.options import RegistrationOptions
from dpexplain.registration.scanning import ColumnLabels, read_registered
from process_support import end_with_this_process, ray_start


def dense(X, y):
    return DenseRows([X[: len(X) // 3], X[len(X) // 3 :]], y, X.shape[1])


def sparse_rows(X, y):
    """For binary rows only."""
    return SparseRows([sparse.csr_array(X[: len(X) // 3]), sparse.csr_array(X[len(X) // 3 :])], y, X.shape[1])


def streamed_rows(X, y):
    """Two files, row groups and parts that end in different places."""
    return from_files(X, y, StreamedRows)


def cluster(X, y):
    """Two workers in processes of their own, kept for the next test of the same rows."""
    ray_session()
    key = X.tobytes() + y.tobytes()
    if key not in _there:
        _there.clear()
        _there[key] = from_files(X, y, ClusterRows)
    return _there[key]


_there = {}


BACKENDS = {"dense": dense, "streamed": streamed_rows, "cluster": cluster, "sparse": sparse_rows}
LOCAL = ["dense", "streamed"]
ALL = [*LOCAL, pytest.param("cluster", marks=pytest.mark.slow)]


def cases(every, some):
    """(backend, one of `every`) for local ones; (cluster, one of `some`), because workers take a second to start."""
    far = [pytest.param("cluster", one, marks=pytest.mark.slow) for one in some]
    return [*((name, one) for name in LOCAL for one in every), *far]


def coded_columns(m, codes, numbers):
    """A layout of codes of these sizes and then numbers; rows with random codes, some unknown, and no numbers yet; the generator."""
    rng = np.random.default_rng(m)
    stops = np.cumsum([*codes, *[1] * numbers]).tolist()
    starts = [0, *stops[:-1]]
    layout = Layout(tuple(starts), tuple(stops), (False,) * len(codes) + (True,) * numbers)
    X = np.zeros((m, stops[-1]))
    for a, size in enumerate(codes):
        code = rng.integers(0, size + 1, m)
        X[np.flatnonzero(code < size), starts[a] + code[code < size]] = 1
    return layout, X, rng


def from_files(X, y, kind):
    folder = tempfile.TemporaryDirectory(prefix="dpx")
    table = pa.table({f"x{i}": column for i, column in enumerate(X.T)} | {"y": y})
    half = len(X) // 2
    for name, part in (("a", table.slice(0, half)), ("b", table.slice(half))):
        pq.write_table(part, Path(folder.name) / f"{name}.parquet", row_group_size=max(len(X) // 7, 1))
    source = read_registered(folder.name, dpx.Domain.encoded(X.shape[1]), ColumnLabels("y"), RegistrationOptions())
    rows = kind(replace(source, most_rows=256))
    finalize(rows, folder.cleanup)
    return rows


def ray_session():
    """One Ray for all tests of a process, started as the library starts it; skipped, with the reason, where it cannot run."""
    ray, trouble = _start_ray()
    if trouble:
        pytest.skip(f"Ray cannot run here, the distributed backend is NOT tested: {trouble}")
    return ray


@lru_cache(maxsize=1)
def _start_ray():
    end_with_this_process()
    try:
        with ray_start():
            return connect(None, 2)[0], None
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"
