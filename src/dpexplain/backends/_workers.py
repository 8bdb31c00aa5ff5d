"""One pool of threads for all compiled kernels of a process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

THREADS = "DPEXPLAIN_THREADS"  # names how many threads read rows; without it there is one for each core
Task = TypeVar("Task")
Result = TypeVar("Result")


def in_threads(work: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Result]:
    """Run `work` on each task in a pool of threads and yield the results in the tasks' order, each as soon as it is ready.

    `work` must not call this itself: it would deadlock.
    """
    pool = _pool() if len(tasks) > 1 else None
    return map(work, tasks) if pool is None else pool.map(work, tasks)


@cache
def _pool() -> ThreadPoolExecutor | None:
    """None where there is one thread: that of the caller."""
    asked = os.environ.get(THREADS, "")
    count = int(asked) if asked.isdecimal() else os.cpu_count() or 1
    return ThreadPoolExecutor(count, thread_name_prefix="dpexplain-rows") if count > 1 else None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork; the child starts its own
