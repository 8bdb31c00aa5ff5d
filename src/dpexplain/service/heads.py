"""Stores the ledger's head beside service.toml, so that the next start detects a ledger that was deleted or rolled back meanwhile.

The file is of the form that `dpexplain ledger verify --save-head` writes. It is written at start, every minute while answers are given, and at the end;
what was spent since the last time is not covered, so store heads elsewhere too (docs/ledger.md).
"""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dpexplain.arguments import file_errors
from dpexplain.errors import DpexplainError, LedgerCorrupt, LedgerMissing
from dpexplain.ledger import Account, Head, Ledger, open_ledger
from dpexplain.ledger.anchor import read_heads, require_head, write_heads
from dpexplain.ledger.chain import RESTORE

SECONDS = 60.0
TIMEOUT = 5.0  # seconds that a question waits for other writers of the ledger


class HeadFile:
    """The heads of a service's data sets in one file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[str, Head]:
        with file_errors(self.path, "read"):  # a folder that cannot be looked into for a moment ends no thread
            known = self.path.exists()
        return read_heads(self.path) if known else {}

    def keep(self, ledger: Ledger) -> None:
        """Store the ledger's head, unless a newer one is stored already."""
        self.keep_head(ledger.account.dataset, ledger.head())

    def keep_head(self, name: str, head: Head) -> None:
        if not self._is_newer(name, head):
            return
        with self._hold_lock():
            if self._is_newer(name, head):
                write_heads(self.path, self.read() | {name: head})

    def _is_newer(self, name: str, head: Head) -> bool:
        known = self.read().get(name)
        return known is None or known.sequence < head.sequence

    @contextmanager
    def _hold_lock(self) -> Iterator[None]:
        """One worker at a time: else one that has read the file before another wrote it would put an older head back."""
        lock = self.path.with_name(f".{self.path.name}.lock")
        with file_errors(lock, "write"), lock.open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield


def open_checked(url: str, account: Account, file: HeadFile, *, may_create: bool = True) -> Ledger:
    """The ledger at `url`, which must contain its stored head. A new ledger is created only where no head is stored."""
    known = file.read().get(account.dataset)
    try:
        ledger = open_ledger(url, account, may_create=may_create and known is None, timeout=TIMEOUT)
    except LedgerMissing:
        if known is None:
            raise
        raise lost_ledger_error(file, account.dataset, known) from None
    try:
        if known is not None:
            require_head(ledger, known)
        file.keep(ledger)
    except BaseException:
        ledger.close()
        raise
    return ledger


def lost_ledger_error(file: HeadFile, dataset: str, known: Head) -> LedgerCorrupt:
    return LedgerCorrupt(
        f"{file.path} says that the ledger of {dataset!r} had {known.sequence} entries, and now there is none. {RESTORE} "
        "To begin anew on purpose, as other data or a new period, give [data] another name."
    )


class HeadKeeper:
    """Keeps the head of a running service's ledger, every minute and at the end."""

    def __init__(self, ledger: Ledger, file: HeadFile, seconds: float = SECONDS) -> None:
        self._ledger, self._file, self._seconds = ledger, file, seconds
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="head-keeper", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        self._keep()

    def _run(self) -> None:
        while not self._ended.wait(self._seconds):
            self._keep()

    def _keep(self) -> None:
        """Store the head of the ledger; where that is gone or cannot be read, the last that was seen, so that the next start misses it."""
        with suppress(DpexplainError):  # the health check reports it; the next minute tries again
            self._file.keep(self._ledger)
            return
        with suppress(DpexplainError):
            self._file.keep_head(self._ledger.account.dataset, self._ledger.seen)
