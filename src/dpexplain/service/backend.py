"""The two backends of a service: a release, whose answers are free, or private rows with a ledger, until the budget is spent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from typing import Any, Protocol

from anyio.to_thread import run_sync

from dpexplain.answers.contributions import Contributions
from dpexplain.answers.explanation import Explanation
from dpexplain.answers.paid import PaidExplanations
from dpexplain.core.answer_scale import AnswerScale
from dpexplain.core.arrays import Vector
from dpexplain.core.plane import Plane
from dpexplain.data import PrivateData
from dpexplain.domain import Binary, Domain, DomainLike, Numeric, TextDomain
from dpexplain.errors import DpexplainError, NotPrivateError, ParameterError, QueryError
from dpexplain.explainer import MAX_BATCH, Explainer
from dpexplain.ledger import Ledger
from dpexplain.mechanisms.ports import HistoryFree, Mechanism
from dpexplain.noise.secure import SecureNoise
from dpexplain.privacy.budget import SEEDED_NOISE, Budget, Guarantee
from dpexplain.privacy.person_guarantees import PersonGuarantees
from dpexplain.privacy.relation import Neighbours
from dpexplain.registration.cached_labels import Progress
from dpexplain.registration.options import RegistrationOptions
from dpexplain.registration.sources import labeller_of_model, register
from dpexplain.release.compiled import compile_release
from dpexplain.release.model_questions import answer_options, scale_of
from dpexplain.release.named import find_class
from dpexplain.release.reference_shapley import ShapleyReference, prepare, shapley_batch
from dpexplain.release.release import Release, load
from dpexplain.release.text_shapley import WordReference, prepare_words
from dpexplain.service.batching import Batcher, TurnBatcher
from dpexplain.service.config import AskedModel, ServiceConfig, require_servable
from dpexplain.service.connections import count_connections
from dpexplain.service.heads import HeadFile, HeadKeeper, open_checked
from dpexplain.service.release_answers import Composed, Question, ReleaseAnswers

LOCK_PATIENCE = 0.5  # seconds that a health check waits for another write to end
CURVE = 60  # points of the spending curve that a page draws


@dataclass(frozen=True, slots=True)
class SpendingSummary:
    """The state of the budget: all of it public."""

    spent: Guarantee
    remaining: Guarantee | None  # None: answers cost nothing
    budget: Budget | None
    answers: int | None
    exhausted: bool = False  # no further answer can be paid for
    people: PersonGuarantees | None = None  # by where a person's records are; None where the model has no card


class Answered(Protocol):
    """An answer that was given: an explanation, or what one is sent as."""

    @property
    def cost(self) -> Guarantee: ...

    def to_dict(self) -> dict[str, Any]: ...


class Backend(Protocol):
    """All methods are safe to call from several threads."""

    @property
    def domain(self) -> DomainLike: ...

    @property
    def scale(self) -> AnswerScale:
        """The units of answers."""
        ...

    @property
    def about(self) -> dict[str, Any]:
        """Public facts for the card: what answers, from how many rows, by which mechanism."""
        ...

    @property
    def targets(self) -> dict[str, Any] | None:
        """{"kind": "class" or "model", "names": […]} where several can be asked about."""
        ...

    async def ask(self, record: Any, request_id: str, target: str | None = None) -> Answered:
        """The answer about one record; questions that wait together may be answered together. ParameterError for an unknown `target`."""
        ...

    def explain_many(self, records: Sequence[Any], request_ids: Sequence[str], target: str | None = None) -> PaidExplanations:
        """All are checked before any is paid for; at a refusal the answers before it are kept."""
        ...

    def spending(self) -> SpendingSummary:
        """Read from the end of the ledger: as quick after a million answers."""
        ...

    def curve(self) -> tuple[tuple[int, float], ...]:
        """(answers given, ε spent by then), at most CURVE points."""
        ...

    def history(self, after: int, limit: int) -> list[dict[str, Any]]:
        """Stored answers, for owners."""
        ...

    def entries(self, after: int, limit: int) -> list[dict[str, Any]]:
        """The ledger's own lines, for owners."""
        ...

    def check(self) -> None:
        """Raise if it cannot answer now."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ReleaseBackend:
    """Answers by post-processing: nothing is spent and nothing is stored. With a model, contributions are SHAP values over the reference."""

    release: Release
    over: ShapleyReference | WordReference | None = None
    plane: Plane | None = None  # the release's own
    _over_targets: dict[str, ShapleyReference | WordReference | None] = field(default_factory=dict, init=False)
    _answers: ReleaseAnswers = field(init=False)
    _batcher: TurnBatcher[Question, Composed] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_answers", ReleaseAnswers(self.release, self.plane))
        object.__setattr__(self, "_batcher", TurnBatcher(self._answers.answer_each, MAX_BATCH, count_connections))
        if not self.release.guarantee.private or SEEDED_NOISE in self.release.guarantee.note:
            raise NotPrivateError(f"this release is not for publication: {self.release.guarantee}. Make one with secure noise")

    @property
    def domain(self) -> DomainLike:
        return self.release.domain

    @property
    def scale(self) -> AnswerScale:
        return self.release.scale

    @property
    def about(self) -> dict[str, Any]:
        return {
            "source": "release",
            "rows": self.release.size,
            "columns": self.domain.width,
            "mechanism": "release" if self.over is None else "shapley",
            "weight": self.release.weight.to_dict(),
        }

    @property
    def targets(self) -> dict[str, Any] | None:
        return {"kind": self.release.targets_kind, "names": list(self.release.targets)} if self.release.targets else None

    async def ask(self, record: Any, request_id: str, target: str | None = None) -> Answered:
        if self.over is None and self.release.reference is None:  # too quick to be worth a thread
            return await self._batcher.ask((record, request_id, target))
        return await run_sync(self.explain, record, request_id, target)

    def explain(self, record: Any, request_id: str, target: str | None = None) -> Explanation:
        answer = replace(self.release.explain(record, plane=self.plane, target=target), request_id=request_id)
        over = self._comparison_model(target)
        return answer if over is None else replace(answer, added=self._contributions_of(over, record, answer.point))

    def _contributions_of(self, over: ShapleyReference | WordReference, record: Any, point: Vector) -> Contributions:
        about = self.scale, self.release.guarantee, self.release.fingerprint
        if isinstance(over, WordReference):
            return over.explain([over.domain.query_text(record)], *about)[0]
        return shapley_batch(over, point[None], *about)[0]

    def _comparison_model(self, target: str | None) -> ShapleyReference | WordReference | None:
        """The model with the reference records of a target; None without a model, and for a target that is no class of the model."""
        if self.over is None or target is None:
            return self.over
        if target not in self._over_targets:
            reference, asked = self.release.of(target).reference, find_class(self.over.labeller.model, target)
            if reference is None or asked is None:
                self._over_targets[target] = None
            else:
                self._over_targets[target] = prepare(reference, replace(self.over.labeller, target=asked))
        return self._over_targets[target]

    def explain_many(self, records: Sequence[Any], request_ids: Sequence[str], target: str | None = None) -> PaidExplanations:
        if self.over is not None:
            found = [self.explain(record, request_id, target) for record, request_id in zip(records, request_ids, strict=True)]
            return PaidExplanations(iter(found), len(records))
        answers, more = self._answers.explain(records, target), self.release.target_details
        if answers.skipped:
            raise QueryError(answers.skipped[0].reason)
        asked = enumerate(zip(records, request_ids, strict=True))
        return PaidExplanations((answers.explanation_at(i, one, more, name) for i, (one, name) in asked), len(records))

    def spending(self) -> SpendingSummary:
        people = None if self.release.model_card is None else self.release.guarantees
        return SpendingSummary(self.release.guarantee, None, None, None, people=people)

    def curve(self) -> tuple[tuple[int, float], ...]:
        return ()

    def history(self, after: int, limit: int) -> list[dict[str, Any]]:
        del after, limit
        return []

    def entries(self, after: int, limit: int) -> list[dict[str, Any]]:
        del after, limit
        return []

    def check(self) -> None:
        """A release that was loaded can always answer."""

    def close(self) -> None:
        """Nothing is open."""


def open_with_model(release: Release, model: AskedModel) -> ReleaseBackend:
    """The model is asked about the reference records, or background texts, now: one that cannot answer is found before the first request."""
    if release.reference is None and not isinstance(release.domain, TextDomain):
        raise ParameterError(
            "[model] beside a [release] needs reference records. Make the release with --reference, or leave [model] out"
        )
    declared = RegistrationOptions(**answer_options(scale_of(release))) if model.terms.output is None else model.terms
    opened, target = model.source.open(release.domain), model.terms.target
    if target is None and release.targets:
        target = find_class(opened, release.targets[0])
    labeller = labeller_of_model(opened, release.domain, replace(declared, target=target))
    over = prepare_words(release, labeller) if release.reference is None else prepare(release.reference, labeller)
    return ReleaseBackend(release, over)


@dataclass(slots=True)
class LedgerBackend:
    """Answers from private rows, each paid for before a row is read."""

    data: PrivateData
    mechanism: Mechanism
    ledger: Ledger
    heads: HeadFile | None = None
    baseline: dict[str, Any] | None = None
    explainer: Explainer = field(init=False)
    _batcher: Batcher[tuple[Any, str], Explanation] = field(init=False)
    _keeper: HeadKeeper | None = field(default=None, init=False)
    _totals: list[int] = field(default_factory=list, init=False)  # quanta after each answer

    def __post_init__(self) -> None:
        require_servable(self.mechanism)
        paying: dict[str, Any] = {"ledger": self.ledger, "noise": SecureNoise(), "baseline": self.baseline}
        self.explainer = Explainer(self.data, self.ledger.account.budget, self.mechanism, **paying)
        self._batcher = Batcher(self.explain_each, MAX_BATCH)
        self._keeper = None if self.heads is None else HeadKeeper(self.ledger, self.heads)

    @property
    def domain(self) -> DomainLike:
        return self.data.domain

    @property
    def scale(self) -> AnswerScale:
        return self.data.answer_scale

    @property
    def about(self) -> dict[str, Any]:
        public = ("mechanism", "epsilon", "delta", "weight")
        shown = {name: value for name, value in self.mechanism.to_dict().items() if name in public}
        return {"source": "ledger", "rows": self.data.size, "columns": self.domain.width, **shown}

    @property
    def targets(self) -> None:
        return None

    async def ask(self, record: Any, request_id: str, target: str | None = None) -> Explanation:
        _require_no_target(target)
        return await self._batcher.ask((record, request_id))

    def explain_each(self, questions: Sequence[tuple[Any, str]]) -> list[Explanation | Exception]:
        """Records and their request ids, each answered or refused by itself."""
        return list(self.explainer.explain_each(questions))

    def explain_many(self, records: Sequence[Any], request_ids: Sequence[str], target: str | None = None) -> PaidExplanations:
        _require_no_target(target)
        return self.explainer.explain_many(records, request_ids=request_ids)

    def spending(self) -> SpendingSummary:
        state, account = self.ledger.state(), self.ledger.account
        count, left = self.ledger.answer_count(), state.remaining
        people = None if self.data.model_card is None else self.data.guarantees
        return SpendingSummary(state.spent, left, account.budget, count, self._is_exhausted(left), people)

    def _is_exhausted(self, left: Guarantee) -> bool:
        """Whether the next answer will be refused, whatever it is about; answers that may be free are never ruled out."""
        price = self.mechanism.to_dict()
        return isinstance(self.mechanism, HistoryFree) and Budget(price["epsilon"], price["delta"]).mu > left.mu

    def curve(self) -> tuple[tuple[int, float], ...]:
        totals, account = self._read_totals(), self.ledger.account
        step = max(-(-len(totals) // CURVE), 1)
        chosen = sorted({*range(step - 1, len(totals), step), len(totals) - 1} - {-1})
        return tuple((i + 1, _epsilon(totals[i], account.budget.delta)) for i in chosen)

    def _read_totals(self) -> list[int]:
        """Quanta after each answer so far, of all processes; only those since the last time are read."""
        known = self._totals  # replaced as a whole: another thread may do the same
        self._totals = known + self.ledger.totals(after=len(known))
        return self._totals

    def history(self, after: int, limit: int) -> list[dict[str, Any]]:
        found = islice(self.ledger.settled(after=after), limit)
        return [{"position": one.position, "request_id": one.request_id, "answer": without_file(one.answer)} for one in found]

    def entries(self, after: int, limit: int) -> list[dict[str, Any]]:
        delta = self.ledger.account.budget.delta
        lines: Iterator[Any] = islice(self.ledger.entries(after=after), limit)
        return [
            {
                "sequence": line.sequence,
                "time": line.time,
                "kind": line.kind,
                "request_id": line.request,
                "epsilon": _epsilon(line.quanta, delta),
                "running_epsilon": _epsilon(line.total, delta),
                "hash": line.hash,
            }
            for line in lines
        ]

    def check(self) -> None:
        self.data.require_readable()
        self.ledger.head()
        self.ledger.require_writable(LOCK_PATIENCE)

    def close(self) -> None:
        self._batcher.close()
        if self._keeper is not None:
            self._keeper.close()
        self.ledger.close()


def _require_no_target(target: str | None) -> None:
    """A mechanism that is paid for each answer explains the one class that the rows were registered with."""
    if target is not None:
        raise ParameterError(
            "this service explains one class. Leave target out, or ask a service that has a release with target='all'"
        )


def warm_up() -> None:
    """Load the compiled kernels, on made-up rows, so that the first caller does not wait for them."""
    rows = PrivateData({"a": [0.0, 1.0], "b": [0, 1]}, Domain([Numeric("a", 0, 1), Binary("b")]), labels=[0.0, 1.0])
    Explainer(rows, Budget(1.0, 1e-6)).explain({"a": 0.5, "b": 0})


@lru_cache(maxsize=4096)
def _epsilon(quanta: int, delta: float) -> float:
    return Guarantee.of_quanta(quanta, delta, Neighbours()).epsilon if quanta else 0.0


def open_backend(config: ServiceConfig, progress: Progress = iter, *, may_create: bool = True) -> Backend:
    """Load what the configuration names; mistakes in it are raised here, before the service starts."""
    if config.release is not None:
        release = load(config.release)
        if config.model is not None:
            return open_with_model(release, config.model)
        return ReleaseBackend(release if release.reference else compile_release(release), plane=config.plane)
    if config.rows is None:
        raise DpexplainError("the configuration names neither a release nor rows. Write [release] or [data]")
    warm_up()
    data = PrivateData.from_registered(register(config.rows.source, progress))
    heads = HeadFile(config.rows.heads)
    ledger = open_checked(config.rows.ledger, data.account(config.rows.budget), heads, may_create=may_create)
    try:
        return LedgerBackend(data, config.rows.mechanism, ledger, heads, config.rows.baseline)
    except BaseException:
        with suppress(DpexplainError):
            ledger.close()
        raise


def without_file(answer: dict[str, Any]) -> dict[str, Any]:
    """A stored answer without the file of a release, which may have megabytes, and without sums that are stored for later answers."""
    return {name: value for name, value in answer.items() if name not in ("file", "sums")}
