"""A ledger in one SQLite file: durable without a server, for any number of processes on one machine.

WAL with `synchronous=FULL` (a commit is on disk when it returns) and `BEGIN IMMEDIATE` (the write lock is taken before anything
is read, so a decision is never made on a stale total). A new file is prepared under another name and linked into place: a ledger
either does not exist or is whole, so an empty file is damage and never a fresh budget.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from dpexplain.errors import DpexplainError, LedgerCorrupt, LedgerUnavailable
from dpexplain.ledger.book import Book
from dpexplain.ledger.chain import RESTORE
from dpexplain.ledger.connection import Connection
from dpexplain.ledger.port import Account
from dpexplain.ledger.schema import create, is_old, migrate, require_current
from dpexplain.ledger.sql import SqlSession

T = TypeVar("T")
PRAGMAS = ("synchronous = FULL", "fullfsync = ON", "trusted_schema = OFF", "cell_size_check = ON")
AGAIN = "Nothing was released; ask again with the same request id."
TROUBLES = {  # what SQLite calls it: what it means, and what to do
    "SQLITE_BUSY": ("is locked by another process", f"Find who holds it (fuser FILE) or wait. {AGAIN}"),
    "SQLITE_LOCKED": ("is locked by another process", f"Find who holds it (fuser FILE) or wait. {AGAIN}"),
    "SQLITE_FULL": ("cannot grow: the disk is full", f"Free some space. {AGAIN}"),
    "SQLITE_READONLY": ("cannot be written", f"Make the file and its directory writable for this user. {AGAIN}"),
    "SQLITE_PERM": ("cannot be written", f"Make the file and its directory writable for this user. {AGAIN}"),
    "SQLITE_CANTOPEN": ("cannot be opened", "Check that the file and its directory exist and that this user may write both."),
    "SQLITE_IOERR": ("could not be read or written: the disk reported an error or is full", f"Check the disk. {AGAIN}"),
}


class SqliteStore:
    """Transactions on one file."""

    def __init__(self, path: str | Path, *, timeout: float = 10.0, read_only: bool = False) -> None:
        self.path = Path(os.path.realpath(path))
        self._timeout, self._read_only = timeout, read_only
        self._connection = Connection(sqlite3.Connection.close)
        self._inode: tuple[int, int] | None = None

    @property
    def address(self) -> str:
        return f"sqlite:///{self.path}"

    def read(self, work: Callable[[SqlSession], T]) -> T:
        return self._transact("BEGIN", work)

    def write(self, work: Callable[[SqlSession], T]) -> T:
        return self._transact("BEGIN IMMEDIATE", work)

    def check(self) -> None:
        with self._translated(), self._connection.use(self._connect) as connection:
            found = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if found != "ok":
            raise LedgerCorrupt(f"the ledger {self.path} is damaged ({found}). {RESTORE}")

    def close(self) -> None:
        self._connection.drop()

    def _transact(self, begin: str, work: Callable[[SqlSession], T]) -> T:
        with self._translated(), self._connection.use(self._connect) as connection:
            self._require_in_place()
            try:
                connection.execute(begin)
                result = work(SqlSession(runner(connection)))
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise
        return result

    def _connect(self) -> sqlite3.Connection:
        if not self._read_only and not self.path.exists():
            self._create()
        self._require_whole_file()
        mode = "ro" if self._read_only else "rw"
        connection = self._opened(f"{file_uri(self.path)}?mode={mode}{self._immutable()}", self._prepare)
        self._inode = inode(self.path)
        return connection

    def _opened(self, uri: str, prepare: Callable[[sqlite3.Connection], None]) -> sqlite3.Connection:
        connection = sqlite3.connect(uri, uri=True, timeout=self._timeout, isolation_level=None, check_same_thread=False)
        try:
            for pragma in PRAGMAS:
                connection.execute(f"PRAGMA {pragma}")
            prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'dpexplain_schema'").fetchone():
            raise LedgerCorrupt(f"{self.path} is not a dpexplain ledger, or no longer. Name another file, or: {RESTORE}")
        if self._read_only:
            require_current(runner(connection))
        elif is_old(runner(connection)):
            connection.execute("BEGIN IMMEDIATE")
            migrate(runner(connection))
            connection.execute("COMMIT")

    def _create(self) -> None:
        # Another process may be making it right now: its file appears before its log, so look for the log first.
        if Path(f"{self.path}-wal").exists() and not self.path.exists():
            raise LedgerCorrupt(f"the ledger {self.path} is gone but its log {self.path.name}-wal is there. {RESTORE}")
        draft = self.path.with_name(f".{self.path.name}.{secrets.token_hex(8)}.new")
        try:
            self._opened(f"{file_uri(draft)}?mode=rwc", make_tables).close()
            with suppress(FileExistsError):  # another process was first: its file is the ledger
                os.link(draft, self.path)
            flush_directory(self.path.parent)
        finally:
            draft.unlink(missing_ok=True)

    def _require_whole_file(self) -> None:
        if self.path.exists() and self.path.stat().st_size == 0:
            raise LedgerCorrupt(f"the ledger {self.path} is an empty file: it was truncated, or is not a ledger. {RESTORE}")

    def _require_in_place(self) -> None:
        """A file that was moved or replaced under an open connection would take spending with it."""
        if inode(self.path) != self._inode:
            self._connection.drop()
            raise LedgerUnavailable(f"the ledger {self.path} was moved, deleted or replaced while in use. {AGAIN}")

    def _immutable(self) -> str:
        """A copy on read-only media can only be read as a file that nobody changes, which is safe if it has no log."""
        log = Path(f"{self.path}-wal")
        alone = not (log.exists() and log.stat().st_size)
        return "&immutable=1" if self._read_only and alone and not os.access(self.path.parent, os.W_OK) else ""

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Convert errors of the driver into dpexplain's own."""
        try:
            yield
        except sqlite3.Error as error:
            self._forget()
            raise self._explain(error) from None
        except (UnicodeDecodeError, OverflowError, MemoryError) as error:  # the driver's, over bytes that cannot be right
            self._forget()
            raise LedgerCorrupt(f"the ledger {self.path} is damaged ({type(error).__name__}). {RESTORE}") from None
        except OSError as error:
            raise LedgerUnavailable(
                f"the ledger {self.path} cannot be reached ({error.strerror}). {TROUBLES['SQLITE_CANTOPEN'][1]}"
            ) from None

    def _forget(self) -> None:
        with suppress(sqlite3.Error):
            self._connection.drop()

    def _explain(self, error: sqlite3.Error) -> DpexplainError:
        name = getattr(error, "sqlite_errorname", "")
        for prefix, (what, remedy) in TROUBLES.items():
            if name.startswith(prefix) and name != "SQLITE_IOERR_SHORT_READ":
                return LedgerUnavailable(f"the ledger {self.path} {what} ({name}). {remedy}")
        return LedgerCorrupt(f"the ledger {self.path} is damaged or not a ledger ({name or error}). {RESTORE}")


class SqliteLedger(Book):
    """The `Ledger` protocol in a SQLite file. `timeout` is how long to wait for other writers, in seconds."""

    def __init__(self, path: str | Path, account: Account, *, timeout: float = 10.0, **options: Any) -> None:
        super().__init__(SqliteStore(path, timeout=timeout), account, **options)
        self.open()


def make_tables(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("BEGIN IMMEDIATE")
    create(runner(connection))
    migrate(runner(connection))
    connection.execute("COMMIT")


def runner(connection: sqlite3.Connection) -> Callable[[str, tuple[Any, ...]], list[tuple[Any, ...]]]:
    return lambda sql, values: connection.execute(sql, values).fetchall()


def file_uri(path: Path) -> str:
    return f"file:{quote(str(path))}"


def inode(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def flush_directory(path: Path) -> None:
    """Write a directory's entries to disk, so that a new file name survives a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
