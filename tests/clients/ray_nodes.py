"""Questions to a Ray cluster of several nodes, which are lost on the way: run in a process of its own, with a folder to work in.

Prints one JSON object with what became of each part. With the address of an S3 server as a second argument the rows are there.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_AUTH_TOKEN", token_hex(32))  # before the import

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import ray
from ray.cluster_utils import Cluster

import dpexplain as dpx
from dpexplain.backends import distributed
from dpexplain.errors import RowsUnavailable
from dpexplain.noise.seeded import SeededNoise

ROWS, WIDTH = 4000, 5
DOMAIN, BUDGET = dpx.Domain.encoded(WIDTH), dpx.Budget(1, 1e-6)
POINT = np.full(WIDTH, 0.4)
MECHANISM = dpx.Basic(0.1, 1e-7, steps=20)
# to notice a loss
QUICK = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 1000,
    "health_check_failure_threshold": 3,
}
NODE = {"num_cpus": 1, "object_store_memory": 80 << 20}


def write_rows(folder: Path, server: str | None) -> tuple[pa.Table, str]:
    """Four files of two row groups each: (the table, where it is)."""
    X = np.random.default_rng(0).random((WIDTH, ROWS))
    table = pa.table({f"x{j}": column for j, column in enumerate(X)} | {"y": X[0] - X[1]})
    system, root = pafs.LocalFileSystem(), str(folder)
    if server:
        system, root = pafs.S3FileSystem(endpoint_override=server, scheme="http", allow_bucket_creation=True), "bucket/rows"
        system.create_dir("bucket")
    for i in range(4):
        part = table.slice(i * ROWS // 4, ROWS // 4)
        pq.write_table(part, f"{root}/{i}.parquet", filesystem=system, row_group_size=ROWS // 8)
    return table, f"s3://{root}/*.parquet?endpoint_override={server}&scheme=http" if server else root


@contextmanager
def cluster_of(nodes: int):
    """A head without workers, and nodes of one worker each."""
    head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": 80 << 20, "_system_config": QUICK}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        started = [cluster.add_node(**NODE) for _ in range(nodes)]
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        cluster.wait_for_nodes()
        yield cluster, started
    finally:
        ray.shutdown()
        cluster.shutdown()


def nodes_of(data: dpx.PrivateData) -> list[str]:
    """The node of each worker."""
    asked = [worker.__ray_call__.remote(lambda _: ray.get_runtime_context().get_node_id()) for worker in data._rows.workers]
    return ray.get(asked, timeout=120)


def ask_while_losing(explainer: dpx.Explainer, lose) -> dpx.Explanation:
    """Ask once; `lose` is called as soon as the question is paid for."""
    answers = []
    asking = threading.Thread(target=lambda: answers.append(explainer.explain(POINT, request_id="once")))
    asking.start()
    while explainer.spent.mu == 0:
        time.sleep(0.01)
    lose()
    asking.join(timeout=240)
    return answers[0]


def hold_up(data: dpx.PrivateData, node: str) -> None:
    """Stop the workers on a node, so that whatever is asked next stays unanswered until the node is lost."""
    for worker, place in zip(data._rows.workers, nodes_of(data), strict=True):
        if place == node:
            os.kill(ray.get(worker.__ray_call__.remote(lambda _: os.getpid())), signal.SIGSTOP)


def main(folder: Path, server: str | None) -> dict[str, object]:
    table, place = write_rows(folder, server)
    memory = dpx.PrivateData(table, DOMAIN, labels=table["y"].to_numpy())
    expected = dpx.Explainer(memory, BUDGET, MECHANISM, noise=SeededNoise(9)).explain(POINT)
    found: dict[str, object] = {}
    with cluster_of(3) as (cluster, started):
        data = dpx.PrivateData.cluster(place, DOMAIN, label="y", workers=3)
        before = nodes_of(data)
        found["nodes"] = len(set(before))
        ledger = f"sqlite:///{folder / 'nodes.ledger'}"
        explainer = dpx.Explainer(data, BUDGET, MECHANISM, ledger=ledger, noise=SeededNoise(9))
        lost = next(node for node in started if node.node_id in before)
        hold_up(data, lost.node_id)
        answer = ask_while_losing(explainer, lambda: cluster.remove_node(lost, allow_graceful=False))
        found["largest difference"] = float(np.abs(answer.values - expected.values).max())
        found["times the price of one answer"] = explainer.spent.mu / expected.guarantee.mu
        found["answers in the ledger"] = len(list(explainer._ledger.settled()))
        found["on the lost node"] = nodes_of(data).count(lost.node_id)
        distributed.PATIENCE = 8.0
        for node in started:
            if node is not lost:
                cluster.remove_node(node, allow_graceful=False)
        start = time.monotonic()
        try:
            explainer.explain(POINT, request_id="nobody")
        except RowsUnavailable as error:
            found["without nodes"] = str(error)
        found["seconds to refuse"] = time.monotonic() - start
        found["then answers"] = len(list(explainer._ledger.settled()))
        found["then the price"] = explainer.spent.mu**2 / expected.guarantee.mu**2
        distributed.PATIENCE = 240.0
        cluster.add_node(**NODE)
        again = explainer.explain(POINT, request_id="later")
        found["later"] = bool(np.isfinite(again.values).all())
        data.close()
    return found


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)))
