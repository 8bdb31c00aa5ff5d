"""One pool of threads for all compiled kernels of a process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


def in_threads(work: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Result]:
    """Run `work` on each task in a pool of threads and yield the results in the tasks' order, each as soon as it is ready.

    `work` must not call this itself: it would deadlock.
    """
    return map(work, tasks) if len(tasks) < 2 else _pool().map(work, tasks)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="dpexplain-rows")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork; the child starts its own
