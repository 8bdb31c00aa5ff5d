"""Until when a caller waits for other writers: not longer than its own time, counted from when it asked, whoever was before it.

A store waits at most its timeout for each transaction. A question that stood in line before has used up some of its time already, so what answers it states
until when it may wait; threads inherit it as they inherit other context variables.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf

LEAST = 0.5  # seconds for any transaction: others commit meanwhile, so a long answer does not fail at the first of them
_latest: ContextVar[float] = ContextVar("latest", default=inf)


@contextmanager
def waiting_until(deadline: float) -> Iterator[None]:
    """Let transactions inside the block wait until this time at most, by the monotonic clock; `inf` for their store's own timeout."""
    token = _latest.set(deadline)
    try:
        yield
    finally:
        _latest.reset(token)


def deadline_after(timeout: float) -> float:
    """Until when a transaction that begins now may wait for others."""
    now = time.monotonic()
    return min(now + timeout, max(_latest.get(), now + LEAST))
