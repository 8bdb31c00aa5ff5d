"""A connection of one process behind one lock, and none carried across a fork.

A forked child that used, or merely closed, its parent's connection could release the parent's locks (SQLite) or end its session
(PostgreSQL). So connections are closed just before a fork and opened again when one is needed next.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import RLock
from typing import Any, Generic, TypeVar
from weakref import WeakSet

C = TypeVar("C")
_all: WeakSet[Connection[Any]] = WeakSet()
_held: list[Connection[Any]] = []
_forking = RLock()


class Connection(Generic[C]):
    """Opened when first needed; `use` hands it to one thread at a time.

    The function that opens it is passed to `use`, so that the connection holds no reference to its owner.
    """

    def __init__(self, close: Callable[[C], None]) -> None:
        self._close = close
        self._open: C | None = None
        self.lock = RLock()
        _all.add(self)

    @property
    def is_open(self) -> bool:
        return self._open is not None

    @contextmanager
    def use(self, connect: Callable[[], C]) -> Iterator[C]:
        with self.lock:
            yield self.get(connect)

    def get(self, connect: Callable[[], C]) -> C:
        """The connection itself, for a thread that holds the lock."""
        if self._open is None:
            self._open = connect()
        return self._open

    def drop(self) -> None:
        """Close it; the next use opens another."""
        with self.lock:
            opened, self._open = self._open, None
            if opened is not None:
                self._close(opened)

    def drop_if_unused(self) -> None:
        """Close it unless another thread is using it."""
        if self.lock.acquire(blocking=False):
            try:
                self.drop()
            finally:
                self.lock.release()

    def __del__(self) -> None:
        with suppress(Exception):
            self.drop()


def _before_fork() -> None:
    _forking.acquire()
    _held[:] = list(_all)
    for connection in _held:
        connection.lock.acquire()
        connection.drop()


def _after_fork_in_parent() -> None:
    while _held:
        _held.pop().lock.release()
    _forking.release()


def _after_fork_in_child() -> None:
    global _forking
    _forking = RLock()
    while _held:
        _held.pop().lock = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
