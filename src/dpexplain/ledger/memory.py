"""A ledger in the memory of one process, for notebooks and tests. Nothing survives a restart."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import count
from threading import RLock
from typing import TypeVar

from dpexplain.errors import LedgerUnavailable
from dpexplain.ledger.book import Book
from dpexplain.ledger.chain import Row
from dpexplain.ledger.port import Account
from dpexplain.ledger.store import Lookup, Mark

T = TypeVar("T")
_numbers = count(1)


class MemorySession:
    """Lists and dictionaries; what a failed transaction appended is taken back by the store."""

    def __init__(self) -> None:
        self.log: list[tuple[str, Row]] = []
        self._rows: dict[str, list[Row]] = {}
        self._answers: dict[str, list[Row]] = {}
        self._requests: dict[tuple[str, str], list[Row]] = {}

    def mark(self, dataset: str) -> Mark | None:
        rows = self._rows.get(dataset)
        return (rows[-1].sequence, rows[-1].hash) if rows else None

    def row(self, dataset: str, sequence: int) -> Row | None:
        rows = self._rows.get(dataset, [])
        return rows[sequence - 1] if 0 < sequence <= len(rows) else None

    def newest(self, dataset: str, request: str) -> list[Row]:
        return self._requests.get((dataset, request), [])[:-3:-1]

    def append(self, dataset: str, row: Row) -> None:
        for rows in self._homes(dataset, row):
            rows.append(row)
        self.log.append((dataset, row))

    def undo(self, size: int) -> None:
        while len(self.log) > size:
            for rows in self._homes(*self.log.pop()):
                rows.pop()

    def rows(self, dataset: str, after: int, limit: int) -> list[Row]:
        return self._rows.get(dataset, [])[after : after + limit]

    def answers(self, dataset: str, after: int, limit: int) -> list[Row]:
        return self._answers.get(dataset, [])[after : after + limit]

    def datasets(self) -> list[str]:
        return sorted(dataset for dataset, rows in self._rows.items() if rows)

    def _homes(self, dataset: str, row: Row) -> list[list[Row]]:
        homes = [self._rows.setdefault(dataset, []), self._requests.setdefault((dataset, row.request), [])]
        return homes if row.position is None else [*homes, self._answers.setdefault(dataset, [])]


class MemoryStore:
    """One lock around one session."""

    def __init__(self) -> None:
        self._address = f"memory:{next(_numbers)}"
        self._lock = RLock()
        self._session = MemorySession()
        self._process = os.getpid()

    @property
    def address(self) -> str:
        return self._address

    def read(self, work: Callable[[MemorySession], T]) -> T:
        with self._lock:
            return work(self._session)

    def write(self, work: Callable[[MemorySession], T], expected: Sequence[Lookup] = ()) -> T:
        del expected
        self._require_same_process()
        with self._lock:
            size = len(self._session.log)
            try:
                return work(self._session)
            except BaseException:
                self._session.undo(size)
                raise

    def may_append(self) -> bool:
        return False

    def append_after(self, dataset: str, mark: Mark, row: Row, newest: int | None) -> bool:
        """Not offered: `write` waits for nothing."""
        return False

    def _require_same_process(self) -> None:
        """Raise LedgerUnavailable in a forked process: its copy would be a second budget for the same data."""
        if os.getpid() != self._process:
            raise LedgerUnavailable(
                "a ledger in memory cannot be spent from by a forked process. Use sqlite:///file.ledger instead"
            )

    def require_writable(self, dataset: str, seconds: float) -> None:
        """Memory can always be written."""

    def check(self) -> None:
        """Does nothing: there is no storage to check."""

    def close(self) -> None:
        """Does nothing: there is no connection."""


class MemoryLedger(Book):
    """The `Ledger` protocol in memory."""

    def __init__(self, account: Account) -> None:
        super().__init__(MemoryStore(), account)
        self.open()
