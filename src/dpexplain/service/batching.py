"""Answers questions that are waiting at the same time in one batch.

One thread takes whatever waits, answers it as one batch (shared commits, one read of the rows) and hands the answers out; what arrives meanwhile is the next
batch, with the next questions of those who were answered just now. So a busy service reads the rows once for many callers and a quiet one answers at
once. No caller waits for a turn and for other writers of the ledger longer than `patience`.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from dpexplain.errors import LedgerBusy, LedgerUnavailable
from dpexplain.ledger.patience import waiting_until

Q = TypeVar("Q")
A = TypeVar("A")
PATIENCE = 5.0  # seconds
LINGER = 0.004  # seconds
TURNS = 3  # of an event loop, until what arrived before them has been read


@dataclass(slots=True, eq=False)
class Waiting(Generic[Q, A]):
    question: Q
    deadline: float
    answer: Future[A] = field(default_factory=Future)


class Batcher(Generic[Q, A]):
    """`answer` takes up to `most` questions and returns an answer or an error for each."""

    def __init__(self, answer: Callable[[Sequence[Q]], Sequence[A | Exception]], most: int, patience: float = PATIENCE) -> None:
        self._answer, self._most, self._patience = answer, most, patience
        self._waiting: deque[Waiting[Q, A]] = deque()
        self._changed = threading.Condition()
        self._worker: threading.Thread | None = None
        self._closed = False

    async def ask(self, question: Q) -> A:
        """Return the answer to `question`, or raise its error. LedgerUnavailable if its turn does not come in time."""
        waiting: Waiting[Q, A] = Waiting(question, time.monotonic() + self._patience)
        with self._changed:
            self._start()
            self._waiting.append(waiting)
            self._changed.notify()
        timer = asyncio.get_running_loop().call_later(self._patience, self._expire, waiting)
        try:
            return await asyncio.wrap_future(waiting.answer)
        finally:
            timer.cancel()

    def close(self) -> None:
        """Answer all waiting questions, and stop."""
        with self._changed:
            self._closed, worker = True, self._worker
            self._changed.notify()
        if worker is not None:
            worker.join()

    def _start(self) -> None:
        if self._worker is None:
            self._worker = threading.Thread(target=self._run, name="answers", daemon=True)
            self._worker.start()

    def _run(self) -> None:
        expected = 0
        while batch := self._take(expected):
            try:
                with waiting_until(min(one.deadline for one in batch)):
                    answers: Sequence[A | Exception] = self._answer([one.question for one in batch])
            except LedgerBusy as error:
                batch, answers = self._keep_patient(batch, error)
            except Exception as error:
                answers = [error] * len(batch)
            expected = len(batch) + len(self._waiting)  # those who wait, and those who are about to be answered
            for one, answer in zip(batch, answers, strict=True):
                deliver(one.answer, answer)

    def _keep_patient(self, batch: Sequence[Waiting[Q, A]], error: LedgerBusy) -> tuple[list[Waiting[Q, A]], list[A | Exception]]:
        """After a batch that waited until the first of its callers had no time left: those whose time is up, with the error. The others wait again.

        A ledger that is busy before that has not made anybody wait, and would be asked without pause: all get the error.
        """
        now = time.monotonic()
        expired = [one for one in batch if one.deadline <= now] or list(batch)
        with self._changed:
            self._waiting.extendleft(one for one in reversed(batch) if one not in expired)
        return expired, [error] * len(expired)

    def _take(self, expected: int) -> list[Waiting[Q, A]]:
        """The questions that wait now; an empty list after `close`. Questions of disconnected callers are left out."""
        with self._changed:
            while True:
                self._linger(expected)
                taken = [self._waiting.popleft() for _ in range(min(len(self._waiting), self._most))]
                taken = [one for one in taken if one.answer.running() or one.answer.set_running_or_notify_cancel()]
                if taken or (self._closed and not self._waiting):
                    return taken
                if not self._waiting:
                    self._changed.wait()

    def _linger(self, expected: int) -> None:
        """Wait a moment for callers that were answered just now: most ask again at once, and questions answered together take less time each."""
        end = time.monotonic() + LINGER
        while 0 < len(self._waiting) < min(expected, self._most) and not self._closed and (left := end - time.monotonic()) > 0:
            self._changed.wait(left)

    def _expire(self, waiting: Waiting[Q, A]) -> None:
        with self._changed:
            if waiting not in self._waiting:
                return
            self._waiting.remove(waiting)
        deliver(
            waiting.answer,
            LedgerUnavailable(
                "other questions held the ledger for too long. Nothing was released. Ask again with the same request id"
            ),
        )


class TurnBatcher(Generic[Q, A]):
    """Answers questions that have arrived by now in one call, on the event loop's own thread: for answers too quick to wait for others.

    What has arrived takes TURNS turns of the loop to be read: one sees its bytes, one starts its request, one asks. No clock is waited for.
    `answer` takes up to `most` questions and returns an answer or an error for each. `callers` is how many there are, 0 where that is not known:
    when all of them wait, nobody else can ask, and they are answered at once.
    """

    def __init__(
        self, answer: Callable[[Sequence[Q]], Sequence[A | Exception]], most: int, callers: Callable[[], int] = lambda: 0
    ) -> None:
        self._answer, self._most, self._callers = answer, most, callers
        self._waiting: list[tuple[Q, asyncio.Future[A]]] = []
        self._turning = False

    async def ask(self, question: Q) -> A:
        """Return the answer to `question`, or raise its error."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[A] = loop.create_future()
        self._waiting.append((question, future))
        if 0 < self._callers() <= len(self._waiting):
            self._answer_all()
        elif not self._turning:
            self._turning = True
            loop.call_soon(self._turn, loop, TURNS)
        return await future

    def _turn(self, loop: asyncio.AbstractEventLoop, left: int) -> None:
        if left > 1 and 0 < len(self._waiting) < self._most:
            loop.call_soon(self._turn, loop, left - 1)
        else:
            self._turning = False
            self._answer_all()

    def _answer_all(self) -> None:
        waiting, self._waiting = self._waiting, []
        waiting = [(question, future) for question, future in waiting if not future.done()]  # the caller has disconnected
        for start in range(0, len(waiting), self._most):
            batch = waiting[start : start + self._most]
            try:
                answers = self._answer([question for question, _ in batch])
            except Exception as error:
                answers = [error] * len(batch)
            for (_, future), answer in zip(batch, answers, strict=True):
                deliver(future, answer)


def deliver(future: Future[A] | asyncio.Future[A], answer: A | Exception) -> None:
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)
