"""Hides the warnings of a model that is asked about private rows: their text may quote a row, and it would go to a log."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_lock = Lock()
_hiding: list[
    warnings.catch_warnings[None]
] = []  # of the first of those who hide now; Python has one list of filters for all threads
_users = 0


@contextmanager
def hide_warnings() -> Iterator[None]:
    """No warning is shown by any thread until the last of those who hide has ended."""
    global _users
    with _lock:
        _users += 1
        if _users == 1:
            _hiding.append(warnings.catch_warnings())
            _hiding[0].__enter__()
            warnings.simplefilter("ignore")
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                _hiding.pop().__exit__(None, None, None)
