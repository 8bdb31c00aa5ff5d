"""A session in SQL that SQLite and PostgreSQL both speak; a backend supplies `run` and how a row is locked."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from dpexplain.errors import LedgerCorrupt
from dpexplain.ledger.chain import RESTORE, Row
from dpexplain.ledger.schema import Run
from dpexplain.ledger.store import Lookup, Mark

COLUMNS = "sequence, kind, request, position, document, hash"
SELECT = f"SELECT {COLUMNS} FROM dpexplain_entries WHERE dataset = ?"
MARK = "SELECT sequence, hash FROM dpexplain_accounts WHERE dataset = ?"
NEWEST = f"{SELECT} AND request = ? ORDER BY sequence DESC LIMIT 2"
INSERT = f"INSERT INTO dpexplain_entries (dataset, {COLUMNS}) VALUES "
VALUES = "(?, ?, ?, ?, ?, ?, ?)"
MOST_ROWS = 32  # of one INSERT
MOVE = "UPDATE dpexplain_accounts SET sequence = ?, hash = ? WHERE dataset = ?"
OPEN = "INSERT INTO dpexplain_accounts (sequence, hash, dataset) VALUES (?, ?, ?)"
TYPES: tuple[Any, ...] = (int, str, str, (int, type(None)), str, str)


class SqlSession:
    """One transaction. `lock` is what makes a SELECT keep its row until the end of a write transaction.

    Rows that are appended wait until `flush`, and are read from here until then: those of several callers are written by one statement,
    and `undo` forgets those of one caller without asking the database.
    """

    def __init__(self, run: Run, lock: str = "", expected: Sequence[Lookup] = ()) -> None:
        self._run, self._mark, self._expected = run, MARK + lock, expected
        self._new: list[tuple[str, Row]] = []

    def mark(self, dataset: str) -> Mark | None:
        for name, row in reversed(self._new) if self._new else ():
            if name == dataset:
                return row.sequence, row.hash
        return self._stored_mark(dataset)

    def row(self, dataset: str, sequence: int) -> Row | None:
        new = [row for name, row in self._new if (name, row.sequence) == (dataset, sequence)]
        found = new or self._rows(f"{SELECT} AND sequence = ?", (dataset, sequence))
        return found[0] if found else None

    def newest(self, dataset: str, request: str) -> list[Row]:
        stored = self._stored_newest(dataset, request)
        if self._new:
            stored = [*(row for name, row in reversed(self._new) if (name, row.request) == (dataset, request)), *stored]
        return stored[:2]

    def append(self, dataset: str, row: Row) -> None:
        self._new.append((dataset, row))

    @property
    def size(self) -> int:
        """How many rows wait to be written."""
        return len(self._new)

    def undo(self, size: int) -> None:
        """Forget the rows that were appended since there were `size` of them."""
        del self._new[size:]

    def flush(self) -> None:
        """Write what was appended, and move the marks to it."""
        for dataset in [dataset for dataset, row in self._new if row.sequence == 1]:
            self._run(OPEN, (0, "", dataset))
        for start in range(0, len(self._new), MOST_ROWS):
            self._insert(self._new[start : start + MOST_ROWS])
        self._move(dict(self._new))
        self._new.clear()

    def _move(self, last: dict[str, Row]) -> None:
        """Move the mark of each data set to its last row."""
        for dataset, row in last.items():
            self._run(MOVE, (row.sequence, row.hash, dataset))

    def _insert(self, rows: Sequence[tuple[str, Row]]) -> None:
        self._run(insertion(len(rows)), self._values(rows))

    @staticmethod
    def _values(rows: Sequence[tuple[str, Row]]) -> tuple[Any, ...]:
        return tuple([value for dataset, row in rows for value in (dataset, *row)])

    def _stored_mark(self, dataset: str) -> Mark | None:
        found = self._run(self._mark, (dataset,))
        return as_mark(dataset, found[0]) if found else None

    def _stored_newest(self, dataset: str, request: str) -> list[Row]:
        return self._rows(NEWEST, (dataset, request))

    def rows(self, dataset: str, after: int, limit: int) -> list[Row]:
        return self._rows(f"{SELECT} AND sequence > ? ORDER BY sequence LIMIT ?", (dataset, after, limit))

    def answers(self, dataset: str, after: int, limit: int) -> list[Row]:
        return self._rows(f"{SELECT} AND position > ? ORDER BY position LIMIT ?", (dataset, after, limit))

    def datasets(self) -> list[str]:
        """The data sets of both tables, so that an account whose row was deleted is noticed."""
        found = self._run("SELECT dataset FROM dpexplain_accounts UNION SELECT dataset FROM dpexplain_entries", ())
        return sorted(str(name) for (name,) in found)

    def _rows(self, sql: str, values: tuple[Any, ...]) -> list[Row]:
        return [as_row(found) for found in self._run(sql, values)]


class JoinedSession(SqlSession):
    """A session that reads an account's mark and the newest rows of the expected requests by one statement."""

    def __init__(self, run: Run, expected: Sequence[Lookup] = ()) -> None:
        super().__init__(run, expected=expected)
        self._read: dict[Lookup, list[Row]] = {}

    def _stored_mark(self, dataset: str) -> Mark | None:
        lookups = [lookup for lookup in self._expected if lookup[0] == dataset]
        if not 0 < len(lookups) <= MOST_ROWS:
            return super()._stored_mark(dataset)
        found = self._run(mark_query(len(lookups)), (*[request for _, request in lookups], dataset))
        self._read = {lookup: [] for lookup in lookups}
        rows = [as_row(one[2:]) for one in found if one[2] is not None]
        if len(rows) > 1:
            rows.sort(reverse=True)  # a row's sequence comes first
        for row in rows:
            self._read[dataset, row.request].append(row)
        return as_mark(dataset, found[0][:2]) if found else None

    def _stored_newest(self, dataset: str, request: str) -> list[Row]:
        read = self._read.get((dataset, request))
        return super()._stored_newest(dataset, request) if read is None else read


@cache
def insertion(count: int) -> str:
    """The statement that writes so many rows."""
    return INSERT + ", ".join([VALUES] * count)


@cache
def mark_query(count: int) -> str:
    """The query for an account's mark beside all rows of so many requests. To sort them, SQLite would read the whole account."""
    columns = ", ".join(f"e.{name}" for name in COLUMNS.split(", "))
    return (
        f"SELECT a.sequence, a.hash, {columns} FROM dpexplain_accounts a LEFT JOIN dpexplain_entries e "
        f"ON e.dataset = a.dataset AND e.request IN ({', '.join('?' * count)}) WHERE a.dataset = ?"
    )


def as_mark(dataset: str, found: tuple[Any, ...]) -> Mark:
    sequence, digest = found
    if not (isinstance(sequence, int) and isinstance(digest, str)):
        raise LedgerCorrupt(f"the account {dataset!r} is damaged. {RESTORE}")
    return sequence, digest


def as_row(found: tuple[Any, ...]) -> Row:
    if not all(map(isinstance, found, TYPES)):
        raise LedgerCorrupt(
            f"ledger entry {found[0]!r} is damaged: a column has another type than it was written with. {RESTORE}"
        )
    return Row(*found)
