"""A Ray cluster of several nodes: rows on object storage, a node lost in mid-query, all nodes lost; and nothing of it outlives the tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from contextlib import ExitStack
from pathlib import Path

import pytest

from process_support import MARK, ROOT, S3_SERVER, end_with_this_process, marked_processes, ray_start, s3_server

SCRIPT = ROOT / "tests/clients/ray_nodes.py"
KEYS = {"AWS_ACCESS_KEY_ID": "tests", "AWS_SECRET_ACCESS_KEY": "tests", "AWS_DEFAULT_REGION": "us-east-1"}


def story(folder):
    """What became of the questions in `tests/clients/ray_nodes.py`; the rows are local files where there is no S3 server."""
    end_with_this_process()
    with ExitStack() as stack:
        stack.enter_context(ray_start())
        server = []
        if S3_SERVER.exists():
            server = [stack.enter_context(s3_server())[0]]
        else:
            warnings.warn("a cluster with rows on object storage is NOT tested: make clients", stacklevel=2)
        words = [sys.executable, str(SCRIPT), str(folder), *server]
        done = subprocess.run(words, capture_output=True, text=True, timeout=500, check=False, env=os.environ | KEYS)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("default:a cluster with rows")
def test_a_lost_node_changes_neither_answer_nor_cost_and_without_nodes_a_question_is_refused_in_time(tmp_path):
    pytest.importorskip("ray", reason='a cluster of several nodes is NOT tested: pip install "dpexplain[ray]"')
    found = story(tmp_path)
    assert found["nodes"] == 3  # workers are spread
    assert found["largest difference"] < 1e-9
    assert found["times the price of one answer"] == pytest.approx(1, rel=1e-6)
    assert found["answers in the ledger"] == 1
    assert found["on the lost node"] == 0
    assert found["without nodes"].startswith("the cluster did not answer")
    assert found["seconds to refuse"] < 60
    assert found["then answers"] == 1  # nothing was answered
    assert found["then the price"] == pytest.approx(2, rel=1e-6)  # μ² of two: paid before the rows were asked
    assert found["later"]  # a node joins, and answers


ORPHAN = """
import subprocess, sys, time
from process_support import end_with_this_process
end_with_this_process()
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
import os
print(os.environ["DPEXPLAIN_TEST_RUN"], flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found by /proc: leftovers are NOT ended here")
def test_what_a_killed_test_run_started_is_ended():
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    environment.pop(MARK, None)
    with subprocess.Popen([sys.executable, "-c", ORPHAN], stdout=subprocess.PIPE, text=True, env=environment) as run:
        try:
            mark, deadline = run.stdout.readline().strip(), time.monotonic() + 60
            while not marked_processes(mark):  # the system may show what a process inherited a little later
                assert time.monotonic() < deadline, "what the test run started is not marked"
                time.sleep(0.1)
        finally:
            run.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 60
    while marked_processes(mark):
        assert time.monotonic() < deadline, "a process outlived the test run that started it"
        time.sleep(0.1)
