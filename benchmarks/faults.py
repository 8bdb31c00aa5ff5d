"""Faults injected into a SQLite ledger, and what became of them: how many, how many were noticed, and whether anything was counted too little or lost.

`python -m benchmarks.faults` prints the table; `--write-docs` puts it into docs/notes/ledger.md.
The same faults, and more, are tests in tests/e2e/test_ledger_*.py.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from dpexplain.errors import BudgetExhausted, DpexplainError, LedgerUnavailable
from dpexplain.ledger import Account, Request, Settled, SqliteLedger, verify
from dpexplain.ledger.anchor import require_head
from dpexplain.privacy.budget import Budget
from dpexplain.privacy.events import GaussianEvent
from dpexplain.privacy.relation import Neighbours

KILLS, KILLS_AT_A_STEP, TRUNCATIONS, FLIPS, WRITERS, CALLERS = 25, 3, 40, 200, 4, 8
STEPS = ("before reserve", "in reserve", "after reserve", "before settle", "in settle", "after settle")
BEGIN, END = "<!-- faults: begin -->", "<!-- faults: end -->"
processes = multiprocessing.get_context("forkserver")


@dataclass
class Fault:
    """One kind of fault: how often it was injected, and what was seen."""

    what: str
    injected: int = 0
    noticed: int | None = 0  # refused or reported; None where there is nothing to notice
    too_little: int = 0  # times the ledger counted less than had been released
    lost: int = 0  # released answers that the ledger did not have

    def row(self) -> dict[str, object]:
        return {
            "fault": self.what,
            "injected": self.injected,
            "noticed": "" if self.noticed is None else self.noticed,
            "counted too little": self.too_little,
            "answers lost": self.lost,
        }


def account(epsilon: float = 8.0) -> Account:
    return Account("faults", "domain", Budget(epsilon, 1e-6), Neighbours())


def event(mu: float = 0.01) -> GaussianEvent:
    return GaussianEvent("gradient", mu, 1.0)


def spend(ledger: SqliteLedger, name: str, price: GaussianEvent) -> Settled:
    found = ledger.reserve(Request(name, {"question": name}, (price,)))
    return found if isinstance(found, Settled) else ledger.settle(found, (price,), {"value": name})


class Mortal(SqliteLedger):
    """Dies by SIGKILL at a named step."""

    dies_at = ""

    def _step(self, name: str) -> None:
        if name == self.dies_at:
            os.kill(os.getpid(), signal.SIGKILL)


def spend_forever(path: str, log: str, name: str, dies_at: str) -> None:
    """Spend until killed or refused; an answer is released once its name is in the log."""
    ledger = Mortal(path, account(), timeout=60.0)
    ledger.dies_at = dies_at
    with open(log, "a", buffering=1) as out:
        for number in range(100_000):
            try:
                out.write(spend(ledger, f"{name}-{number}", event()).request_id + "\n")
            except BudgetExhausted:
                return


def compare(fault: Fault, path: Path, log: Path) -> None:
    """The ledger against what was released."""
    ledger = SqliteLedger(path, account())
    released = set(log.read_text().split()) if log.exists() else set()
    stored = {done.request_id for done in ledger.settled()}
    fault.too_little += ledger.state().spent_quanta < len(released) * event().quanta
    fault.lost += len(released - stored)
    verify(ledger)
    ledger.close()


def kill_at_any_moment(folder: Path) -> Fault:
    fault, path, log, draw = (
        Fault("process killed at any moment", noticed=None),
        folder / "x.ledger",
        folder / "log",
        random.Random(1),
    )
    for number in range(KILLS):
        child = processes.Process(target=spend_forever, args=(str(path), str(log), f"k{number}", ""))
        child.start()
        before = size(log)
        while size(log) == before and child.is_alive():
            time.sleep(0.002)
        time.sleep(draw.random() / 20)
        os.kill(child.pid or 0, signal.SIGKILL)
        child.join()
        fault.injected += 1
        compare(fault, path, log)
    return fault


def kill_at_each_step(folder: Path) -> Fault:
    fault, path, log = Fault("process killed before, in and after each commit", noticed=None), folder / "x.ledger", folder / "log"
    for step in STEPS:
        for number in range(KILLS_AT_A_STEP):
            child = processes.Process(target=spend_forever, args=(str(path), str(log), f"{step}{number}".replace(" ", "-"), step))
            child.start()
            child.join()
            fault.injected += 1
            compare(fault, path, log)
    return fault


def several_writers(folder: Path) -> Fault:
    """Each tries to spend the whole budget."""
    fault, path, log = Fault("writers that each spend until refused"), folder / "x.ledger", folder / "log"
    children = [processes.Process(target=spend_until_refused, args=(str(path), str(log), f"w{n}")) for n in range(WRITERS)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    fault.injected = WRITERS
    fault.noticed = sum(line == "refused" for line in log.read_text().split())
    released = [line for line in log.read_text().split() if line != "refused"]
    fault.too_little = int(len(released) > account(1.0).budget.quanta // event(0.05).quanta)
    return fault


def spend_until_refused(path: str, log: str, name: str) -> None:
    ledger = SqliteLedger(path, account(1.0), timeout=60.0)
    with open(log, "a", buffering=1) as out:
        try:
            for number in range(100_000):
                out.write(spend(ledger, f"{name}-{number}", event(0.05)).request_id + "\n")
        except BudgetExhausted:
            out.write("refused\n")


def damage_copies(folder: Path, what: str, count: int, damage: Callable[[bytearray, int], bytes]) -> Fault:
    """Copies of one ledger, each damaged; noticed, or harmless because nothing is stored there."""
    fault, path = Fault(what), folder / "whole.ledger"
    ledger = SqliteLedger(path, account())
    for number in range(20):
        spend(ledger, f"r{number}", event())
    ledger.close()
    content = path.read_bytes()
    for number in range(count):
        copy = folder / f"copy{number}.ledger"
        copy.write_bytes(damage(bytearray(content), number))
        fault.injected += 1
        try:
            broken = SqliteLedger(copy, account(), timeout=0.5)
            fault.too_little += broken.state().spent_quanta < 20 * event().quanta
            fault.lost += 20 - len(list(broken.settled()))
            verify(broken)
            broken.close()
        except DpexplainError:
            fault.noticed = (fault.noticed or 0) + 1
    return fault


def truncate_file(folder: Path) -> Fault:
    return damage_copies(
        folder, "file cut short", TRUNCATIONS, lambda content, n: bytes(content[: len(content) * n // TRUNCATIONS])
    )


def flip_bits(folder: Path) -> Fault:
    draw = random.Random(2)

    def flip(content: bytearray, _: int) -> bytes:
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        return bytes(content)

    return damage_copies(folder, "one bit flipped (the rest hit free space)", FLIPS, flip)


def replace_file(folder: Path) -> Iterator[Fault]:
    """Second names, deletion and older copies."""
    path = folder / "x.ledger"
    ledger = SqliteLedger(path, account())
    spend(ledger, "a", event())
    ledger.close()
    shutil.copy(path, folder / "old.ledger")
    spend(ledger, "b", event())
    head = ledger.head()
    os.link(path, folder / "second.ledger")
    yield count_noticed("second name (hard link)", lambda: spend(ledger, "c", event()), lambda: SqliteLedger(path, account()))
    (folder / "second.ledger").unlink()
    ledger.close()
    for file in folder.glob("x.ledger*"):
        file.rename(folder / f"gone-{file.name}")
    yield count_noticed(
        "file deleted", lambda: spend(ledger, "c", event()), ledger.state, lambda: SqliteLedger(path, account(), may_create=False)
    )
    shutil.copy(folder / "old.ledger", path)
    path.chmod(0o600)
    yield count_noticed("older copy put back", ledger.state, lambda: require_head(SqliteLedger(path, account()), head))


def delete_logs(folder: Path) -> Fault:
    """A log that is deleted while in use: what it held is saved by the process that notices, and found by the next."""
    fault = Fault("log deleted while in use")
    for number, suffixes in enumerate((("-wal",), ("-shm",), ("-wal", "-shm"))):
        path = folder / f"{number}.ledger"
        ledger = SqliteLedger(path, account())
        spend(ledger, "a", event())
        for suffix in suffixes:
            Path(f"{path}{suffix}").unlink()
        noticed = count_noticed(fault.what, lambda ledger=ledger: spend(ledger, "b", event()))
        fault.injected, fault.noticed = fault.injected + 1, (fault.noticed or 0) + (noticed.noticed or 0)
        after = SqliteLedger(path, account())
        fault.too_little += after.state().spent_quanta < event().quanta
        fault.lost += 1 - len(list(after.settled()))
        after.close()
        ledger.close()
    return fault


def count_noticed(what: str, *attempts: Callable[[], object]) -> Fault:
    fault = Fault(what, injected=len(attempts))
    for attempt in attempts:
        try:
            attempt()
        except DpexplainError:
            fault.noticed = (fault.noticed or 0) + 1
    return fault


def hold_lock(folder: Path) -> Fault:
    """Somebody else holds the write lock: each caller is refused in its own time, and reading goes on."""
    path, fault = folder / "x.ledger", Fault(f"write lock held, {CALLERS} callers at once", CALLERS)
    ledger = SqliteLedger(path, account(), timeout=0.5)
    spend(ledger, "a", event())
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(CALLERS) as pool:
        start = time.monotonic()
        found = [pool.submit(spend, ledger, f"l{number}", event()) for number in range(CALLERS)]
        assert ledger.state().spent_quanta == event().quanta
        assert time.monotonic() - start < 5
        fault.noticed = sum(isinstance(one.exception(), LedgerUnavailable) for one in found)
    other.close()
    ledger.close()
    return fault


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def run() -> list[dict[str, object]]:
    found = []
    for inject in (
        kill_at_any_moment,
        kill_at_each_step,
        several_writers,
        truncate_file,
        flip_bits,
        replace_file,
        delete_logs,
        hold_lock,
    ):
        with tempfile.TemporaryDirectory() as folder:
            faults = inject(Path(folder))
            found += [faults.row()] if isinstance(faults, Fault) else [one.row() for one in faults]
    return found


def markdown(rows: list[dict[str, object]]) -> str:
    lines = [list(rows[0]), ["---"] * len(rows[0]), *([str(value) for value in row.values()] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    rows = run()
    total, wrong = (
        sum(int(row[name]) for name in names for row in rows) for names in (("injected",), ("counted too little", "answers lost"))
    )
    table = f"{total} faults, injected on {date.today()}; {wrong} of them made a ledger count too little or lose an answer.\n\n{markdown(rows)}"
    print(table)
    if "--write-docs" in sys.argv:
        page = Path("docs/notes/ledger.md")
        text = page.read_text(encoding="utf-8")
        before, after = text.split(BEGIN)[0], text.split(END)[1]
        page.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
