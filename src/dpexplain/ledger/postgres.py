"""A ledger in PostgreSQL: one budget for any number of machines.

A transaction is first tried by two statements: one reads the account's mark and what the requests have so far, the other writes on condition that the
mark has not moved. If it has, or more has to be read, a row lock (`FOR UPDATE`, READ COMMITTED) on the account makes others wait: its holder reads the
newest total, decides and writes. Entries never change, so both decide from the state that they write to.
A server that may forget acknowledged commits (`fsync=off`) is refused, and `synchronous_commit=off` is overruled.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from dpexplain.errors import DpexplainError, LedgerBusy, LedgerCorrupt, LedgerMissing, LedgerUnavailable, ParameterError
from dpexplain.ledger.book import Book
from dpexplain.ledger.chain import RESTORE, Row
from dpexplain.ledger.connection import Connection
from dpexplain.ledger.patience import deadline_after
from dpexplain.ledger.port import Account
from dpexplain.ledger.schema import Run, create, is_old, migrate, require_current
from dpexplain.ledger.sql import COLUMNS, MOST_ROWS, NEWEST, JoinedSession, SqlSession
from dpexplain.ledger.store import Lookup, Mark
from dpexplain.ledger.write_queue import AGAIN, Turn, WriteQueue

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")
Rows: TypeAlias = list[tuple[Any, ...]]
OPENING = 0x6470785F6C656467  # "dpx_ledg": the advisory lock under which tables and accounts are made
SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
LOCKED = "55P03"
RECENT = 0.25  # seconds: who has just written need not ask whether writing is possible
SHORT = 0.9  # of the timeout: a caller that has waited that long already waits less for the server
TROUBLES = {  # SQLSTATE: what it means, and what to do
    LOCKED: ("is locked by another session", f"Look for a long transaction in pg_stat_activity. {AGAIN}"),
    "53100": ("cannot grow: the server's disk is full", f"Free some space there. {AGAIN}"),
    "25006": ("is read-only", f"Connect to the primary server. {AGAIN}"),
    "42501": ("refuses this user", "GRANT SELECT, INSERT on all dpexplain_ tables and UPDATE on dpexplain_accounts."),
}
LOST = ("08", "57P")  # the connection failed, or the server was shut down
# corrupted, constraint broken, table or column gone or in the way, undecodable
DAMAGE = (
    "XX",
    "23",
    "42P01",
    "42P07",
    "42703",
    "22",
)


class PostgresSession(SqlSession):
    """A session that waits, where an account does not exist, for another process that may be making it.

    The query for the mark is sent together with those for the expected requests: one wait for the server instead of one for each. They run
    after the lock was had, on a snapshot of their own, so they read what the lock's last holder committed. Each result is used once.
    """

    def __init__(self, connection: psycopg.Connection[Any], *, write: bool, expected: Sequence[Lookup] = ()) -> None:
        super().__init__(self._fetch, " FOR UPDATE" if write else "", expected)
        self._connection, self._write = connection, write
        self._sent: dict[tuple[str, tuple[Any, ...]], psycopg.Cursor[Any]] = {}

    def _stored_mark(self, dataset: str) -> Mark | None:
        queries = ((self._mark, (dataset,)), *((NEWEST, lookup) for lookup in self._expected if lookup[0] == dataset))
        self._sent = {query: send(self._connection, *query) for query in dict.fromkeys(queries)}
        found = super()._stored_mark(dataset)
        if found is None and self._write:
            self._sent.clear()
            self._fetch("SELECT pg_advisory_xact_lock(?)", (OPENING,))
            found = super()._stored_mark(dataset)
        return found

    def _fetch(self, sql: str, values: tuple[Any, ...]) -> Rows:
        sent = self._sent.pop((sql, values), None)
        return fetch(sql, send(self._connection, sql, values) if sent is None else sent)


class UnlockedSession(JoinedSession):
    """A session that reads one account without a lock, and writes only if nobody has written since it read the mark; MustLock otherwise.

    What is read later may be newer than the mark. Then nothing is written; an answer that is found is the one that stands for good.
    """

    def __init__(self, connection: psycopg.Connection[Any], expected: Sequence[Lookup]) -> None:
        super().__init__(self._fetch, expected)
        self._connection = connection
        self._base: tuple[str, Mark] | None = None

    def flush(self) -> None:
        if self._base is None or len(self._new) > MOST_ROWS:
            raise MustLock
        dataset, (sequence, digest) = self._base
        last = self._new[-1][1]
        values = (last.sequence, last.hash, dataset, sequence, digest)
        written = send(self._connection, conditional_insertion(len(self._new)), values + self._values(self._new)).rowcount
        if written != len(self._new):
            raise MustLock

    def _stored_mark(self, dataset: str) -> Mark | None:
        if self._base is not None or not self._expected or len(self._expected) > MOST_ROWS:
            raise MustLock
        found = super()._stored_mark(dataset)
        if found is None:
            raise MustLock
        self._base = dataset, found
        return found

    def _fetch(self, sql: str, values: tuple[Any, ...]) -> Rows:
        return fetch(sql, send(self._connection, sql, values))


class MustLock(Exception):
    """The transaction has to be done under the account's lock."""


@cache
def conditional_insertion(count: int) -> str:
    """The statement that moves an account's mark, if it is where it was, and then writes so many rows."""
    row = "(?::text, ?::bigint, ?::text, ?::text, ?::bigint, ?::text, ?::text)"
    return (
        "WITH moved AS (UPDATE dpexplain_accounts SET sequence = ?, hash = ? WHERE dataset = ? AND sequence = ? AND hash = ? RETURNING 1) "
        f"INSERT INTO dpexplain_entries (dataset, {COLUMNS}) SELECT v.* FROM (VALUES {', '.join([row] * count)}) v, moved"
    )


class PostgresStore:
    """Transactions on one database. `may_create` holds until its tables have been seen once: they are never made anew."""

    def __init__(self, url: str, *, timeout: float = 10.0, read_only: bool = False, may_create: bool = True) -> None:
        self._url, self._timeout, self._read_only = url, timeout, read_only
        self._may_create = may_create and not read_only
        self._driver = driver()
        self._address = address_of(self._driver, url)
        self._writer, self._reader, self._prober = (Connection[Any](close_quietly) for _ in range(3))
        self._queue = WriteQueue()

    @property
    def address(self) -> str:
        return self._address

    def read(self, work: Callable[[SqlSession], T]) -> T:
        return self._retry_if_lost(self._reader, lambda: self._read(work))

    def write(self, work: Callable[[SqlSession], T], expected: Sequence[Lookup] = ()) -> T:
        turn = Turn(work, expected, deadline_after(self._timeout))
        result: T = self._queue.run(turn, lambda: self._writer.lock, self._write_together)
        return result

    def may_append(self) -> bool:
        return False

    def append_after(self, dataset: str, mark: Mark, row: Row, newest: int | None) -> bool:
        """Not offered: `write` already tries one account by two statements."""
        return False

    def require_writable(self, dataset: str, seconds: float) -> None:
        if time.monotonic() - self._queue.committed >= RECENT:
            self._retry_if_lost(self._prober, lambda: self._try_lock(dataset, seconds))

    def check(self) -> None:
        """Does nothing: the server checks its own pages (enable data checksums), and `verify` reads every entry."""

    def close(self) -> None:
        for connection in (self._prober, self._reader, self._writer):
            connection.drop()

    def _retry_if_lost(self, connection: Connection[Any], work: Callable[[], T]) -> T:
        """Repeat the work on a new connection if the old one broke. Requests are idempotent, so a repetition changes nothing."""
        try:
            with self._translate_errors(connection, again=connection.is_open):
                return work()
        except _Broken:
            with self._translate_errors(connection, again=False):
                return work()

    def _read(self, work: Callable[[SqlSession], T]) -> T:
        with self._reader.use(self._connect) as connection, transaction(connection, SNAPSHOT):
            return work(PostgresSession(connection, write=False))

    def _write_together(self, turns: Sequence[Turn], deadline: float) -> None:
        seconds = max(deadline - time.monotonic(), 0.0)
        self._retry_if_lost(self._writer, lambda: self._attempt(turns, seconds))

    def _attempt(self, turns: Sequence[Turn], seconds: float) -> None:
        """All turns in one durable transaction; one that is refused is undone by itself."""
        if seconds >= SHORT * self._timeout:
            with suppress(MustLock):
                self._attempt_unlocked(turns)
                return
        with self._writer.use(self._connect) as connection, transaction(connection):
            if seconds < SHORT * self._timeout:
                wait_at_most(connection, seconds)
            session = PostgresSession(connection, write=True, expected=[one for turn in turns for one in turn.expected])
            for turn in turns:
                self._take(session, turn)
            session.flush()

    def _attempt_unlocked(self, turns: Sequence[Turn]) -> None:
        with self._writer.use(self._connect) as connection:
            session = UnlockedSession(connection, [one for turn in turns for one in turn.expected])
            for turn in turns:
                self._take(session, turn)
            if session.size:
                session.flush()

    def _take(self, session: SqlSession, turn: Turn) -> None:
        """What the driver raises ends the transaction; anything else undoes this turn alone."""
        size = session.size
        try:
            turn.take(session)
        except (self._driver.Error, MustLock):
            raise
        except Exception as error:
            turn.error = error
            session.undo(size)

    def _try_lock(self, dataset: str, seconds: float) -> None:
        with self._prober.use(self._connect) as connection, transaction(connection):
            wait_at_most(connection, seconds)
            connection.execute("SELECT 1 FROM dpexplain_accounts WHERE dataset = %s FOR UPDATE", (dataset,))

    def _connect(self) -> psycopg.Connection[Any]:
        connection: psycopg.Connection[Any] = self._driver.connect(
            self._url, autocommit=True, connect_timeout=max(10, int(self._timeout))
        )
        try:
            self._configure(connection)
            with connection.transaction():
                self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _configure(self, connection: psycopg.Connection[Any]) -> None:
        if setting(connection, "fsync") != "on":
            raise LedgerUnavailable(f"the server of {self.address} runs with fsync=off and may forget spending. Set fsync=on")
        if setting(connection, "synchronous_commit") == "off":
            connection.execute("SET synchronous_commit TO on")
        connection.execute("SELECT set_config('lock_timeout', %s, false)", (f"{int(self._timeout * 1000)}ms",))
        (schema,) = connection.execute("SELECT current_schema()").fetchone() or ("",)
        self._address = f"{address_of(self._driver, self._url)}?schema={schema}"

    def _prepare(self, connection: psycopg.Connection[Any]) -> None:
        run = runner(connection)
        if self._read_only:
            require_current(run)
        elif not exists(run) or is_old(run):
            run("SELECT pg_advisory_xact_lock(?)", (OPENING,))
            if not exists(run):
                self._require_may_create()
                create(run)
            migrate(run)
        self._may_create = False

    def _require_may_create(self) -> None:
        if not self._may_create:
            raise LedgerMissing(
                f"there is no ledger at {self.address}, and it is not created, because a new one would forget what was spent. "
                "restore the database"
            )

    @contextmanager
    def _translate_errors(self, connection: Connection[Any], *, again: bool) -> Iterator[None]:
        """Convert errors of the driver into dpexplain's own, which never quote a password."""
        try:
            yield
        except self._driver.Error as error:
            broken = (error.sqlstate or LOST[0]).startswith(LOST) and isinstance(error, self._driver.OperationalError)
            if error.sqlstate != LOCKED:
                connection.drop()
            raise _Broken if broken and again else self._explain(error) from None

    def _explain(self, error: psycopg.Error) -> DpexplainError:
        state, message = error.sqlstate or "", error.diag.message_primary or ""
        if state in TROUBLES:
            what, remedy = TROUBLES[state]
            return (LedgerBusy if state == LOCKED else LedgerUnavailable)(f"the ledger {self.address} {what} ({state}). {remedy}")
        if state.startswith(DAMAGE):
            return LedgerCorrupt(f"the ledger {self.address} is damaged or not a ledger ({state} {message}). {RESTORE}")
        cause = f" ({state} {message})" if state else ""
        return LedgerUnavailable(
            f"the ledger {self.address} cannot be reached{cause}. Check that the server runs, and host, user and password. {AGAIN}"
        )


class _Broken(Exception):
    """The connection was lost, and the transaction may be tried once more."""


class PostgresLedger(Book):
    """The `Ledger` protocol in PostgreSQL. `timeout` is how long to wait for the server and for other writers, in seconds.

    `may_create=False` refuses where the tables or the account do not exist yet.
    """

    def __init__(self, url: str, account: Account, *, timeout: float = 10.0, may_create: bool = True, **options: Any) -> None:
        super().__init__(PostgresStore(url, timeout=timeout, may_create=may_create), account, **options)
        self.open(may_create=may_create)


@contextmanager
def transaction(connection: psycopg.Connection[Any], begin: str = "BEGIN") -> Iterator[None]:
    """Commit at the end of the block, or undo all of it. Statements are sent without waiting for their results.

    psycopg's own `transaction` waits for the server before and after each block. A statement that fails lets the server skip those after it, COMMIT too.
    """
    try:
        with connection.pipeline():
            connection.execute(begin.encode())
            yield
            connection.execute(b"COMMIT")
    except BaseException:
        with suppress(Exception):  # the connection may be lost already
            connection.execute(b"ROLLBACK")
        raise


def close_quietly(connection: Any) -> None:
    with suppress(Exception):  # the connection may be lost already
        connection.close()


def wait_at_most(connection: psycopg.Connection[Any], seconds: float) -> None:
    """Limit how long this transaction waits for other sessions' locks."""
    connection.execute("SELECT set_config('lock_timeout', %s, true)", (f"{max(int(seconds * 1000), 1)}ms",))


def driver() -> Any:
    try:
        import psycopg
    except ImportError:
        raise ParameterError("a postgresql:// ledger needs psycopg. Run: pip install 'dpexplain[postgres]'") from None
    return psycopg


def address_of(psycopg: Any, url: str) -> str:
    """Host, port and database: never the user's secret, also not one that was written without its percent signs."""
    try:
        parts = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        raise ParameterError("the ledger's URL cannot be read. Write postgresql://user:password@host:port/database") from None
    host, port, name = (
        str(parts.get(key) or default) for key, default in (("host", "localhost"), ("port", "5432"), ("dbname", ""))
    )
    if "@" in host + name or not port.replace(",", "").isdigit():
        raise ParameterError("the ledger's URL cannot be read. Percent-encode '@', ':' and '/' in the user and password")
    return f"postgresql://{host}:{port}/{name or parts.get('user') or ''}"


def exists(run: Run) -> bool:
    """Asked of the catalogue's rows: `to_regclass` may answer from a cache that predates the lock we have just waited for."""
    return bool(run("SELECT 1 FROM pg_class WHERE relname = 'dpexplain_schema' AND pg_table_is_visible(oid)", ()))


def setting(connection: psycopg.Connection[Any], name: str) -> str:
    row = connection.execute("SELECT current_setting(%s)", (name,)).fetchone()
    return str(row[0]) if row else ""


def runner(connection: psycopg.Connection[Any]) -> Run:
    return lambda sql, values: fetch(sql, send(connection, sql, values))


def send(connection: psycopg.Connection[Any], sql: str, values: tuple[Any, ...]) -> psycopg.Cursor[Any]:
    """In a pipeline this does not wait for the result."""
    return connection.execute(sql.replace("?", "%s").encode(), values)


def fetch(sql: str, cursor: psycopg.Cursor[Any]) -> Rows:
    return cursor.fetchall() if sql.startswith("SELECT") else []
