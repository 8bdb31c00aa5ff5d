"""Durable, linearisable spending: a reservation commits before noise is drawn, so a crash can over-count and never under-count.

`open_ledger` opens an account; `verify` checks a ledger from end to end; `open_existing` opens existing accounts for reading only.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from dpexplain.arguments import require_method
from dpexplain.errors import LedgerUnavailable, ParameterError
from dpexplain.ledger.book import Book, require_same_account
from dpexplain.ledger.memory import MemoryLedger
from dpexplain.ledger.port import Account, Entry, Head, Ledger, Request, Reservation, Settled
from dpexplain.ledger.postgres import PostgresLedger, PostgresStore
from dpexplain.ledger.sqlite import SqliteLedger, SqliteStore
from dpexplain.ledger.store import Store
from dpexplain.ledger.verify import VerificationReport, verify

__all__ = [
    "Account",
    "Entry",
    "Head",
    "Ledger",
    "MemoryLedger",
    "PostgresLedger",
    "Request",
    "Reservation",
    "Settled",
    "SqliteLedger",
    "VerificationReport",
    "open_existing",
    "open_ledger",
    "verify",
]

SQLITE = "sqlite:///"
POSTGRES = ("postgresql://", "postgres://")


def open_ledger(where: str | Ledger | None, account: Account, **options: Any) -> Ledger:
    """The ledger of `account`: in memory (None), at a URL, or one that is open already; made where it does not exist."""
    if where is None:
        return MemoryLedger(account)
    if not isinstance(where, str):
        require_method("ledger", where, "reserve", "Pass sqlite:///file.ledger, postgresql://…, a Ledger, or None")
        require_same_account(account, where.account.to_dict())
        return where
    if where.startswith(POSTGRES):
        return PostgresLedger(where, account, **options)
    return SqliteLedger(sqlite_path(where), account, **options)


def open_existing(url: str) -> tuple[Book, ...]:
    """Every account of the ledger at a URL, for reading; nothing is created."""
    return Book.list_accounts(read_only_store(url))


def read_only_store(url: str) -> Store:
    if url.startswith(POSTGRES):
        return PostgresStore(url, read_only=True)
    path = Path(sqlite_path(url))
    if not os.path.exists(path):  # also false for what cannot be a name
        raise LedgerUnavailable(f"there is no ledger at {path}. Check the name and the directory")
    return SqliteStore(path, read_only=True)


def sqlite_path(url: str) -> str:
    path = url.removeprefix(SQLITE)
    if not url.startswith(SQLITE) or path in ("", ":memory:") or "\0" in path:
        path_alone = "://" not in url and path not in ("", ":memory:") and "\0" not in path
        raise ParameterError(
            f"cannot open a ledger at {url!r}: a file needs sqlite:/// before it. Write sqlite:///{url}"
            if path_alone
            else f"cannot open a ledger at {url.partition(':')[0]!r}…. Write sqlite:///file.ledger, sqlite:////absolute/file.ledger, "
            "postgresql://user@host/database, or None for a ledger that lasts as long as the process"
        )
    return path
