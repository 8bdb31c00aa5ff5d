"""The interactive façade: every answer is paid for before a row is read, and stored before it leaves."""

from __future__ import annotations

from dataclasses import replace
from threading import RLock
from typing import Any, Protocol
from uuid import uuid4

import numpy as np

from dpexplain.answers import Answers, answer_all
from dpexplain.core.arrays import Vector
from dpexplain.data import PrivateData
from dpexplain.domain import DomainLike
from dpexplain.errors import BudgetExhausted, NotPrivateError, ParameterError
from dpexplain.explanation import Explanation
from dpexplain.ledger import open_ledger
from dpexplain.ledger.port import Ledger, Request, Settled
from dpexplain.mechanisms.base import AsksModel, Mechanism, Outcome
from dpexplain.mechanisms.basic import Basic
from dpexplain.mechanisms.history import History, Released
from dpexplain.mechanisms.ports import Noise
from dpexplain.mechanisms.start import Start
from dpexplain.noise.secure import SecureNoise
from dpexplain.privacy.budget import Budget, Guarantee
from dpexplain.privacy.events import price


class FreeAnswers(Protocol):
    """What was released already and explains for nothing: a `Release`."""

    @property
    def domain(self) -> DomainLike: ...

    def explain(self, record: Any) -> Explanation: ...


class Explainer:
    """Answers "why?" about one point at a time, from a total budget, until it is spent.

    `ledger` makes spending durable ("sqlite:///…", "postgresql://…" or a Ledger); None keeps it in memory. `noise` is secure unless a
    test or experiment passes a seeded one. With `release=`, adaptive answers may start from that release, and answers go on from it for
    nothing once the budget is gone.
    """

    def __init__(
        self,
        data: PrivateData,
        budget: Budget,
        mechanism: Mechanism | None = None,
        *,
        ledger: Ledger | str | None = None,
        noise: Noise | None = None,
        release: FreeAnswers | None = None,
    ) -> None:
        if release is not None and release.domain != data.domain:
            raise ParameterError("release= was made for another domain: pass a release of these data")
        self._release = release
        self._data, self._mechanism = data, _informed(mechanism or Basic(), data)
        self._quantity = self._mechanism.to_dict().get("quantity")  # None: the local optimum, as a release answers
        if release is not None and self._quantity is not None:
            raise ParameterError(f"a release answers with local optima, not with {self._quantity}: leave out release=")
        if not self._mechanism.private and ledger is not None:
            raise NotPrivateError("this mechanism is for offline reproduction and is not private: use it without a ledger")
        self._ledger = open_ledger(ledger, data.account(budget))
        self._noise: Noise = noise or SecureNoise()
        self._history = History(data.domain, lambda: self._qualified(data.spent))
        self._read, self._lock = 0, RLock()
        data.attach(self._ledger, private=self._mechanism.private)

    @property
    def spent(self) -> Guarantee:
        """Everything this budget has paid for, reservations included."""
        return self._qualified(self._ledger.state().spent)

    @property
    def remaining(self) -> Guarantee:
        return self._ledger.state().remaining

    @property
    def history(self) -> History:
        """Everything released so far, by every process on this ledger."""
        with self._lock:
            for done in self._ledger.settled(after=self._read):
                answer = done.answer
                if self._of_this_kind(answer):
                    self._history.append(Released(answer["point"], answer["values"], answer["copied"], answer["details"]))
                self._read = done.position
            return self._history

    def _of_this_kind(self, answer: dict[str, Any]) -> bool:
        """A release on the same ledger answers no single query, and other mechanisms' numbers may mean something else."""
        return "point" in answer and answer["details"].get("quantity") == self._quantity

    def explain(self, record: Any, *, request_id: str | None = None) -> Explanation:
        """A private explanation of the model at `record`. Raises BudgetExhausted before touching a row, unless there is a release.

        Asking again with the same `request_id` returns the same answer and spends nothing.
        """
        return self._explain_at(self._data.domain.encode_query(record), record, request_id)

    def explain_many(self, records: Any) -> Answers:
        """Explain each record of a frame or list, in order, with a progress bar when there are many.

        All records are checked before anything is spent. At the first refusal it stops: answers up to there are kept, they are paid for,
        and `.refusal` says why there are no more.
        """
        points = self._data.domain.encode_queries(records)
        separate = self._data.domain.separate(records)
        return answer_all(list(zip(points, separate, strict=True)), lambda asked: self._explain_at(*asked))

    def _explain_at(self, point: Vector, record: Any, request_id: str | None = None) -> Explanation:
        self._data.require_readable()
        plan = self._mechanism.plan(point, self._data.setting, self.history, self._hint(record))
        body = {"point": point.tolist(), "mechanism": self._mechanism.to_dict()}
        try:
            reserved = self._ledger.reserve(Request(request_id or uuid4().hex, body, plan.events))
        except BudgetExhausted:
            if self._release is None:
                raise
            return self._from_release(self._release, record, request_id)
        if isinstance(reserved, Settled):
            return self._explanation(reserved, record)
        outcome = plan.run(self._data._rows, self._noise)
        return self._explanation(self._ledger.settle(reserved, outcome.events, _answer(point, outcome)), record)

    def _hint(self, record: Any) -> Start | None:
        """Where the release would start, and two of its standard errors as the guess of how far off that is."""
        if self._release is None:
            return None
        free = self._release.explain(record)
        if free.error is None:
            return None
        return Start(free.values, 2 * float(np.linalg.norm(free.error)), "release")

    def _from_release(self, release: FreeAnswers, record: Any, request_id: str | None) -> Explanation:
        """The free answer, under the larger of the two totals: what these data have spent, and what the release cost."""
        free = release.explain(record)
        total = max(self._qualified(self._data.spent), free.guarantee, key=lambda guarantee: guarantee.mu)
        details = {**free.details, "budget": "exhausted, so this answer comes from the release and costs nothing"}
        return replace(free, guarantee=total, request_id=request_id, details=details)

    def _explanation(self, done: Settled, record: Any) -> Explanation:
        answer, neighbours = done.answer, self._data.setting.neighbours
        cost = Guarantee.of_quanta(price(done.events), self._mechanism.delta, neighbours, subject="This answer")
        return Explanation(
            values=np.array(answer["values"]),
            names=self._data.domain.names,
            point=np.array(answer["point"]),
            cost=self._qualified(cost),
            guarantee=self._qualified(self._data.spent),
            error=None if answer["error"] is None else np.array(answer["error"]),
            copied=answer["copied"],
            request_id=done.request_id,
            details=answer["details"],
            domain=self._data.domain,
            record=record,
        )

    def _qualified(self, guarantee: Guarantee) -> Guarantee:
        """Says so when the mechanism is for reproduction only."""
        if self._mechanism.private:
            return guarantee
        return replace(
            guarantee, private=False, note="the paper's own calibration reads an exact gradient norm without paying for it."
        )


def _informed(mechanism: Mechanism, data: PrivateData) -> Mechanism:
    """With the black box at hand where the mechanism can use it and there is one to ask."""
    model = data.column_model
    return mechanism if model is None or not isinstance(mechanism, AsksModel) else mechanism.asking(model)


def _answer(point: Vector, outcome: Outcome) -> dict[str, Any]:
    """What the ledger keeps of an answer: all of it public."""
    return {
        "point": point.tolist(),
        "values": outcome.values.tolist(),
        "error": None if outcome.error is None else outcome.error.tolist(),
        "copied": outcome.copied,
        "details": outcome.details,
    }
