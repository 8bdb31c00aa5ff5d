"""Full disks, read-only and damaged files, locks, lost servers: clear errors, and nothing that was paid for is lost."""

from __future__ import annotations

import os
import random
import resource
import shutil
import sqlite3
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dpexplain.errors import BudgetExhausted, DpexplainError, LedgerCorrupt, LedgerUnavailable
from dpexplain.ledger import PostgresLedger, Request, SqliteLedger, open_existing, sqlite, verify
from dpexplain.ledger.book import Book
from dpexplain.ledger.schema import SQLITE_MIGRATIONS, migrate
from dpexplain.ledger.sqlite import runner
from dpexplain.privacy.events import GaussianEvent, mu_of
from ledger_support import SmallStore, account, ask, children, event, postgres_execute, spend


@pytest.fixture
def whole(sqlite_place):
    """A closed ledger with twenty answers, all in the main file."""
    ledger = sqlite_place.open(clock=lambda: datetime(2030, 1, 1, tzinfo=UTC))  # the same bytes every time
    for number in range(20):
        spend(ledger, f"r{number}", answer={"values": [number / 7] * 8})
    ledger.close()
    return Path(sqlite_place.where)


def open_small(path, pages):
    store = SmallStore(path)
    store.pages = pages
    return Book(store, account())


def spend_many(ledger):
    for number in range(20, 200):
        spend(ledger, f"r{number}", event(0.001), answer={"values": [0.1] * 50})


def test_a_full_disk_refuses_and_loses_nothing(whole):
    pages = sqlite3.connect(whole).execute("PRAGMA page_count").fetchone()[0]
    ledger = open_small(whole, pages + 2)
    with pytest.raises(LedgerUnavailable, match=r"disk is full.*Free some space"):
        spend_many(ledger)
    answered = len(list(ledger.settled()))
    assert answered > 20
    counted = ledger.state().spent_quanta
    ledger.close()
    roomy = SqliteLedger(whole, account())
    assert len(list(roomy.settled())) == answered
    assert roomy.state().spent_quanta == counted
    spend(roomy, f"r{answered}", event(0.001))  # the refused request continues
    verify(roomy)
    roomy.close()


@pytest.mark.parametrize("asked", [True, False])
def test_a_full_disk_is_reported_at_once(whole, monkeypatch, asked):
    """After a question was refused, or before one is: whatever was found a moment ago."""
    monkeypatch.setattr(sqlite, "RECENT", 60.0 if asked else 0.0)
    monkeypatch.setattr(sqlite, "ROOMY", 60.0 if asked else 0.0)
    ledger = SqliteLedger(whole, account(), may_create=False)
    ledger.require_writable(0.2)
    before = set(whole.parent.iterdir())
    with files_limited_to(1 << 15):
        if asked:
            with pytest.raises(LedgerUnavailable):
                spend(ledger, "large", event(0.001), answer={"values": [0.1] * 20_000})
        with pytest.raises(LedgerUnavailable, match="cannot grow: nothing can be written beside it"):
            ledger.require_writable(0.2)
    ledger.require_writable(0.2)
    assert set(whole.parent.iterdir()) <= before
    ledger.close()


@contextmanager
def files_limited_to(size):
    """A real write error for every file that is larger."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, hard))


def fill_up(path, log):
    """A real write error: the file size limit of this process."""
    ledger = SqliteLedger(path, account())
    spend(ledger, "before", event(0.001))
    size = max(os.path.getsize(path), os.path.getsize(f"{path}-wal"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 8192, resource.RLIM_INFINITY))
    try:
        for number in range(1000):
            spend(ledger, f"full{number}", event(0.001), answer={"values": [0.1] * 100})
            Path(log).write_text(f"{number}")
    except LedgerUnavailable as error:
        Path(f"{log}.error").write_text(str(error))


def test_a_file_that_may_not_grow_refuses_and_loses_nothing(whole, tmp_path):
    log = tmp_path / "log"
    child = children.Process(target=fill_up, args=(str(whole), str(log)))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert "Nothing was released" in Path(f"{log}.error").read_text()
    ledger = SqliteLedger(whole, account())
    stored = {done.request_id for done in ledger.settled()}
    released = int(log.read_text()) if log.exists() else -1
    assert {f"full{number}" for number in range(released + 1)} <= stored
    verify(ledger)
    ledger.close()


def as_nobody(work, path, log):
    """Root may write anything, so permissions are tested as somebody else."""
    account()  # loads what is loaded late: nobody may not read Python's own files either
    if os.geteuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    try:
        work(path)
        Path(log).write_text("no error")
    except DpexplainError as error:
        Path(log).write_text(f"{type(error).__name__}: {error}")


def try_to_spend(path):
    spend(SqliteLedger(path, account(), timeout=1.0), "new")


def read_everything(path):
    (ledger,) = open_existing(f"sqlite:///{path}")
    verify(ledger)
    assert len(list(ledger.settled())) == 20


def run_as_nobody(work, path, tmp_path):
    log = Path(shutil.os.path.join("/tmp", f"dpx-nobody-{os.getpid()}-{tmp_path.name}"))
    log.write_text("")
    log.chmod(0o666)
    try:
        child = children.Process(target=as_nobody, args=(work, str(path), str(log)))
        child.start()
        child.join(60)
        assert child.exitcode == 0
        return log.read_text()
    finally:
        log.unlink()


@pytest.fixture
def public_copy(whole, tmp_path):
    """A copy in a directory that everybody can reach but only we can write."""
    import tempfile

    directory = Path(tempfile.mkdtemp(prefix="dpx-readonly"))
    directory.chmod(0o755)
    shutil.copy(whole, directory / "copy.ledger")
    (directory / "copy.ledger").chmod(0o444)
    yield directory / "copy.ledger"
    shutil.rmtree(directory)


def test_a_read_only_file_is_refused_with_the_remedy(public_copy, tmp_path):
    told = run_as_nobody(try_to_spend, public_copy, tmp_path)
    assert told.startswith("LedgerUnavailable")
    assert "writ" in told


def test_a_read_only_copy_can_be_verified(public_copy, tmp_path):
    assert run_as_nobody(read_everything, public_copy, tmp_path) == "no error"


def test_a_missing_directory_is_named(tmp_path):
    with pytest.raises(LedgerUnavailable, match="directory"):
        SqliteLedger(tmp_path / "nowhere" / "x.ledger", account())


def test_a_directory_is_not_a_ledger(tmp_path):
    with pytest.raises(LedgerUnavailable):
        SqliteLedger(tmp_path, account())


def test_a_locked_file_is_waited_for_and_then_refused(whole):
    ledger = SqliteLedger(whole, account(), timeout=0.2)
    other = sqlite3.connect(whole, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerUnavailable, match=r"locked by another process.*Ask again"):
        spend(ledger, "new")
    assert ledger.state().spent_quanta == 20 * event().quanta  # reading goes on
    other.execute("ROLLBACK")
    other.close()
    spend(ledger, "new")
    ledger.close()


def test_a_locked_row_is_waited_for_and_then_refused(postgres_place):
    import psycopg

    ledger = postgres_place.open(timeout=0.3)
    with psycopg.connect(postgres_place.where) as other:
        other.execute("SELECT * FROM dpexplain_accounts FOR UPDATE")
        with pytest.raises(LedgerUnavailable, match=r"locked by another session.*pg_stat_activity"):
            spend(ledger, "new")
        other.rollback()
    spend(ledger, "new")
    ledger.close()


def test_a_lost_connection_is_opened_again(postgres_place):
    ledger = postgres_place.open()
    spend(ledger, "a")
    postgres_execute(
        postgres_place.where, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()", ()
    )
    spend(ledger, "b")
    assert [done.request_id for done in ledger.settled()] == ["a", "b"]
    ledger.close()


def test_a_read_only_server_is_refused_with_the_remedy(postgres_place):
    ledger = postgres_place.open()
    ledger.close()
    url = postgres_place.where.replace("-csearch_path", "-cdefault_transaction_read_only%3Don%20-csearch_path")
    with pytest.raises(LedgerUnavailable, match="primary"):
        type(ledger)(url, account())


def test_a_server_that_forgets_commits_is_overruled(postgres_place):
    url = postgres_place.where.replace("-csearch_path", "-csynchronous_commit%3Doff%20-csearch_path")
    ledger = type(postgres_place.open())(url, account())
    with ledger._store._writer.use(ledger._store._connect) as connection:
        assert connection.execute("SHOW synchronous_commit").fetchone() == ("on",)
    ledger.close()


def test_a_role_with_the_documented_rights_is_enough(postgres_place):
    postgres_place.open().close()
    role = f"r{os.urandom(6).hex()}"
    schema = postgres_place.where.rsplit("%3D", 1)[1]
    for statement in (
        f"CREATE ROLE {role} LOGIN",
        f"GRANT USAGE ON SCHEMA {schema} TO {role}",
        f"GRANT SELECT, INSERT ON dpexplain_accounts, dpexplain_entries, dpexplain_schema TO {role}",
        f"GRANT UPDATE ON dpexplain_accounts TO {role}",
    ):
        postgres_place.execute(statement)
    ledger = PostgresLedger(postgres_place.where.replace("postgres:@", f"{role}:@"), account())
    spend(ledger, "a")
    verify(ledger)
    ledger.close()
    postgres_place.execute(f"REVOKE INSERT ON dpexplain_entries FROM {role}")
    with pytest.raises(LedgerUnavailable, match="GRANT SELECT, INSERT"):
        spend(ledger, "b")
    ledger.close()


def test_what_a_restored_backup_forgot_can_be_written_off(sqlite_place, tmp_path):
    """As docs/ledger.md says under 'After a loss'."""
    ledger = sqlite_place.open()
    spend(ledger, "a")
    ledger.close()
    shutil.copy(sqlite_place.where, tmp_path / "backup")
    spend(ledger, "b", event(0.07))
    head = ledger.head()
    ledger.close()
    shutil.copy(tmp_path / "backup", sqlite_place.where)
    ledger = sqlite_place.open()
    lost = head.total - ledger.state().spent_quanta
    gone = GaussianEvent("lost entries", mu_of(lost), 1.0)
    ledger.reserve(Request("loss-2026-11-16", {"reason": "restored from backup"}, (gone,)))
    assert ledger.state().spent_quanta >= head.total
    verify(ledger)
    ledger.close()


def test_a_statement_that_fails_undoes_its_transaction(place):
    """Statements may be sent in one batch: an error in it must be raised, and must undo all of it."""
    ledger = place.open()
    spend(ledger, "a")
    head, row = ledger.head(), ledger._store.read(lambda session: session.row("income", 2))

    def append_twice(session):
        session.append("income", row._replace(sequence=4, request="b"))
        session.append("income", row)

    with pytest.raises(LedgerCorrupt, match="damaged"):
        ledger._store.write(append_twice)
    assert ledger.head() == head
    verify(ledger)
    ledger.close()


def test_an_empty_file_is_damage_and_never_a_fresh_budget(whole):
    whole.write_bytes(b"")
    with pytest.raises(LedgerCorrupt, match="empty file"):
        SqliteLedger(whole, account())


def test_a_foreign_file_is_left_alone(tmp_path):
    text, database = tmp_path / "notes.txt", tmp_path / "other.db"
    text.write_text("my notes " * 500)
    connection = sqlite3.connect(database)
    connection.execute("CREATE TABLE mine (x)")
    connection.commit()
    connection.close()
    before = text.read_bytes(), database.read_bytes()
    for path in (text, database):
        with pytest.raises(LedgerCorrupt, match="not a"):
            SqliteLedger(path, account())
    assert (text.read_bytes(), database.read_bytes()) == before


def test_a_log_without_its_file_is_damage(whole):
    ledger = SqliteLedger(whole, account())
    spend(ledger, "new")
    shutil.copy(f"{whole}-wal", f"{whole}-kept")
    ledger.close()
    whole.unlink()
    shutil.move(f"{whole}-kept", f"{whole}-wal")
    with pytest.raises(LedgerCorrupt, match="its log"):
        SqliteLedger(whole, account())


def test_a_file_replaced_while_open_is_noticed(whole, tmp_path):
    ledger = SqliteLedger(whole, account())
    shutil.copy(whole, tmp_path / "old")
    os.replace(tmp_path / "old", whole)
    with pytest.raises(LedgerUnavailable, match="moved, deleted or replaced"):
        spend(ledger, "new")
    ledger.close()


def test_a_file_deleted_while_open_is_noticed(whole):
    ledger = SqliteLedger(whole, account())
    whole.unlink()
    with pytest.raises(LedgerUnavailable, match="moved, deleted or replaced"):
        spend(ledger, "new")
    ledger.close()


def survives(path, counted):
    """After damage a ledger is refused, or counts everything and keeps every answer: never less."""
    try:
        look_at_everything(path, counted)
        return True
    except (LedgerCorrupt, LedgerUnavailable):
        return False


def look_at_everything(path, counted):
    ledger = SqliteLedger(path, account(), timeout=0.5)
    try:
        assert ledger.state().spent_quanta >= counted
        assert all(done.answer["values"] == [int(done.request_id[1:]) / 7] * 8 for done in ledger.settled())
        verify(ledger)
    finally:
        ledger.close()


@pytest.mark.slow
def test_truncation_anywhere(whole, tmp_path):
    content, copy = whole.read_bytes(), tmp_path / "cut.ledger"
    sizes = {len(content) * part // 40 for part in range(40)} | {1, 15, 16, 99, 100, 511, 512, 4096, 8192, len(content) - 1}
    for size in sorted(sizes):
        for leftover in tmp_path.glob("cut.ledger*"):
            leftover.unlink()
        copy.write_bytes(content[:size])
        assert not survives(copy, 20 * event().quanta), f"truncated to {size} bytes and nobody noticed"


@pytest.mark.slow
def test_bit_flips_anywhere(whole, tmp_path):
    """A flipped bit is found, or lies where nothing is stored; the count never becomes smaller and no answer changes."""
    content, copy, draw = whole.read_bytes(), tmp_path / "flip.ledger", random.Random(5)
    places = [*range(0, 200), *(draw.randrange(len(content)) for _ in range(800))]
    found = sum(not survives(flip(content, copy, place, draw), 20 * event().quanta) for place in places)
    assert found > len(places) / 4  # the rest hit free space


@pytest.mark.slow
def test_bit_flips_inside_entries_are_always_found(whole, tmp_path):
    content, copy, draw = whole.read_bytes(), tmp_path / "flip.ledger", random.Random(6)
    documents = [row[0].encode() for row in sqlite3.connect(whole).execute("SELECT document FROM dpexplain_entries")]
    for document in documents:
        start = content.index(document)
        for _ in range(10):
            assert not survives(flip(content, copy, start + draw.randrange(len(document)), draw), 20 * event().quanta)


def flip(content, copy, place, draw):
    """A copy with one bit changed."""
    for leftover in copy.parent.glob(f"{copy.name}*"):
        leftover.unlink()
    flipped = bytearray(content)
    flipped[place] ^= 1 << draw.randrange(8)
    copy.write_bytes(flipped)
    return copy


@pytest.mark.parametrize("byte", [0xE5, 0xFF, 0x00])
def test_a_schema_that_is_no_longer_text_is_damage(whole, byte):
    """SQLite quotes the broken schema in its message, which then cannot be decoded either."""
    content = bytearray(whole.read_bytes())
    content[content.index(b"CREATE TABLE dpexplain_entries") + 8] = byte
    whole.write_bytes(content)
    with pytest.raises(LedgerCorrupt):
        look_at_everything(whole, 0)


def test_garbage_in_the_middle(whole):
    content = bytearray(whole.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 6000] = os.urandom(6000)
    whole.write_bytes(content)
    assert not survives(whole, 20 * event().quanta)


def test_a_newer_schema_is_refused_with_the_remedy(place):
    place.open().close()
    place.execute("INSERT INTO dpexplain_schema (version, applied) VALUES (99, 'the future')")
    with pytest.raises(LedgerUnavailable, match="Upgrade dpexplain"):
        place.open()
    with pytest.raises(LedgerUnavailable, match="Upgrade dpexplain"):
        open_existing(place.url)


def test_a_migration_is_recorded_by_the_transaction_that_applies_it(whole):
    more = (*SQLITE_MIGRATIONS, ("ALTER TABLE dpexplain_entries ADD COLUMN note TEXT", "SELECT fails FROM nowhere"))
    connection = sqlite3.connect(whole, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError):
        migrate(runner(connection), more)
    connection.execute("ROLLBACK")
    assert versions(connection) == [1, 2]
    connection.execute("BEGIN IMMEDIATE")
    migrate(runner(connection), (*SQLITE_MIGRATIONS, more[-1][:1]))
    connection.execute("COMMIT")
    assert versions(connection) == [1, 2, 3]
    connection.close()
    with pytest.raises(LedgerUnavailable, match="newer version"):
        SqliteLedger(whole, account())


def versions(connection):
    return [version for (version,) in connection.execute("SELECT version FROM dpexplain_schema ORDER BY version")]


def test_refused_requests_leave_a_whole_ledger(whole):
    ledger = SqliteLedger(whole, account())
    with pytest.raises(BudgetExhausted):
        ledger.reserve(ask("dear", event(9.0)))
    assert verify(ledger).answers == 20
    ledger.close()
