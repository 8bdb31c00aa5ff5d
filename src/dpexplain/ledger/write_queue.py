"""Group commit: write transactions are shared by the threads that wait for one.

The thread that gets the writer's lock first leads: it takes everything that waits, does it in one transaction, commits once, and wakes those
whose work is done and one of those who came in the meantime, which leads next. Each caller waits no longer than its own deadline, whatever
the others do; work that a leader has taken by then ends with that leader's transaction.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Lock, RLock
from typing import Any

from dpexplain.errors import DpexplainError, LedgerBusy
from dpexplain.ledger.store import Lookup, Session

AGAIN = "Nothing was released. Ask again with the same request id."
MOST_TOGETHER = 256  # pieces of work in one transaction
PATIENCE = 0.02  # seconds between looks at the lock


class Turn:
    """One piece of work, what it will look up, and its result or error."""

    __slots__ = ("_sleep", "deadline", "done", "error", "expected", "result", "work")

    def __init__(self, work: Callable[[Any], Any], expected: Sequence[Lookup], deadline: float) -> None:
        self.work, self.expected, self.deadline = work, expected, deadline
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False
        self._sleep = Lock()  # held, until `rouse` releases it
        self._sleep.acquire()

    def take(self, session: Session) -> None:
        """Run the work. An error of dpexplain's own belongs to this turn alone."""
        self.result, self.error = None, None
        self.result = self.work(session)

    def fail(self, error: BaseException) -> None:
        self.error = error
        self.finish()

    def finish(self) -> None:
        self.done = True
        self.rouse()

    def wait(self) -> None:
        """Wait for `rouse`, but not beyond the deadline, and for PATIENCE at most: others may hold the lock and wake nobody."""
        left = self.deadline - time.monotonic()
        self._sleep.acquire(timeout=min(left, PATIENCE) if left > 0 else PATIENCE)

    def rouse(self) -> None:
        """End the wait, or the next one if nobody waits now."""
        if self._sleep.locked():  # otherwise it was released before
            with suppress(RuntimeError):  # by another thread, just now
                self._sleep.release()

    @property
    def outcome(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.result


Lead = Callable[[Sequence[Turn], float], None]  # does the turns in one transaction, waiting for it until this time at most


class WriteQueue:
    """What waits to be written by this process."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._waiting: deque[Turn] = deque()
        self._leading = False
        self.committed = self.failed = float("-inf")  # when a transaction last ended well, and badly, by the monotonic clock

    @property
    def is_idle(self) -> bool:
        """Whether nobody writes or waits, as far as can be seen without a lock."""
        return not (self._waiting or self._leading)

    def run(self, turn: Turn, lock: Callable[[], RLock], lead: Lead) -> Any:
        """Return the result of a turn after its commit. `lock` is called each time, because a fork replaces the lock."""
        self._forget_the_parent()
        try:
            if not self._waiting and (free := lock()).acquire(blocking=False):  # nobody else writes or waits
                self._lead_and_release(turn, free, lead, alone=True)
            else:
                self._waiting.append(turn)
            while not turn.done:
                self._advance(turn, lock(), lead)
        except BaseException:
            self._withdraw(turn)
            raise
        return turn.outcome

    def run_alone(self, lock: RLock, work: Callable[[], bool]) -> bool:
        """Do what commits one transaction by itself, if nobody else writes or waits. Returns whether it did."""
        self._forget_the_parent()
        if self._waiting or not lock.acquire(blocking=False):
            return False
        self._leading = True
        try:
            done = work()
        finally:
            self._leading = False
            lock.release()
            self._wake_next()
        if done:
            self.committed = time.monotonic()
        return done

    def _advance(self, turn: Turn, lock: RLock, lead: Lead) -> None:
        """Lead, if nobody does; otherwise wait to be woken."""
        if lock.acquire(blocking=False):
            self._lead_and_release(turn, lock, lead, alone=False)
        elif turn.deadline <= time.monotonic() and self._withdraw(turn):
            turn.fail(LedgerBusy(f"other writers held the ledger for too long. {AGAIN}"))
        else:
            turn.wait()

    def _wake_next(self) -> None:
        """Let the first of those who came in the meantime lead. Who comes later finds the lock free, or wakes others in turn."""
        if self._waiting:
            with suppress(IndexError):  # another leader has taken it
                self._waiting[0].rouse()

    def _take_waiting(self) -> list[Turn]:
        return [self._waiting.popleft() for _ in range(min(len(self._waiting), MOST_TOGETHER))]

    def _lead_and_release(self, turn: Turn, lock: RLock, lead: Lead, *, alone: bool) -> None:
        """Do this turn, or everything that waits unless another leader has done this turn already."""
        self._leading = True
        try:
            if alone:
                self._lead([turn], lead)
            elif not turn.done:
                self._lead(self._take_waiting(), lead)
        finally:
            self._leading = False
            lock.release()
            self._wake_next()

    def _lead(self, turns: Sequence[Turn], lead: Lead) -> None:
        try:
            lead(turns, turns[0].deadline if len(turns) == 1 else min([turn.deadline for turn in turns]))
        except LedgerBusy as error:
            self._fail_expired(turns, error)
        except DpexplainError as error:
            self.failed = time.monotonic()
            for turn in turns:
                turn.fail(type(error)(*error.args))
        except BaseException:  # an interrupt of this thread: the others' work was undone with it and is done again
            self._waiting.extendleft(reversed(turns))
            raise
        else:
            self.committed = time.monotonic()
            for turn in turns:
                turn.finish()

    def _fail_expired(self, turns: Sequence[Turn], error: LedgerBusy) -> None:
        """Fail the turns whose deadline has passed; the others keep waiting."""
        now = time.monotonic()
        for turn in reversed(turns):
            if turn.deadline <= now:
                turn.fail(LedgerBusy(*error.args))
            else:
                self._waiting.appendleft(turn)

    def _withdraw(self, turn: Turn) -> bool:
        """Remove a turn from the queue. Returns whether it was still waiting."""
        with suppress(ValueError):
            self._waiting.remove(turn)
            return True
        return False

    def _forget_the_parent(self) -> None:
        """Clear the queue in a forked child, which has none of the waiting threads."""
        if self._process != os.getpid():
            self._process, self._waiting = os.getpid(), deque()
