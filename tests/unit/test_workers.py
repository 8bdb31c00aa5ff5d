"""The pool of threads that kernels share."""

import os
import subprocess
import sys
from threading import Event

import pytest

from dpexplain.backends._workers import THREADS, in_threads

FORKED = """
import os, warnings
from dpexplain.backends._workers import in_threads

warnings.simplefilter("ignore")  # about forking with threads: that is what is tried
assert list(in_threads(str, [1, 2])) == ["1", "2"]
child = os.fork()
if child == 0:
    os._exit(0 if list(in_threads(str, [3, 4])) == ["3", "4"] else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


NAMES = """
from threading import Barrier, current_thread
from dpexplain.backends._workers import THREADS, in_threads
import os

together = Barrier(int(os.environ[THREADS]))

def work(_):
    together.wait(60)
    return current_thread().name

print(*in_threads(work, [1, 2]))
"""


def test_results_come_in_the_order_of_the_tasks():
    first_may_end = Event()

    def work(task):
        if task == 0:
            first_may_end.wait(30)
        else:
            first_may_end.set()
        return task

    assert list(in_threads(str, [])) == []
    assert list(in_threads(work, [1])) == [1]
    assert list(in_threads(work, [1, 0, 2])) == [1, 0, 2]


def test_what_a_task_raises_reaches_the_caller():
    with pytest.raises(ZeroDivisionError):
        list(in_threads(lambda task: 1 // task, [1, 0]))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_starts_threads_of_its_own():
    subprocess.run([sys.executable, "-c", FORKED], check=True, timeout=120)


@pytest.mark.parametrize(("asked", "threads"), [("1", {"MainThread"}), ("2", {"dpexplain-rows_0", "dpexplain-rows_1"})])
def test_the_number_of_threads_can_be_set(asked, threads):
    """With one, the caller does the work itself."""
    done = subprocess.run(
        [sys.executable, "-c", NAMES], env=os.environ | {THREADS: asked}, check=True, timeout=120, capture_output=True, text=True
    )
    assert set(done.stdout.split()) == threads
