"""A session in SQL that SQLite and PostgreSQL both speak; a backend supplies `run` and how a row is locked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpexplain.errors import LedgerCorrupt
from dpexplain.ledger.chain import RESTORE, Row
from dpexplain.ledger.schema import Run
from dpexplain.ledger.store import Mark

COLUMNS = "sequence, kind, request, position, document, hash"
SELECT = f"SELECT {COLUMNS} FROM dpexplain_entries WHERE dataset = ?"
MARK = "SELECT sequence, hash FROM dpexplain_accounts WHERE dataset = ?"
NEWEST = f"{SELECT} AND request = ? ORDER BY sequence DESC LIMIT 2"
INSERT = f"INSERT INTO dpexplain_entries (dataset, {COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"
TYPES: tuple[Any, ...] = (int, str, str, (int, type(None)), str, str)


class SqlSession:
    """One transaction. `lock` is what makes a SELECT keep its row until the end of a write transaction."""

    def __init__(self, run: Run, lock: str = "") -> None:
        self._run, self._mark = run, MARK + lock

    def mark(self, dataset: str, requests: Sequence[str] = ()) -> Mark | None:
        del requests
        found = self._run(self._mark, (dataset,))
        if not found:
            return None
        sequence, digest = found[0]
        if not (isinstance(sequence, int) and isinstance(digest, str)):
            raise LedgerCorrupt(f"the account {dataset!r} is damaged. {RESTORE}")
        return sequence, digest

    def row(self, dataset: str, sequence: int) -> Row | None:
        found = self._rows(f"{SELECT} AND sequence = ?", (dataset, sequence))
        return found[0] if found else None

    def newest(self, dataset: str, request: str) -> list[Row]:
        return self._rows(NEWEST, (dataset, request))

    def append(self, dataset: str, row: Row) -> None:
        self._run(INSERT, (dataset, *row.values))
        if row.sequence == 1:
            self._run(
                "INSERT INTO dpexplain_accounts (sequence, hash, dataset) VALUES (?, ?, ?)", (row.sequence, row.hash, dataset)
            )
        else:
            self._run("UPDATE dpexplain_accounts SET sequence = ?, hash = ? WHERE dataset = ?", (row.sequence, row.hash, dataset))

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


def as_row(found: tuple[Any, ...]) -> Row:
    if not all(isinstance(value, kind) for value, kind in zip(found, TYPES, strict=True)):
        raise LedgerCorrupt(
            f"ledger entry {found[0]!r} is damaged: a column has another type than it was written with. {RESTORE}"
        )
    return Row(*found)
