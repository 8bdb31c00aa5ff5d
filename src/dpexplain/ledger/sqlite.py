"""A ledger in one SQLite file: durable without a server, for any number of processes on one machine.

WAL with `synchronous=FULL` (a commit is on disk when it returns) and `BEGIN IMMEDIATE` (the write lock is taken before anything
is read, so a decision is never made on a stale total). Readers have a connection of their own and never wait for a writer; writers
that wait together share a commit. A new file is prepared under another name and linked into place: a ledger either does not exist
or is whole, so an empty file is damage and never a fresh budget.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar
from urllib.parse import quote

from dpexplain.errors import DpexplainError, LedgerBusy, LedgerCorrupt, LedgerMissing, LedgerUnavailable
from dpexplain.ledger.book import Book
from dpexplain.ledger.chain import RESTORE, Row
from dpexplain.ledger.connection import Connection
from dpexplain.ledger.file_checks import (
    create_private,
    flush_directory,
    remove_with_logs,
    require_log,
    require_room,
    require_safe_folder,
    require_sound,
)
from dpexplain.ledger.numbered import INSERT_AFTER, MOVE_WITH_ENTRY, NumberedSession, values_after
from dpexplain.ledger.open_files import OpenFiles
from dpexplain.ledger.patience import deadline_after
from dpexplain.ledger.port import Account
from dpexplain.ledger.schema import SQLITE_MIGRATIONS, create, is_old, migrate
from dpexplain.ledger.sql import SqlSession
from dpexplain.ledger.store import Lookup, Mark
from dpexplain.ledger.write_queue import AGAIN, Turn, WriteQueue

T = TypeVar("T")
PRAGMAS = ("synchronous = FULL", "fullfsync = ON", "trusted_schema = OFF", "cell_size_check = ON")
UNDECODABLE = (UnicodeDecodeError, OverflowError, MemoryError)  # the driver's errors, over bytes that cannot be right
DRIVER = (sqlite3.Error, *UNDECODABLE)
PAUSES = (0.0005, 0.001, 0.001, 0.002, 0.002, 0.005)  # seconds between attempts to get the write lock
SAVING = 1000  # milliseconds that others may keep a deleted log busy
RECENT = 0.25  # seconds: who has just written need not ask whether writing is possible
ROOMY = 5.0  # seconds for which room on the disk is taken for granted: whoever asks often must not wear it out
LOCKED = ("is locked by another process", f"Find who holds it (fuser FILE) or wait. {AGAIN}")
TROUBLES = {  # what SQLite calls it: what it means, and what to do
    "SQLITE_BUSY": LOCKED,
    "SQLITE_LOCKED": LOCKED,
    "SQLITE_FULL": ("cannot grow: the disk is full", f"Free some space. {AGAIN}"),
    "SQLITE_READONLY": ("cannot be written", f"Make the file and its directory writable for this user. {AGAIN}"),
    "SQLITE_PERM": ("cannot be written", f"Make the file and its directory writable for this user. {AGAIN}"),
    "SQLITE_CANTOPEN": ("cannot be opened", "Check that the file and its directory exist and that this user may write both."),
    "SQLITE_IOERR": ("could not be read or written: the disk reported an error or is full", f"Check the disk. {AGAIN}"),
}


class _NotInPlace(Exception):
    """The file under an open connection is no longer the one at its path."""


TROUBLE = (*DRIVER, _NotInPlace, OSError)


@dataclass(slots=True)
class Opened:
    """A connection, the files it was opened on, and the numbers of accounts that it has read.

    Tables of the first version have no numbers. They are read as they are, and replaced when the ledger is opened for writing.
    """

    connection: sqlite3.Connection
    files: OpenFiles
    numbers: dict[str, int] | None

    def session(self, expected: Sequence[Lookup] = ()) -> SqlSession:
        run = runner(self.connection)
        return SqlSession(run) if self.numbers is None else NumberedSession(run, self.numbers, expected)

    def close(self) -> None:
        self.files.close()
        self.connection.close()


class SqliteStore:
    """Transactions on one file. `may_create` holds until the file has been seen once: a ledger that disappears is never made anew."""

    def __init__(self, path: str | Path, *, timeout: float = 10.0, read_only: bool = False, may_create: bool = True) -> None:
        self._name = os.path.realpath(path)
        self.path = Path(self._name)
        self._timeout, self._read_only = timeout, read_only
        self._may_create = may_create and not read_only
        self._writer, self._reader, self._prober = (Connection(Opened.close) for _ in range(3))
        self._queue = WriteQueue()
        self._had_room = float("-inf")  # when room was last found, by the monotonic clock

    @property
    def address(self) -> str:
        return f"sqlite:///{self.path}"

    def read(self, work: Callable[[SqlSession], T]) -> T:
        with self._use(self._reader) as opened, transaction(opened.connection, "BEGIN"):
            return work(opened.session())

    def write(self, work: Callable[[SqlSession], T], expected: Sequence[Lookup] = ()) -> T:
        turn = Turn(work, expected, deadline_after(self._timeout))
        result: T = self._queue.run(turn, self._get_lock, self._write_together)
        return result

    def may_append(self) -> bool:
        return self._queue.is_idle

    def append_after(self, dataset: str, mark: Mark, row: Row, newest: int | None) -> bool:
        return self._queue.run_alone(self._writer.lock, lambda: self._append_after(dataset, mark, row, newest))

    def _append_after(self, dataset: str, mark: Mark, row: Row, newest: int | None) -> bool:
        """By one statement, which is one durable transaction. Trouble is left to `write`, which finds it again and says what it is."""
        if not self._writer.is_open:
            return False
        opened = self._writer.get(self._connect_for_writing)
        number = opened.numbers.get(dataset) if opened.numbers else None
        if number is None:
            return False
        try:
            self._require_in_place(opened)
            return opened.connection.execute(INSERT_AFTER, values_after(number, dataset, mark, row, newest)).rowcount == 1
        except TROUBLE:
            return False

    def _get_lock(self) -> RLock:
        return self._writer.lock

    def require_writable(self, dataset: str, seconds: float) -> None:
        if self._queue.committed > max(time.monotonic() - RECENT, self._queue.failed):
            return
        with self._use(self._prober) as opened, exclusively(opened.connection, seconds):
            pass
        if self._had_room < max(time.monotonic() - ROOMY, self._queue.failed):
            require_room(self.path)
            self._had_room = time.monotonic()

    def check(self) -> None:
        with self._use(self._reader) as opened:
            found = opened.connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if found != "ok":
            raise LedgerCorrupt(f"the ledger {self.path} is damaged ({found}). {RESTORE}")

    def close(self) -> None:
        for connection in (self._prober, self._reader, self._writer):
            connection.drop()

    def _write_together(self, turns: Sequence[Turn], deadline: float) -> None:
        """All turns in one durable transaction; one that is refused is undone by itself. The caller holds the writer's lock."""
        try:
            opened = self._writer.get(self._connect_for_writing)
            self._require_in_place(opened)
            take_turns(opened, turns, deadline)
        except TROUBLE as error:
            raise self._translate(error, self._writer) from None

    @contextmanager
    def _use(self, connection: Connection[Opened]) -> Iterator[Opened]:
        """One of the connections, open and on the right file. Converts errors of the driver into dpexplain's own."""
        try:
            with connection.use(self._connect if connection is self._reader else self._connect_for_writing) as opened:
                self._require_in_place(opened)
                yield opened
        except TROUBLE as error:
            raise self._translate(error, connection) from None

    def _translate(self, error: Exception, connection: Connection[Opened]) -> DpexplainError:
        """dpexplain's own error for one of the driver; a connection that may be broken is closed."""
        if isinstance(error, OSError):
            return LedgerUnavailable(
                f"the ledger {self.path} cannot be reached ({error.strerror}). {TROUBLES['SQLITE_CANTOPEN'][1]}"
            )
        if not (isinstance(error, sqlite3.Error) and is_busy(error)):
            forget(connection)
        if isinstance(error, sqlite3.Error):
            return self._explain(error)
        if isinstance(error, _NotInPlace):
            for one in (self._prober, self._reader, self._writer):
                one.drop_if_unused()
            return LedgerUnavailable(f"the ledger {self.path} or its log was moved, deleted or replaced while in use. {AGAIN}")
        return LedgerCorrupt(f"the ledger {self.path} is damaged ({type(error).__name__}). {RESTORE}")

    def _connect(self) -> Opened:
        with suppress(FileNotFoundError):
            inode = require_sound(self.path)
            require_log(self.path)
            connection = self._open_connection(self._uri(), self._prepare)
            old = is_old(runner(connection), SQLITE_MIGRATIONS)
            return Opened(connection, OpenFiles(self._name, inode), None if old else {})
        if not self._may_create:
            raise LedgerMissing(
                f"there is no ledger at {self.path}, and it is not created, because a new one would forget what was spent. Put the file back"
            )
        self._create()
        return self._connect()

    def _connect_for_writing(self) -> Opened:
        opened = self._connect()
        opened.connection.execute("PRAGMA busy_timeout = 0")  # `take_write_lock` waits
        opened.connection.execute(MOVE_WITH_ENTRY)
        return opened

    def _uri(self) -> str:
        return f"{file_uri(self.path)}?mode={'ro' if self._read_only else 'rw'}{self._immutable()}"

    def _open_connection(self, uri: str, prepare: Callable[[sqlite3.Connection], None]) -> sqlite3.Connection:
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
        self._may_create = False
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'dpexplain_schema'").fetchone():
            raise LedgerCorrupt(f"{self.path} is not a dpexplain ledger, or no longer. Name another file, or: {RESTORE}")
        if is_old(runner(connection), SQLITE_MIGRATIONS) and not self._read_only:
            with transaction(connection, "BEGIN IMMEDIATE"):
                migrate(runner(connection), SQLITE_MIGRATIONS)

    def _create(self) -> None:
        # Another process may be creating the ledger now: its file appears before its log, so the log is looked for first.
        if Path(f"{self.path}-wal").exists() and not self.path.exists():
            raise LedgerCorrupt(f"the ledger {self.path} is gone but its log {self.path.name}-wal is there. {RESTORE}")
        require_safe_folder(self.path)
        draft = self.path.with_name(f".{self.path.name}.{secrets.token_hex(8)}.new")
        try:
            create_private(draft)
            self._open_connection(f"{file_uri(draft)}?mode=rw", make_tables).close()
            with suppress(FileExistsError):  # another process created the file first: that file is the ledger
                os.link(draft, self.path)
            flush_directory(self.path.parent)
        finally:
            remove_with_logs(draft)

    def _require_in_place(self, opened: Opened) -> None:
        """A file that was moved, replaced or linked under an open connection would take spending with it, and so would its log."""
        try:
            if opened.files.are_in_place():
                return
            if opened.files.are_only_deleted() and save_log(opened.connection):
                with suppress(FileExistsError):
                    create_private(Path(f"{self.path}-wal"))  # nothing is missing: the ledger may be opened again
        except FileNotFoundError:
            pass
        raise _NotInPlace

    def _immutable(self) -> str:
        """Whether to open the file as immutable: a copy on read-only media can be read in no other way, which is safe if it has no log."""
        log = Path(f"{self.path}-wal")
        alone = not (log.exists() and log.stat().st_size)
        return "&immutable=1" if self._read_only and alone and not os.access(self.path.parent, os.W_OK) else ""

    def _explain(self, error: sqlite3.Error) -> DpexplainError:
        name = getattr(error, "sqlite_errorname", "")
        for prefix, (what, remedy) in TROUBLES.items():
            if name.startswith(prefix) and name != "SQLITE_IOERR_SHORT_READ":
                kind = LedgerBusy if is_busy(error) else LedgerUnavailable
                return kind(f"the ledger {self.path} {what} ({name}). {remedy}")
        return LedgerCorrupt(f"the ledger {self.path} is damaged or not a ledger ({name or error}). {RESTORE}")


class SqliteLedger(Book):
    """The `Ledger` protocol in a SQLite file. `timeout` is how long to wait for other writers, in seconds.

    `may_create=False` refuses where the ledger or its account does not exist yet.
    """

    def __init__(
        self, path: str | Path, account: Account, *, timeout: float = 10.0, may_create: bool = True, **options: Any
    ) -> None:
        super().__init__(SqliteStore(path, timeout=timeout, may_create=may_create), account, **options)
        self.open(may_create=may_create)


@contextmanager
def transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    """Commit at the end of the block, or undo all of it."""
    connection.execute(begin)
    with commit_or_undo(connection):
        yield


@contextmanager
def exclusively(connection: sqlite3.Connection, seconds: float) -> Iterator[None]:
    """A write transaction that waits at most so long to begin."""
    take_write_lock(connection, time.monotonic() + seconds)
    with commit_or_undo(connection):
        yield


@contextmanager
def commit_or_undo(connection: sqlite3.Connection) -> Iterator[None]:
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def take_write_lock(connection: sqlite3.Connection, deadline: float) -> None:
    """BEGIN IMMEDIATE. SQLite's own waiting sleeps for up to 0.1 s at a time, in which a busy writer can lock many times over."""
    pauses = iter(PAUSES)
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
            return
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() >= deadline:
                raise
            time.sleep(next(pauses, PAUSES[-1]))


def take_turns(opened: Opened, turns: Sequence[Turn], deadline: float) -> None:
    """Do the turns in one write transaction. What the driver raises ends it; anything else undoes one turn alone."""
    session, connection = opened.session([lookup for turn in turns for lookup in turn.expected]), opened.connection
    take_write_lock(connection, deadline)
    with commit_or_undo(connection):
        for turn in turns:
            take_turn(session, turn)
        session.flush()


def take_turn(session: SqlSession, turn: Turn) -> None:
    size = session.size
    try:
        turn.take(session)
    except DRIVER:
        raise
    except Exception as error:
        turn.error = error
        session.undo(size)


def save_log(connection: sqlite3.Connection) -> bool:
    """Copy what a deleted log holds into the ledger, as long as nobody has begun another log: this connection still has the old one.

    Returns whether all of it was copied.
    """
    try:
        connection.execute(f"PRAGMA busy_timeout = {SAVING}")
        busy, entries, copied = connection.execute("PRAGMA wal_checkpoint(FULL)").fetchone()
    except sqlite3.Error:
        return False
    return not busy and entries == copied


def forget(connection: Connection[Opened]) -> None:
    """The next use opens another."""
    with suppress(sqlite3.Error):
        connection.drop()


def is_busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def make_tables(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    with transaction(connection, "BEGIN IMMEDIATE"):
        create(runner(connection))
        migrate(runner(connection), SQLITE_MIGRATIONS)


def runner(connection: sqlite3.Connection) -> Callable[[str, tuple[Any, ...]], list[tuple[Any, ...]]]:
    return lambda sql, values: connection.execute(sql, values).fetchall()


def file_uri(path: Path) -> str:
    return f"file:{quote(os.fsencode(path))}"  # bytes: a name need not be text
