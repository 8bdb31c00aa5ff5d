"""The interface of a ledger's storage: transactions, and seven queries inside them. Backends implement it.

Decisions (may this be spent? which answer wins?) are taken in `book.py` from what a session reads *inside* the transaction that
acts on them; a store only has to make write transactions durable and one at a time for each data set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from dpexplain.ledger.chain import Row

T = TypeVar("T")
Mark = tuple[int, str]  # sequence and hash of the last entry, as stored beside the entries

Lookup = tuple[str, str]  # data set and request


class Session(Protocol):
    """One transaction."""

    def mark(self, dataset: str) -> Mark | None:
        """Where this account's entries end; None for an account that does not exist. A write transaction keeps it locked."""
        ...

    def row(self, dataset: str, sequence: int) -> Row | None: ...

    def newest(self, dataset: str, request: str) -> list[Row]:
        """The last two rows about a request, newest first."""
        ...

    def append(self, dataset: str, row: Row) -> None:
        """Write a row and move the mark to it."""
        ...

    def rows(self, dataset: str, after: int, limit: int) -> list[Row]:
        """Up to `limit` rows with `sequence > after`, in order."""
        ...

    def answers(self, dataset: str, after: int, limit: int) -> list[Row]:
        """Up to `limit` settled rows with `position > after`, in order."""
        ...

    def datasets(self) -> list[str]: ...


class Store(Protocol):
    """Runs transactions. Safe for threads; after a fork each process gets its own connection."""

    @property
    def address(self) -> str:
        """Names the place without any secret."""
        ...

    def read(self, work: Callable[[Session], T]) -> T:
        """Do `work` on one consistent view."""
        ...

    def write(self, work: Callable[[Session], T], expected: Sequence[Lookup] = ()) -> T:
        """Do `work` in a durable transaction, which it may share with others; any error undoes it.

        `expected` are the requests whose newest rows it will ask for: a backend may read them together with the mark.
        `work` may run twice, if the transaction it ran in was undone. It waits for other writers no longer than the store's timeout.
        """
        ...

    def may_append(self) -> bool:
        """Whether `append_after` is worth preparing a row for: a hint, for which nobody is asked."""
        ...

    def append_after(self, dataset: str, mark: Mark, row: Row, newest: int | None) -> bool:
        """Write one row durably and move the mark to it, if the mark is still this one and `newest` is the sequence of the request's last row.

        Returns False, with nothing written, where that does not hold, where somebody else is writing, and where a backend does not offer it.
        """
        ...

    def require_writable(self, dataset: str, seconds: float) -> None:
        """Raise LedgerUnavailable if the data set's write lock cannot be had within `seconds`; nothing is written."""
        ...

    def check(self) -> None: ...

    def close(self) -> None: ...
