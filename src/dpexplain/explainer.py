"""The interactive façade: every answer is paid for before a row is read, and stored before it leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from threading import RLock
from typing import Any, Protocol, TypeVar, cast
from uuid import uuid4

import numpy as np

from dpexplain.answers.baseline import Baseline, declared_baseline
from dpexplain.answers.contributions import AVERAGE
from dpexplain.answers.expectation import AskedData
from dpexplain.answers.explanation import Explanation
from dpexplain.answers.paid import PaidExplanations, answer_in_batches
from dpexplain.answers.past import PastAnswers
from dpexplain.answers.stored import explanation_of, refusal_of, stored_answer
from dpexplain.arguments import require_kind, require_method
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.plane import Plane
from dpexplain.data import PrivateData
from dpexplain.data.spending import Bought, PlannedRequest, Spending
from dpexplain.domain import Domain, DomainLike, QueryRules, read_queries, read_query
from dpexplain.domain.queries import Extra, Notes, OnError
from dpexplain.errors import BudgetExhausted, DpexplainError, NotPrivateError, ParameterError
from dpexplain.ledger.port import Ledger, Settled
from dpexplain.mechanisms.adaptive import default_mechanism
from dpexplain.mechanisms.history import History
from dpexplain.mechanisms.ports import HistoryFree, Mechanism, Noise, Plan, UsesAnswers, UsesModel
from dpexplain.mechanisms.setting import Outcome, WithModel
from dpexplain.mechanisms.start import Start
from dpexplain.privacy.budget import Budget, Guarantee
from dpexplain.privacy.events import price

T = TypeVar("T")
MAX_BATCH = 32  # questions that share a read of the rows, and so many reservations a crash can leave without answers
MAX_BATCH_BYTES = 1 << 25  # of the sums they share it with


class FreeAnswers(Protocol):
    """A source of free answers that was paid for before: a `Release`."""

    @property
    def domain(self) -> DomainLike: ...

    @property
    def guarantee(self) -> Guarantee: ...

    @property
    def average(self) -> Vector:
        """The released means of the encoded columns."""
        ...

    @property
    def digest(self) -> str:
        """The SHA-256 of its file: a ledger that paid for it has it, too."""
        ...

    def explain(self, record: Any, *, plane: Plane | None = None, extra: Extra = "refuse", clip: bool = False) -> Explanation: ...


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """A record that fits the domain, as given and as an encoded point, with its request id."""

    point: Vector
    record: Any
    id: str
    notes: Notes = field(default_factory=dict)


class Explainer:
    """Answers "why?" about one point at a time, from a total budget, until it is spent.

    - `mechanism` decides how an answer is computed and what it costs. By default it is `Adaptive(epsilon=0.1, delta=1e-6)`: the first answer buys sums
      of all rows, and later answers use them at no cost.
    - `ledger` makes spending durable ("sqlite:///…", "postgresql://…" or a Ledger); None keeps it in memory. `noise` is secure by default.
    - `release` is a release of the same data. Adaptive descents may start from it, and it answers at no cost once the budget is spent.
    - `baseline` is a public record that contributions are compared with, in place of the average; a descent without one takes the middle of the domain.
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
        baseline: Any = None,
    ) -> None:
        _require_arguments(data, budget, mechanism, noise)
        if release is not None and release.domain != data.facts.domain:
            raise ParameterError("release= has a different domain from the data. Pass a release of these data")
        self._data, self._facts, self._release = data, data.facts, release
        self._mechanism = _with_model(mechanism or default_mechanism(), data.facts.column_model)
        self._alone = self._mechanism if isinstance(self._mechanism, HistoryFree) else None
        self._described = self._mechanism.to_dict()
        self._quantity = self._described.get("quantity")
        self._plane = self._described.get("plane") or (None if self._quantity else "paper")
        if release is not None and self._quantity is not None:
            raise ParameterError(f"a release answers with planes, not with {self._quantity}. Leave out release=")
        if release is not None and self._plane == "anchored":
            raise ParameterError("a release does not know the model's answer at a query. Leave out release=, or plane='anchored'")
        self._baseline = _baseline(baseline, release, data.facts.domain)
        self._setting = data.facts.setting.for_explainer(None if self._baseline is None else self._baseline.values)
        if not self._mechanism.private and ledger is not None:
            raise NotPrivateError("this mechanism is for offline reproduction and is not private. Use it without a ledger")
        asked_model = isinstance(self._mechanism, WithModel)
        private, by_paper = self._mechanism.private, self._described.get("calibration") == "paper"
        self._spending = Spending.open(
            data, budget, ledger, noise, private=private, model_answers=asked_model, paper_noise=by_paper
        )
        self._ledger = self._spending.ledger
        self._past: PastAnswers | None = None
        self._lock = RLock()
        if release is not None:
            data.count_release(release.digest, release.guarantee)

    def __repr__(self) -> str:
        return f"<Explainer: {type(self._mechanism).__name__} on {self._data!r}. {self.remaining}>"

    @property
    def spent(self) -> Guarantee:
        """Everything this budget has paid for, reservations included."""
        return replace(self._qualify(self._ledger.state().spent), subject="Everything that this budget has paid for")

    @property
    def remaining(self) -> Guarantee:
        """What may still be spent: the rest of this budget, or of the data set's cap where that is less."""
        left = [one for one in (self._ledger.state().remaining, self._data.remaining) if one is not None]
        return min(left, key=lambda one: one.mu)

    @property
    def history(self) -> History:
        """Everything released so far, by every process on this ledger."""
        return self._read_history(answers=True)

    def _read_history(self, *, answers: bool) -> History:
        with self._lock:
            if self._past is None:
                empty = History(self._facts.domain, lambda: self._total, self._facts.scale, self._facts.column_model)
                self._past = PastAnswers(self._ledger, empty, (self._quantity, self._plane), self._facts.declared)
            return self._past.read(answers=answers)

    @cached_property
    def _uses_answers(self) -> bool:
        return not isinstance(self._mechanism, UsesAnswers) or self._mechanism.uses_answers(self._setting)

    def explain(self, record: Any, *, request_id: str | None = None, extra: Extra = "refuse", clip: bool = False) -> Explanation:
        """A private explanation of the model at `record`. Raises BudgetExhausted before touching a row, unless there is a release.

        Asking again with the same `request_id` returns the same answer and spends nothing. A value may be missing where the domain
        declares what stands for it; `extra="ignore"` leaves out fields that the domain does not declare, and `clip=True` asks about the
        nearest value within the bounds. `.notes` of the answer states how values were read.
        """
        point, notes = read_query(self._facts.domain, record, self._facts.other_columns, extra, clip)
        question = Question(point, record, request_id or uuid4().hex, notes)
        answers, refusal = self._answer([question])
        if refusal is not None:
            raise refusal
        return answers[0]

    def explain_many(
        self,
        records: Any,
        *,
        request_ids: Sequence[str] | None = None,
        extra: Extra = "refuse",
        clip: bool = False,
        on_error: OnError = "raise",
    ) -> PaidExplanations:
        """Explain each record of a frame or list, in order, with a progress bar when there are many.

        All records are checked before anything is spent. It stops at the first refusal and returns the answers before it, which
        are paid for; `.refusal` has the reason. Answers that do not build on each other (`Basic`, `Influence`) are paid for up to 32 at
        a time and then share one read of the rows; free ones (those of `Adaptive` after its first) share one durable commit. A crash can
        leave so many paid and unanswered; `request_ids`, one for each record, let the same call be repeated then, for nothing more. With
        `on_error="skip"` records that cannot be asked about are left out and cost nothing; `.skipped` says which and why.
        """
        read = read_queries(self._facts.domain, records, QueryRules(extra, clip, on_error, self._facts.other_columns))
        count = len(read.rows) + len(read.skipped)
        ids = [uuid4().hex for _ in range(count)] if request_ids is None else request_ids
        if len(ids) != count or len(set(map(repr, ids))) != count:
            raise ParameterError(f"{len(set(map(repr, ids)))} different request_ids for {count} records. Pass one for each")
        asked_ids = [ids[row] for row in read.rows]
        questions = [Question(*one) for one in zip(read.points, read.records, asked_ids, read.notes, strict=True)]
        answers = answer_in_batches(questions, self._answer, self._batch_size)
        answers.skipped = read.skipped
        return answers

    def explain_each(self, asked: Sequence[tuple[Any, str]]) -> list[Explanation | DpexplainError]:
        """Answer the questions of several callers, each a record and its request id, together: each is answered or refused by itself.

        Where answers do not build on each other, reservations share one durable commit, questions one read of the rows and answers
        another commit. The totals that answers state include everything that was paid for together.
        """
        read = [_outcome_of(partial(self._question, *one)) for one in asked]
        questions = [one for one in read if isinstance(one, Question)]
        with self._turn:
            answers = iter([answer for group in self._groups(questions) for answer in self._answer_each(*group)])
        return [next(answers) if isinstance(one, Question) else one for one in read]

    def _groups(self, questions: Sequence[Question]) -> Iterator[tuple[list[Question], list[PlannedRequest[Outcome]]]]:
        """Questions that can be answered together, with their plans: all, where answers do not build on each other. Else those up to the next one
        that has to be paid for, because only paid answers change what others find in the history."""
        if self._alone is not None:
            if questions:
                yield list(questions), self._requests(questions)
            return
        together: list[Question] = []
        requests: list[PlannedRequest[Outcome]] = []
        for one in questions:
            together.append(one)
            requests += self._requests([one])
            if requests[-1].plan.events:
                yield together, requests
                together, requests = [], []
        if together:
            yield together, requests

    @property
    def _turn(self) -> AbstractContextManager[Any]:
        """Where answers build on each other they are planned and paid for one after another: threads must not buy the same thing twice."""
        return self._lock if self._alone is None else nullcontext()

    def _answer_each(
        self, questions: Sequence[Question], requests: Sequence[PlannedRequest[Outcome]]
    ) -> list[Explanation | DpexplainError]:
        done, total = self._spending.answer_each(requests)
        return [self._finish(question, one, total) for question, one in zip(questions, done, strict=True)]

    def _finish(self, question: Question, done: Settled | DpexplainError, total: Guarantee) -> Explanation | DpexplainError:
        """The answer: what was bought, or the answer of the release where the budget is exhausted. Other errors are returned."""
        stated = self._qualify(total)
        if isinstance(done, Settled) and "stopped" not in done.answer:
            return self._explanation(done, question, stated)
        refusal = refusal_of(done, stated, lambda: self.remaining)
        if isinstance(refusal, BudgetExhausted) and self._release is not None:
            return self._from_release(self._release, question, stated)
        return refusal

    def _question(self, record: Any, request_id: str) -> Question:
        point, notes = read_query(self._facts.domain, record, self._facts.other_columns)
        return Question(point, record, request_id, notes)

    def _requests(self, questions: Sequence[Question]) -> list[PlannedRequest[Outcome]]:
        """Each question with its plan, and with what identifies it in the ledger: all of it is public."""
        about, store = {"mechanism": self._described, **self._facts.stated}, partial(stored_answer, declared=self._facts.declared)
        asked = [(one.id, {"point": one.point.tolist(), **about}, partial(store, one.point)) for one in questions]
        keep = None if self._alone is None else self._setting.keep  # others find what was stored in the ledger
        pairs = zip(asked, self._plans(questions), strict=True)
        return [PlannedRequest(name, body, plan, stored, keep) for (name, body, stored), plan in pairs]

    def __call__(self, records: Any, **options: Any) -> PaidExplanations:
        """`explain_many`, under the name that shap's explainers have for it."""
        return self.explain_many(records, **options)

    @property
    def _batch_size(self) -> int:
        """How many questions are answered at a time: one by the paper's own algorithms, whose stopping rule may end the stream with any answer."""
        if self._alone is None and not self._mechanism.private:
            return 1
        return max(min(MAX_BATCH, MAX_BATCH_BYTES // (8 * self._facts.domain.width**2)), 1)

    def _answer(self, questions: Sequence[Question]) -> tuple[list[Explanation], BudgetExhausted | None]:
        """Reserve all, up to the first that is refused; read the rows once; then draw noise for each, settle it, and only then go on to the next.

        Reservations are committed before a row is read: a crash over-counts and never under-counts. Where there is a release, it answers what the
        budget cannot pay for. Where answers build on each other, a question is planned when those that it builds on are settled.
        """
        bought, stopped = list[Bought](), cast(DpexplainError | None, None)
        with self._turn:
            for _, requests in self._groups(questions):
                more, stopped = self._spending.buy_in_order(requests, past_refusals=self._release is not None)
                bought += more
                if stopped is not None:
                    break
        pairs = zip(questions, bought, strict=False)  # refused questions are left over
        finished = [self._finish(question, one.outcome, one.total) for question, one in pairs]
        if stopped is not None and not isinstance(stopped, BudgetExhausted):
            raise stopped
        refusals = [one for one in (*finished, stopped) if isinstance(one, BudgetExhausted)]
        return [one for one in finished if isinstance(one, Explanation)], next(iter(refusals), None)

    def _plans(self, questions: Sequence[Question]) -> Sequence[Plan[Outcome]]:
        alone, mechanism, setting = self._alone, self._mechanism, self._setting
        if alone is not None:
            return [alone.plan_alone(one.point, setting) for one in questions]
        read = partial(self._read_history, answers=self._uses_answers)
        return [mechanism.plan(one.point, setting, read(), self._hint(one.record)) for one in questions]

    @property
    def _total(self) -> Guarantee:
        return self._qualify(self._data.spent)

    def _hint(self, record: Any) -> Start | None:
        """A starting point from the release, with two of its standard errors as the estimate of its distance."""
        if self._release is None or not self._uses_answers:
            return None
        free = self._ask_release(self._release, record)
        if free.error is None:
            return None
        state = free.values if self._plane != "fitted" else np.append(free.values, free.intercept or 0.0)
        return Start(state, 2 * float(np.linalg.norm(free.error)), "release")

    def _ask_release(self, release: FreeAnswers, record: Any) -> Explanation:
        """The release's answer about a record that was checked before, so that extra fields and bounds are not checked again."""
        is_table = isinstance(self._facts.domain, Domain)
        plane = cast(Plane, self._plane)  # not anchored: such an explainer has no release
        return release.explain(record, plane=plane, extra="ignore" if is_table else "refuse", clip=is_table)

    def _from_release(self, release: FreeAnswers, question: Question, total: Guarantee) -> Explanation:
        """The free answer, under everything these data have spent, the release included."""
        free = self._ask_release(release, question.record)
        details = {**free.details, "budget": "exhausted, so this answer comes from the release and costs nothing"}
        return replace(free, guarantee=total, request_id=question.id, details=details)

    def _explanation(self, done: Settled, question: Question, total: Guarantee) -> Explanation:
        facts = self._facts
        cost = Guarantee.of_quanta(price(done.events), self._mechanism.delta, facts.setting.neighbours, subject="This answer")
        return explanation_of(
            done.answer,
            question.notes,
            AskedData(facts.setting.size, facts.column_model is not None),
            self._baseline,
            cost=self._qualify(cost),
            guarantee=total,
            request_id=done.request_id,
            domain=facts.domain,
            record=question.record,
            scale=facts.scale,
        )

    def _qualify(self, guarantee: Guarantee) -> Guarantee:
        """The guarantee, with a note where noise follows the paper's formulas or came from a seed, or where the mechanism is not private."""
        stated = self._data.qualify(guarantee)
        if self._mechanism.private:
            return stated
        return replace(
            stated, private=False, note="the paper's own calibration reads an exact gradient norm without paying for it."
        )


def _outcome_of(work: Callable[[], T]) -> T | DpexplainError:
    try:
        return work()
    except DpexplainError as error:
        return error


def _require_arguments(data: Any, budget: Any, mechanism: Any, noise: Any) -> None:
    require_kind("data", data, PrivateData, "Register the rows first, dpx.PrivateData(rows, domain, model=…)")
    if data.facts.targets:
        raise ParameterError(
            "these data were registered with target='all', which is for releases. Register them with target= the class that the explainer explains"
        )
    require_kind("budget", budget, Budget, "Write Explainer(data, dpx.Budget(epsilon=1.0, delta=1e-6), mechanism)")
    if mechanism is not None:
        require_method("mechanism", mechanism, "plan", "Pass one such as dpx.Basic(epsilon=0.1, delta=1e-6)")
    if noise is not None:
        require_method("noise", noise, "standard_normal", "Leave it out. Only tests and experiments pass a seeded one")


def _baseline(record: Any, release: FreeAnswers | None, domain: DomainLike) -> Baseline | None:
    """The record to compare with: the declared one, or else the means of a release."""
    if record is not None:
        return declared_baseline(record, domain)
    return None if release is None else Baseline(release.average, AVERAGE)


def _with_model(mechanism: Mechanism, model: Callable[[Matrix], Vector] | None) -> Mechanism:
    """The mechanism with the data's black box, where there is one and the mechanism can use it."""
    return mechanism if model is None or not isinstance(mechanism, UsesModel) else mechanism.with_model(model)
