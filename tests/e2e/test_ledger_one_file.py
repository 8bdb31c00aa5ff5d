"""A SQLite ledger has one name, is never made anew, is private, and makes nobody wait for longer than their own time."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dpexplain.errors import BudgetExhausted, DpexplainError, LedgerCorrupt, LedgerUnavailable, ParameterError
from dpexplain.ledger import Reservation, Settled, SqliteLedger, open_existing, open_ledger, verify
from dpexplain.ledger.anchor import require_head, write_heads
from dpexplain.ledger.port import Head, Settlement
from dpexplain.service import heads as service_heads
from dpexplain.service.heads import HeadFile, HeadKeeper, open_checked
from ledger_support import account, affordable, ask, children, event, postgres_execute, spend

WITH_SUPPORT = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}  # for processes that import `ledger_support`
SPEND = """
import sys
from dpexplain.errors import LedgerUnavailable
from ledger_support import account, spend
from dpexplain.ledger import SqliteLedger
try:
    spend(SqliteLedger(sys.argv[1], account()), "through the mount")
    print("spent")
except LedgerUnavailable as error:
    print(error)
"""


@pytest.fixture
def ledger(sqlite_place):
    opened = sqlite_place.open(timeout=0.6)
    spend(opened, "first")
    yield opened
    opened.close()


@pytest.fixture
def path(ledger, sqlite_place):
    return Path(sqlite_place.where)


def test_a_ledger_with_two_names_is_refused(ledger, path, tmp_path):
    """Each name would have a log of its own, so two processes would each spend the whole budget."""
    second = tmp_path / "second.ledger"
    os.link(path, second)
    for name in (path, second):
        with pytest.raises(LedgerUnavailable, match=r"2 names.*keep one name"):
            SqliteLedger(name, account())
        with pytest.raises(LedgerUnavailable, match="2 names"):
            open_existing(f"sqlite:///{name}")
    with pytest.raises(LedgerUnavailable, match="2 names"):  # also when it was linked under an open connection
        spend(ledger, "second")
    second.unlink()
    spend(ledger, "second")
    assert verify(ledger).answers == 2


def test_a_symbolic_link_is_the_same_ledger(ledger, path, tmp_path):
    (tmp_path / "alias.ledger").symlink_to(path)
    other = SqliteLedger(tmp_path / "alias.ledger", account())
    assert other.identity == ledger.identity
    spend(other, "second")
    assert ledger.state().spent_quanta == 2 * event().quanta
    other.close()


def test_a_creator_that_died_before_removing_its_draft_blocks_nobody(ledger, path):
    ledger.close()
    draft = path.with_name(f".{path.name}.0123456789abcdef.new")
    os.link(path, draft)
    again = SqliteLedger(path, account())
    assert not draft.exists()
    assert again.state().spent_quanta == event().quanta
    again.close()


def test_a_ledger_that_is_mounted_by_itself_is_refused(ledger, path, tmp_path):
    ledger.close()
    mounted = tmp_path / "mounted here.ledger"
    mounted.touch()
    require_refused_mount(path, mounted, mounted)


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_a_log_that_is_mounted_by_itself_is_refused(ledger, path, tmp_path, suffix):
    """Who opened the ledger before writes to the file below, and who opens it now would write to another."""
    other = tmp_path / "other"
    other.touch()
    require_refused_mount(other, path.with_name(path.name + suffix), path)
    assert verify(ledger).answers == 1


def require_refused_mount(file, place, opened):
    """Mount `file` at `place`, where this process does not see it, and spend from the ledger `opened`."""
    words = f'mount --bind "{file}" "{place}" && "{sys.executable}" -c \'{SPEND}\' "{opened}"'
    paths = os.pathsep.join(["tests", *sys.path])
    found = subprocess.run(
        ["unshare", "-m", "sh", "-c", words], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": paths}, check=False
    )
    if "spent" not in found.stdout and "ledger" not in found.stdout:
        pytest.skip(f"this user may not mount, a mounted file is NOT tested: {found.stderr[-200:]}")
    assert "mounted as a single file" in found.stdout
    assert "Mount its whole directory" in found.stdout


def test_a_deleted_ledger_is_never_a_fresh_budget(ledger, path):
    for leftover in path.parent.glob(f"{path.name}*"):
        leftover.unlink()
    for _ in range(3):
        with pytest.raises(LedgerUnavailable):
            spend(ledger, "second")
        with pytest.raises(LedgerUnavailable):
            ledger.state()
    ledger.close()
    with pytest.raises(LedgerUnavailable, match="Put the file back"):
        spend(ledger, "second")
    assert not path.exists()
    with pytest.raises(LedgerUnavailable, match="not created"):
        SqliteLedger(path, account(), may_create=False)
    assert not path.exists()


@pytest.mark.parametrize("deleted", [["-wal"], ["-shm"], ["-wal", "-shm"]])
def test_a_log_that_is_deleted_while_in_use_takes_no_spending_with_it(ledger, path, deleted):
    """Spending would go to a log without a name, which a kill forgets, and other processes would begin a second one."""
    spend(ledger, "second")
    counted = ledger.state().spent_quanta
    for suffix in deleted:
        path.with_name(path.name + suffix).unlink()
    with pytest.raises(LedgerUnavailable, match="its log was moved, deleted or replaced"):
        spend(ledger, "third")
    assert ledger.state().spent_quanta == counted
    spend(ledger, "third")
    other = SqliteLedger(path, account())
    assert other.state().spent_quanta == ledger.state().spent_quanta > counted
    assert verify(other).answers == 3
    other.close()


@pytest.mark.parametrize("deleted", [["-wal"], ["-shm"], ["-wal", "-shm"]])
def test_a_log_that_several_processes_use_is_saved_by_the_first_to_notice(ledger, path, deleted):
    code = "import sys; from ledger_support import account, spend; from dpexplain.errors import DpexplainError\n"
    code += "from dpexplain.ledger import SqliteLedger\n"
    code += "ledger = SqliteLedger(sys.argv[1], account()); spend(ledger, 'theirs'); print('open', flush=True)\n"
    code += "sys.stdin.readline()\n"
    code += "try: spend(ledger, 'refused')\nexcept DpexplainError: print('noticed', flush=True)\n"
    code += "spend(ledger, 'again'); ledger.close()"
    words = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=WITH_SUPPORT) as other:
        assert other.stdout.readline() == "open\n"
        counted = ledger.state().spent_quanta
        for suffix in deleted:
            path.with_name(path.name + suffix).unlink()
        with pytest.raises(LedgerUnavailable, match="its log was moved, deleted or replaced"):
            spend(ledger, "second")
        assert ledger.state().spent_quanta == counted
        spend(ledger, "second")
        out, _ = other.communicate("go on\n", timeout=60)
        assert out == "noticed\n"
        assert other.returncode == 0
    ledger.close()
    last = SqliteLedger(path, account(), may_create=False)
    assert verify(last).answers == 4
    last.close()


def test_a_log_that_is_deleted_after_a_crash_is_missed(tmp_path):
    """Whoever was killed has left the newest entries in the log alone. SQLite would open the ledger without them, and without a word."""
    code = "import os, sys; from ledger_support import account, spend; from dpexplain.ledger import SqliteLedger\n"
    code += "ledger = SqliteLedger(sys.argv[1], account())\n"
    code += "for number in range(5): spend(ledger, f'r{number}')\n"
    code += "os._exit(0)"
    path = tmp_path / "income.ledger"
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, env=WITH_SUPPORT, timeout=60)
    log = path.with_name(f"{path.name}-wal")
    kept = log.read_bytes()
    log.unlink()
    for _ in range(2):
        with pytest.raises(LedgerCorrupt, match=r"-wal of the ledger .* is gone"):
            SqliteLedger(path, account())
        with pytest.raises(LedgerCorrupt, match=r"-wal of the ledger .* is gone"):
            SqliteLedger(path, account(), may_create=False)
    log.write_bytes(kept)
    opened = SqliteLedger(path, account())
    assert verify(opened).answers == 5
    opened.close()
    again = SqliteLedger(path, account())  # closed in order: no log, and nothing is missing
    assert verify(again).answers == 5
    again.close()


def test_a_service_keeps_the_head_that_it_has_seen_when_the_ledger_is_gone(ledger, path, tmp_path):
    """A head is stored once a minute: one that is newer was only in memory, and the next start would not have missed the ledger."""
    file = HeadFile(tmp_path / "heads.json")
    file.keep(ledger)
    keeper = HeadKeeper(ledger, file)
    spend(ledger, "second")
    seen = ledger.head()
    for one in path.parent.glob(f"{path.name}*"):
        one.unlink()
    keeper.close()
    assert file.read() == {account().dataset: seen}
    with pytest.raises(LedgerCorrupt, match="had 5 entries, and now there is none"):
        open_checked(f"sqlite:///{path}", account(), file)


def test_a_head_is_stored_again_after_its_folder_could_not_be_read(ledger, tmp_path, monkeypatch):
    file, refused = HeadFile(tmp_path / "heads.json"), threading.Event()
    exists = Path.exists

    def refuse(path):
        if path != file.path:
            return exists(path)
        refused.set()
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "exists", refuse)
    keeper = HeadKeeper(ledger, file, seconds=0.01)
    assert refused.wait(10)
    monkeypatch.undo()
    end = time.monotonic() + 10
    while not file.read() and time.monotonic() < end:
        time.sleep(0.01)
    assert file.read() == {account().dataset: ledger.head()}
    keeper.close()


def test_workers_that_store_heads_at_once_never_put_an_older_one_back(ledger, tmp_path, monkeypatch):
    old = ledger.head()
    spend(ledger, "second")
    file, reached, stored = HeadFile(tmp_path / "heads.json"), threading.Event(), threading.Event()

    def wait_for_the_other(path, heads):
        if heads[account().dataset] == old:
            reached.set()
            stored.wait(0.5)  # the other worker waits for this one: it cannot have stored anything
        write_heads(path, heads)

    monkeypatch.setattr(service_heads, "write_heads", wait_for_the_other)
    slow = threading.Thread(target=file.keep_head, args=(account().dataset, old))
    slow.start()
    assert reached.wait(10)
    file.keep(ledger)
    stored.set()
    slow.join()
    assert file.read() == {account().dataset: ledger.head()}


def test_a_log_that_another_process_began_is_noticed(ledger, path):
    """Deleted while in use, then begun anew by a worker that was started later: two logs would be two budgets."""
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink()
    code = "import sys; from ledger_support import account; from dpexplain.ledger import SqliteLedger\n"
    code += "ledger = SqliteLedger(sys.argv[1], account()); print('open', flush=True); sys.stdin.read()"
    words = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=WITH_SUPPORT) as other:
        try:
            assert other.stdout.readline() == b"open\n"
            for _ in range(3):
                with pytest.raises((LedgerUnavailable, LedgerCorrupt)):
                    spend(ledger, "second")
        finally:
            other.stdin.close()


def test_a_ledgers_name_need_not_be_text_but_is_one(tmp_path):
    name = os.fsdecode(os.fsencode(tmp_path) + b"/\xff?mode=memory#%20\n.ledger")
    opened = SqliteLedger(name, account())
    spend(opened, "first")
    opened.close()
    again = SqliteLedger(name, account(), may_create=False)
    assert verify(again).answers == 1
    again.close()
    with pytest.raises(ParameterError, match="cannot open a ledger"):
        open_ledger("sqlite:///a\0b", account())


def test_an_account_is_made_only_where_it_may_be(place):
    place.open().close()
    with pytest.raises(LedgerUnavailable, match="no account 'other'"):
        place.open(account("other"), may_create=False)
    place.open(may_create=False).close()


def test_tables_that_were_dropped_are_not_made_anew(postgres_place):
    ledger = postgres_place.open()
    spend(ledger, "first")
    postgres_execute(postgres_place.where, "DROP TABLE dpexplain_entries, dpexplain_accounts, dpexplain_schema", ())
    ledger.close()
    with pytest.raises(LedgerUnavailable, match="not created"):
        spend(ledger, "second")


def test_a_kept_head_finds_a_ledger_that_forgot(place):
    ledger = place.open()
    spend(ledger, "first")
    require_head(ledger, ledger.head())
    for gone in (Head(99, "0" * 64, 1), Head(2, "0" * 64, 1)):
        with pytest.raises(DpexplainError, match=r"rolled back|rewritten"):
            require_head(ledger, gone)
    ledger.close()


def test_only_its_owner_may_read_a_ledger(ledger, path):
    for file in path.parent.glob(f"{path.name}*"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    assert len(list(path.parent.glob(f"{path.name}*"))) == 3  # with its logs


def test_a_folder_that_everybody_may_change_is_refused(tmp_path):
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(LedgerUnavailable, match="chmod o-w"):
        SqliteLedger(folder / "x.ledger", account())
    folder.chmod(0o1777)  # sticky, as /tmp: others may not replace what is ours
    SqliteLedger(folder / "x.ledger", account()).close()
    (folder / "x.ledger").chmod(0o666)
    with pytest.raises(LedgerUnavailable, match="chmod 600"):
        SqliteLedger(folder / "x.ledger", account())


def test_a_creation_that_fails_leaves_nothing(tmp_path, monkeypatch):
    from dpexplain.ledger import sqlite

    def full(connection):
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE half (x)")
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(sqlite, "make_tables", full)
    with pytest.raises(DpexplainError):
        SqliteLedger(tmp_path / "x.ledger", account())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step", ["create_private", "os.link"])
def test_a_disk_without_room_for_a_name_leaves_nothing_and_the_next_attempt_succeeds(tmp_path, monkeypatch, step):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(f"dpexplain.ledger.sqlite.{step}", full)
        with pytest.raises(LedgerUnavailable, match="No space left"):
            SqliteLedger(tmp_path / "x.ledger", account())
    assert list(tmp_path.iterdir()) == []
    ledger = SqliteLedger(tmp_path / "x.ledger", account())
    spend(ledger, "a")
    ledger.close()


def make_within(path, size):
    """A real write error: no file of this process may become longer."""
    made_for = account()
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    with pytest.raises(LedgerUnavailable, match="full"):
        SqliteLedger(path, made_for)


@pytest.mark.parametrize("size", [0, 4096, 20480, 32768])  # bytes; the tables of a new ledger take 36,864
def test_files_that_may_not_grow_are_not_left_half_made(tmp_path, size):
    child = children.Process(target=make_within, args=(str(tmp_path / "x.ledger"), size))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert list(tmp_path.iterdir()) == []


class Held:
    """Somebody else's write lock on a file."""

    def __init__(self, path):
        self._other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)

    def __enter__(self):
        self._other.execute("BEGIN IMMEDIATE")
        return self

    def __exit__(self, *_):
        self._other.execute("ROLLBACK")
        self._other.close()


def time_work(work):
    start = time.monotonic()
    try:
        work()
        return True, time.monotonic() - start
    except LedgerUnavailable:
        return False, time.monotonic() - start


def test_a_held_lock_makes_each_caller_wait_once_and_no_reader_at_all(ledger, path):
    """Eight callers used to wait one after another, and readers with them."""
    with Held(path), ThreadPoolExecutor(8) as callers:
        waiting = [callers.submit(time_work, lambda name=name: spend(ledger, name)) for name in "abcdefgh"]
        time.sleep(0.1)
        readings = [time_work(ledger.state) for _ in range(3)]
        time.sleep(0.2)
        healthy = time_work(lambda: ledger.require_writable(0.2))
        refused = [one.result() for one in waiting]
    assert not any(done for done, _ in refused)
    assert max(seconds for _, seconds in refused) < 1.5  # the ledger's timeout is 0.6 s
    assert all(done for done, _ in readings)
    assert max(seconds for _, seconds in readings) < 0.3
    assert not healthy[0]
    assert healthy[1] < 0.6
    assert ledger.state().spent_quanta == event().quanta
    for name in "abcdefgh":
        spend(ledger, name)  # the lock is gone, and nobody was forgotten
    assert verify(ledger).answers == 9


def test_a_locked_row_makes_each_caller_wait_once_and_no_reader_at_all(postgres_place):
    import psycopg

    ledger = postgres_place.open(timeout=0.6)
    spend(ledger, "first")
    ledger.state()
    with psycopg.connect(postgres_place.where) as other, ThreadPoolExecutor(4) as callers:
        other.execute("SELECT * FROM dpexplain_accounts FOR UPDATE")
        waiting = [callers.submit(time_work, lambda name=name: spend(ledger, name)) for name in "abcd"]
        time.sleep(0.1)
        assert time_work(ledger.state)[1] < 0.3
        assert max(one.result()[1] for one in waiting) < 1.5
        other.rollback()
    spend(ledger, "a")
    assert verify(ledger).answers == 2
    ledger.close()


def test_who_waits_together_is_written_together(place):
    """Twenty threads behind one that holds the lock: a handful of commits, one chain, each with the answer to its own question."""
    ledger, commits = place.open(timeout=30.0), []
    together = ledger._store._write_together
    ledger._store._write_together = lambda turns, seconds: (commits.append(len(turns)), together(turns, seconds))
    with ledger._store._writer.lock, ThreadPoolExecutor(20) as callers:
        waiting = [callers.submit(spend, ledger, f"r{n}", event(0.001), answer={"value": n}) for n in range(20)]
        while len(ledger._store._queue._waiting) < 20:
            time.sleep(0.01)
        ledger._store._writer.lock.release()
        answers = [one.result().answer["value"] for one in waiting]
        ledger._store._writer.lock.acquire()
    assert answers == list(range(20))
    assert commits[0] == 20
    assert len(commits) < 40
    assert verify(ledger).answers == 20
    ledger.close()


def test_one_refusal_in_a_shared_commit_undoes_nobody_else(place):
    ledger, price = place.open(timeout=30.0), event(0.1)
    limit = affordable(account(), price)
    with ledger._store._writer.lock, ThreadPoolExecutor(limit + 3) as callers:
        waiting = [callers.submit(ledger.reserve, ask(f"r{n}", price)) for n in range(limit + 3)]
        while len(ledger._store._queue._waiting) < limit + 3:
            time.sleep(0.01)
        ledger._store._writer.lock.release()
        errors = [one.exception() for one in waiting]
        ledger._store._writer.lock.acquire()
    assert sum(error is None for error in errors) == limit
    assert sum(isinstance(error, BudgetExhausted) for error in errors) == 3
    assert verify(ledger).pending == limit
    ledger.close()


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
def test_many_at_once_are_as_one_after_another(kind, request, tmp_path):
    from ledger_support import Place

    place = Place("memory", "") if kind == "memory" else request.getfixturevalue(f"{kind}_place")
    ledger, price = place.open(), event(0.1)
    limit = affordable(account(), price)
    found = ledger.reserve_many(
        [ask(f"r{n}", price) for n in range(limit + 2)] + [ask("r0", price), ask("r1", price, question="other")]
    )
    assert all(isinstance(one, Reservation) for one in [*found[:limit], found[limit + 2]])
    assert [type(one).__name__ for one in (*found[limit : limit + 2], found[-1])] == [
        "BudgetExhausted",
        "BudgetExhausted",
        "RequestIdInUse",
    ]
    done = ledger.settle_many(
        [Settlement(name, (price,), {"value": value}) for name, value in (("r0", 1), ("none", 2), ("r0", 3))]
    )
    assert [type(one).__name__ for one in done] == ["Settled", "LedgerUnavailable", "Settled"]
    assert done[0].answer == done[2].answer == {"value": 1}  # the first to settle wins
    assert isinstance(ledger.reserve(ask("r0", price)), Settled)
    assert verify(ledger).pending == limit - 1
    ledger.close()


def test_a_forked_child_waits_for_nobody_in_the_parent(sqlite_place):
    """A fork while another thread writes: the child has neither its locks nor its work."""
    ledger, stop = sqlite_place.open(timeout=60.0), threading.Event()
    writer = threading.Thread(target=lambda: [spend(ledger, f"w{n}", event(1e-6)) for n in range(10_000) if not stop.is_set()])
    writer.start()
    try:
        for _ in range(3):
            child = os.fork()
            if not child:
                spend(ledger, f"child-{os.getpid()}", event(1e-6))
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        writer.join()
    verify(ledger)
    ledger.close()


def test_a_copy_is_another_ledger_but_a_replaced_file_is_noticed(ledger, path, tmp_path):
    shutil.copy(path, tmp_path / "old")
    ledger.state()
    os.replace(tmp_path / "old", path)
    with pytest.raises(LedgerUnavailable, match="moved, deleted or replaced"):
        ledger.state()
