"""A session on SQLite's own tables, in which an entry's key is one integer: its account's number and its sequence.

Entries are stored in the order of their keys, so that they need no index of their own, and answers are found from their position, of which
there are at most half as many as entries. A commit writes the page of its entry, a page of the index of requests, and the page of the account.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import chain

from dpexplain.errors import LedgerCorrupt
from dpexplain.ledger.chain import RESTORE, Row
from dpexplain.ledger.schema import Run
from dpexplain.ledger.sql import COLUMNS, JoinedSession
from dpexplain.ledger.store import Lookup, Mark

BITS = 40  # of a key that are the sequence
RANGE = f"SELECT {COLUMNS} FROM dpexplain_entries WHERE id >= ? AND id < ?"
NUMBER = "SELECT number FROM dpexplain_accounts WHERE dataset = ?"
FIRST = "SELECT id, dataset FROM dpexplain_entries WHERE id >= ? ORDER BY id LIMIT 1"

MOVE_WITH_ENTRY = (  # a trigger of one connection, so that an entry and its account's mark are written by one statement
    "CREATE TEMP TRIGGER dpexplain_move AFTER INSERT ON main.dpexplain_entries BEGIN UPDATE dpexplain_accounts "
    f"SET sequence = new.sequence, hash = new.hash WHERE number = new.id >> {BITS}; END"
)
INSERT_AFTER = (  # VALUES, because what a SELECT finds is copied into a table of its own first
    f"INSERT INTO dpexplain_entries (id, dataset, {COLUMNS}) VALUES ((?1 << {BITS}) + ?6, "
    "(SELECT dataset FROM dpexplain_accounts WHERE number = ?1 AND dataset = ?2 AND sequence = ?3 AND hash = ?4 "
    f"AND (SELECT max(id) FROM dpexplain_entries WHERE request = ?8 AND id >> {BITS} = ?1) IS (?1 << {BITS}) + ?5), "
    "?6, ?7, ?8, ?9, ?10, ?11)"
)


class NumberedSession(JoinedSession):
    """One transaction. `numbers` are those of the accounts that this connection has read before; they never change."""

    def __init__(self, run: Run, numbers: dict[str, int], expected: Sequence[Lookup] = ()) -> None:
        super().__init__(run, expected)
        self._numbers = numbers

    def row(self, dataset: str, sequence: int) -> Row | None:
        new = [row for name, row in self._new if (name, row.sequence) == (dataset, sequence)]
        found = new or self._read_range(dataset, sequence, sequence + 1, "", ())
        return found[0] if found else None

    def rows(self, dataset: str, after: int, limit: int) -> list[Row]:
        return self._read_range(dataset, after + 1, 1 << BITS, "", (limit,))

    def answers(self, dataset: str, after: int, limit: int) -> list[Row]:
        """An answer has its own reservation before it, and the account's first entry: so many entries need not be looked at."""
        return self._read_range(dataset, 2 * after + 3, 1 << BITS, "AND position > ?", (after, limit))

    def datasets(self) -> list[str]:
        named = {str(name) for (name,) in self._run("SELECT dataset FROM dpexplain_accounts", ())}
        return sorted(named | set(self._stored_numbers()))

    def _read_range(self, dataset: str, first: int, end: int, where: str, values: tuple[int, ...]) -> list[Row]:
        number = self._number(dataset)
        if number is None:
            return []
        start = number << BITS
        ordered = "ORDER BY id LIMIT ?" if values else ""
        return self._rows(f"{RANGE} {where} {ordered}", (start + first, start + end, *values))

    def _number(self, dataset: str) -> int | None:
        """The number of an account, also of one whose row is gone while its entries are there; None for an account that does not exist."""
        known = self._numbers.get(dataset)
        if known is None:
            found = self._run(NUMBER, (dataset,))
            known = found[0][0] if found else self._stored_numbers().get(dataset)
            if known is None:
                return None
            if not isinstance(known, int):
                raise LedgerCorrupt(f"the account {dataset!r} is damaged. {RESTORE}")
            if found:
                self._numbers[dataset] = known
        return known

    def _stored_numbers(self) -> dict[str, int]:
        """The data sets that have entries, by the first entry of each."""
        stored: dict[str, int] = {}
        while found := self._run(FIRST, ((max(stored.values(), default=-1) + 1) << BITS,)):
            stored[str(found[0][1])] = found[0][0] >> BITS
        return stored

    def _move(self, last: dict[str, Row]) -> None:
        """Does nothing: the connection's trigger has moved the marks."""

    def _insert(self, rows: Sequence[tuple[str, Row]]) -> None:
        keyed = [((self._own_number(dataset) << BITS) + row.sequence, dataset, *row) for dataset, row in rows]
        self._run(insertion(len(rows)), keyed[0] if len(keyed) == 1 else tuple(chain.from_iterable(keyed)))

    def _own_number(self, dataset: str) -> int:
        """The number of an account that exists. That of one made by this transaction, which may be undone, is not remembered."""
        known = self._numbers.get(dataset)
        if known is None:
            ((known,),) = self._run(NUMBER, (dataset,))
            if not any(name == dataset and row.sequence == 1 for name, row in self._new):
                self._numbers[dataset] = known
        return known


def values_after(number: int, dataset: str, mark: Mark, row: Row, newest: int | None) -> tuple[int | str | None, ...]:
    """The values of INSERT_AFTER, which writes `row` if the account's mark and the newest entry of its request are these.

    Where they are others the row has no data set, which the table refuses.
    """
    return (number, dataset, *mark, newest, *row)


@cache
def insertion(count: int) -> str:
    """The statement that writes so many rows with their keys."""
    return f"INSERT INTO dpexplain_entries (id, dataset, {COLUMNS}) VALUES " + ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?)"] * count)
