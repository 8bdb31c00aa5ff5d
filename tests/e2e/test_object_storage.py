"""Rows on object storage: an S3 server that nobody here wrote, through pyarrow's file system."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import dpexplain as dpx
from dpexplain.errors import DataError, RowsUnavailable
from dpexplain.noise.seeded import SeededNoise
from process_support import s3_server

pytestmark = pytest.mark.slow
ROWS, WIDTH = 2000, 3
DOMAIN, BUDGET, POINT = dpx.Domain.encoded(WIDTH), dpx.Budget(1, 1e-6), np.full(WIDTH, 0.4)
SECRET = "a-key-that-appears-nowhere"


@pytest.fixture(scope="module", autouse=True)
def credentials():
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("ACCESS_KEY_ID", "tests"), ("SECRET_ACCESS_KEY", SECRET), ("DEFAULT_REGION", "us-east-1")):
            patch.setenv(f"AWS_{name}", value)
        yield


@pytest.fixture(scope="module")
def server():
    with s3_server() as (address, process):
        yield address, process


@pytest.fixture(scope="module")
def table():
    X = np.random.default_rng(0).random((WIDTH, ROWS))
    return pa.table({f"x{j}": column for j, column in enumerate(X)} | {"y": X[0] - X[1]})


@pytest.fixture
def place(server, table, request):
    """Addresses of a bucket with the rows in two objects: by a pattern, by the folder, and through what the environment names."""
    system = pafs.S3FileSystem(endpoint_override=server[0], scheme="http", allow_bucket_creation=True)
    bucket = f"rows-{abs(hash(request.node.name))}"
    system.create_dir(bucket)
    for i in range(2):
        pq.write_table(table.slice(i * ROWS // 2, ROWS // 2), f"{bucket}/rows/{i}.parquet", filesystem=system, row_group_size=300)
    return system, bucket


def test_a_release_is_that_of_the_rows_in_memory(server, table, place, monkeypatch):
    _, bucket = place
    memory = dpx.PrivateData(table, DOMAIN, labels=table["y"].to_numpy())
    expected = dpx.release(memory, BUDGET, noise=SeededNoise(3)).explain(POINT).values
    options = f"?endpoint_override={server[0]}&scheme=http"
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{server[0]}")
    for address in (f"s3://{bucket}/rows/*.parquet{options}", f"s3://{bucket}/rows{options}", f"s3://{bucket}/rows/*.parquet"):
        data = dpx.PrivateData.scan(address, DOMAIN, label="y")
        assert data.size == ROWS
    released = dpx.release(data, BUDGET, noise=SeededNoise(3)).explain(POINT).values
    assert released == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_replaced_objects_are_refused(server, table, place):
    system, bucket = place
    data = dpx.PrivateData.scan(f"s3://{bucket}/rows?endpoint_override={server[0]}&scheme=http", DOMAIN, label="y")
    pq.write_table(table.slice(5, ROWS // 2), f"{bucket}/rows/1.parquet", filesystem=system, row_group_size=300)
    with pytest.raises(RowsUnavailable, match="changed since they were registered"):
        dpx.release(data, BUDGET)


def test_a_bucket_that_is_not_there_is_named_and_the_key_is_not(server):
    with pytest.raises(DataError, match="s3://nowhere") as error:
        dpx.PrivateData.scan(f"s3://nowhere/rows?endpoint_override={server[0]}&scheme=http", DOMAIN, label="y")
    assert SECRET not in str(error.value)


def test_a_server_that_went_away_is_noticed_before_anything_is_paid(table, tmp_path):
    with s3_server() as (address, process):
        system = pafs.S3FileSystem(endpoint_override=address, scheme="http", allow_bucket_creation=True)
        system.create_dir("rows")
        pq.write_table(table, "rows/all.parquet", filesystem=system)
        data = dpx.PrivateData.scan(f"s3://rows/all.parquet?endpoint_override={address}&scheme=http", DOMAIN, label="y")
        explainer = dpx.Explainer(data, BUDGET, dpx.Basic(0.1, 1e-7), ledger=f"sqlite:///{tmp_path / 'a.ledger'}")
        one = explainer.explain(POINT).guarantee.mu
        process.kill()
        process.wait()
        with pytest.raises(RowsUnavailable, match="cannot be read now"):
            explainer.explain(POINT)
        assert explainer.spent.mu == pytest.approx(one)
        assert len(list(explainer._ledger.settled())) == 1
