"""Durable, linearisable spending. `open_ledger` is the door; `port.py` says what every ledger promises."""

from __future__ import annotations

from dpexplain.errors import LedgerMismatch, ParameterError
from dpexplain.ledger.memory import MemoryLedger
from dpexplain.ledger.port import Account, Ledger


def open_ledger(where: Ledger | str | None, account: Account) -> Ledger:
    """The ledger at a URL, an open one, or a new one in memory; refused when it belongs to another account."""
    if where is None:
        return MemoryLedger(account)
    if isinstance(where, str):
        raise ParameterError(f"cannot open the ledger {where!r}: only in-memory ledgers are available")
    if where.account != account:
        raise LedgerMismatch(
            "this ledger was opened for other data, another domain or another budget: open one for each data set"
        )
    return where
