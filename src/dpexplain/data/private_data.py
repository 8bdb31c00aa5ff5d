"""Private rows with the labels of a black box. Rows are never printed or returned, and every release from them is counted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeVar, Unpack, cast

import numpy as np

from dpexplain.arguments import quote
from dpexplain.core.answer_scale import AnswerScale
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.row_hash import shard_keys
from dpexplain.data.facts import PublicFacts
from dpexplain.domain import DomainLike
from dpexplain.errors import DataError, DomainError, DpexplainError, ParameterError
from dpexplain.ledger.book import Book
from dpexplain.ledger.cap import Cap
from dpexplain.ledger.port import Account, Ledger, Request, Reservation, Settled, Settlement
from dpexplain.mechanisms.door import PlanResult, run_plans
from dpexplain.mechanisms.ports import ChangeDetecting, Closable, DivisibleRows, Noise, Plan, RelabelledRows, Rows
from dpexplain.mechanisms.setting import Setting
from dpexplain.privacy.budget import USED_MODEL_ANSWERS, Budget, Guarantee, warn_if_weak
from dpexplain.privacy.events import quanta_up
from dpexplain.privacy.model_card import ModelCard
from dpexplain.privacy.person_guarantees import PersonGuarantees
from dpexplain.registration.label_file import LabelFile
from dpexplain.registration.labels import Labeller
from dpexplain.registration.options import OptionKeywords, RegistrationOptions, Where, document_options
from dpexplain.registration.registered import Registered

R = TypeVar("R")


class PrivateData:
    """Sensitive records with a model's answers. They answer only bounded questions of releases and explainers, which pay for each answer.

    `rows` is any data frame, list of dicts, dict of columns, array (for `Domain.encoded`), or texts. Labels come from `model`, asked once
    about the rows as given (and before that about 64 made-up records, to see whether its answers are what is declared), or from `labels`.
    Every option is explained under `__init__`; `scan` and `cluster` take the same ones.
    """

    facts: PublicFacts

    @document_options
    def __init__(
        self, rows: Any, domain: DomainLike, *, model: Any = None, labels: Any = None, **options: Unpack[OptionKeywords]
    ) -> None:
        from dpexplain.registration import in_memory  # imported here because numba takes longer to load than all the rest

        _require_domain(domain)
        terms, classes = RegistrationOptions(**options).split_classes(model)
        self._keep(replace(in_memory.register_in_memory(rows, domain, model, labels, terms), classes=classes))

    @classmethod
    @document_options
    def scan(
        cls,
        files: Where,
        domain: DomainLike,
        *,
        label: str | None = None,
        model: Any = None,
        progress: bool = True,
        **options: Unpack[OptionKeywords],
    ) -> PrivateData:
        """Rows that stay in Parquet files and are read anew for each question, a bounded number at a time.

        `files` is a file, a folder, a pattern such as "rows/*.parquet", an address such as "s3://…", or a list of these. Labels come from
        the column `label` (booleans; classes, +1 where they are `target`; or numbers in [-1, 1]) or from `model`, which is asked once
        about every row, its answers being stored in an unnamed temporary file of 8 bytes a row. The rest is as for the constructor, and so are
        the answers. Files that change after this are refused. `progress` shows a bar on a terminal when reading takes long.
        """
        from dpexplain.registration import scanning

        _require_domain(domain)
        terms, classes = RegistrationOptions(**options).split_classes(model)
        labels = scanning.labels_from(label, model, domain, terms)
        registered = scanning.register_streamed(files, domain, labels, LabelFile.temporary, terms, progress=progress)
        return cls.from_registered(replace(registered, classes=classes))

    @classmethod
    @document_options
    def cluster(
        cls,
        files: Where,
        domain: DomainLike,
        *,
        label: str | None = None,
        model: Any = None,
        address: str | None = None,
        workers: int | None = None,
        **options: Unpack[OptionKeywords],
    ) -> PrivateData:
        """Rows held in memory by the workers of a Ray cluster, each reading its own row groups of the files.

        `address` is that of a running cluster, "auto" for one on this machine; without it Ray is started here, with two workers. A
        worker that is lost is started again by Ray, reads its rows again and answers. The workers ask the `model`, each about the
        rows that it holds; the model must answer the same each time. The rest is as for `scan`. `close()` frees the workers.
        """
        from dpexplain.registration import scanning

        _require_domain(domain)
        terms, classes = RegistrationOptions(**options).split_classes(model)
        labels = scanning.labels_from(label, model, domain, terms)
        registered = scanning.register_clustered(files, domain, labels, terms, address=address, workers=workers)
        return cls.from_registered(replace(registered, classes=classes))

    @classmethod
    def from_registered(cls, registered: Registered) -> PrivateData:
        """Private data from rows that registration has read, labelled and encoded."""
        data = cls.__new__(cls)
        data._keep(registered)
        return data

    def _keep(self, registered: Registered) -> None:
        self._rows, self._terms, self.facts = registered.rows, registered.terms, PublicFacts.of(registered)
        self._keys = registered.keys  # a hash of each row's owner, which decides its shard; None without owners
        self._ledgers: dict[str, Ledger] = {}
        self._elsewhere: dict[str, Guarantee] = {}  # releases that other ledgers paid for
        self._uses: set[str] = set()  # what guarantees have to mention beside the price
        self._shards: tuple[PrivateData, ...] = ()
        self._wholes: tuple[str, ...] = ()  # names of the data that these are a shard of
        cap = self._terms.cap
        self._cap = None if cap is None else Cap(cap, self.setting.neighbours, lambda: self.spent_quanta)

    @property
    def domain(self) -> DomainLike:
        return self.facts.domain

    @property
    def answer_scale(self) -> AnswerScale:
        """The units of the model's answers, as declared."""
        return self.facts.scale

    @property
    def size(self) -> int:
        """The public row count m̄."""
        return self.facts.setting.size

    @property
    def setting(self) -> Setting:
        """The public facts a plan may use."""
        return self.facts.setting

    @property
    def name(self) -> str:
        return self.facts.name

    @property
    def spent(self) -> Guarantee:
        """Everything ever released from these rows, over all releases, explainers and ledgers that were opened on them.

        After `split`, one person's rows are in one shard only, so it is the worst shard's total (`proofs/parallel.md`).
        """
        if self._shards:
            return self._worst_shard()
        deltas = [ledger.account.budget.delta for ledger in self._ledgers.values()]
        delta = min([*deltas, *(one.delta for one in self._elsewhere.values())], default=1e-6)
        return self.qualify(Guarantee.of_quanta(self.spent_quanta, delta, self.setting.neighbours))

    @property
    def remaining(self) -> Guarantee | None:
        """What may still be released under the data set's `cap`; None where none was declared. After `split`, each shard has a cap of its own."""
        return None if self._cap is None else self._cap.state.remaining

    @property
    def model_card(self) -> ModelCard | None:
        """How private the model's training was, as declared; None where nothing was declared."""
        return ModelCard.read(self._terms.model_card)

    @property
    def guarantees(self) -> PersonGuarantees:
        """The guarantees of everything released so far, for a person in these data, in the model's training data (by its card), and in both."""
        return PersonGuarantees.of(self.spent, self.size, self.model_card)

    def qualify(self, guarantee: Guarantee) -> Guarantee:
        """The guarantee with what accounting does not cover: unpaid reads, noise from a seed or by the paper's formulas, answers of the model."""
        return guarantee.qualify(self._uses) if self._uses else guarantee

    def _worst_shard(self) -> Guarantee:
        each = [shard.spent for shard in self._shards]
        worst = next((one for one in each if not one.private), max(each, key=lambda one: one.mu))
        subject = f"Everything released so far from {len(each)} disjoint shards (the worst shard's total)"
        return replace(worst, delta=min(one.delta for one in each), subject=subject).qualify(self._used_anywhere())

    def _used_anywhere(self) -> set[str]:
        """What was used beside the price on these data or a shard of them: a note about one shard is not lost because another one cost more."""
        return self._uses.union(*(shard._used_anywhere() for shard in self._shards))

    @property
    def spent_quanta(self) -> int:
        """The same total in the ledgers' integer unit of μ²."""
        here = sum(ledger.state().spent_quanta for ledger in self._ledgers.values())
        return here + sum(quanta_up(Fraction(one.mu) ** 2) for one in self._elsewhere.values())

    @property
    def ledgers(self) -> tuple[Ledger, ...]:
        """The ledgers on which releases and explainers of these data spend."""
        return tuple(self._ledgers.values())

    @property
    def private_rows(self) -> Rows:
        """The private rows themselves. Their answers are exact and private: for the door and for offline evaluation only."""
        return self._rows

    @property
    def relabellable(self) -> bool:
        """Whether another model can label the rows as well: a public fact about where they are stored."""
        return isinstance(self._rows, RelabelledRows)

    def with_rows(self, rows: Rows) -> PrivateData:
        """New private data with the same public facts, options and model, and other rows. Nothing has been spent on them, and no cap
        holds them. Offline only."""
        terms = replace(self._terms, cap=None)
        other = PrivateData.from_registered(Registered(rows, self.domain, terms, self.size, self.labeller))
        other.facts = replace(other.facts, setting=self.setting)
        return other

    def wrap_rows(self, wrap: Callable[[Rows], Rows]) -> None:
        """Put `wrap(rows)` in the place of the rows, for everything opened on these data. Offline only."""
        self._rows = wrap(self._rows)

    def attach_model(self, labeller: Labeller) -> None:
        """Set the black box that is asked about public rows, where labels were computed elsewhere."""
        self.facts = replace(self.facts, labeller=labeller)

    @property
    def targets(self) -> tuple[Any, ...]:
        """All classes of the model, where all are to be explained (`target="all"`)."""
        return self.facts.targets

    @property
    def labeller(self) -> Labeller | None:
        """Asks the black box about public rows; None where only its answers about the private ones were registered."""
        return self.facts.labeller

    @property
    def column_model(self) -> Callable[[Matrix], Vector] | None:
        """The black box as a function of encoded rows; None where there is none to ask, or the domain cannot be decoded."""
        return self.facts.column_model

    def account(self, budget: Budget) -> Account:
        """The ledger account of these data with this budget."""
        self._require_whole()
        warn_if_weak(budget, self.size)
        return Account(self.name, self.facts.fingerprint, budget, self.setting.neighbours)

    def attach(self, ledger: Ledger, uses: Collection[str]) -> None:
        """Count what this ledger spends among everything spent on these data.

        From then on every guarantee about them states what its requests use beside the price, and what those of earlier processes used.
        """
        self._require_whole()
        self._ledgers[ledger.identity] = ledger
        self._uses.update(uses, ledger.state().uses)
        if isinstance(ledger, Book):
            self._count_wholes(ledger)

    def _count_wholes(self, ledger: Book) -> None:
        """Count what this ledger paid for the whole data before they were split, such as a domain that was found in them."""
        delta, about = ledger.account.budget.delta, self.setting.neighbours
        for name in self._wholes:
            if spent := ledger.spent_by(name):
                self._elsewhere[f"{ledger.identity} {name}"] = Guarantee.of_quanta(spent, delta, about)

    def reserve_many(self, ledger: Ledger, requests: Sequence[Request]) -> list[Reservation | Settled | DpexplainError]:
        """Reserve on `ledger`, one of those of these data, what the data set's cap allows; a refusal does not stop the others."""
        return ledger.reserve_many(requests) if self._cap is None else self._cap.reserve_many(ledger, requests)

    def record_many(self, ledger: Ledger, answered: Sequence[tuple[Request, Settlement]]) -> list[Settled | DpexplainError]:
        """Reserve and settle answers that cost nothing."""
        return ledger.record_many(answered) if self._cap is None else self._cap.record_many(ledger, answered)

    def count_release(self, digest: str, paid: Guarantee) -> None:
        """Count a release that was made from these data elsewhere, by the SHA-256 of its file; nothing if one of their ledgers paid for it."""
        if paid.neighbours != self.setting.neighbours:
            raise ParameterError(
                f"the release protects {paid.neighbours.describe()}, and these data {self.setting.neighbours.describe()}: their "
                "guarantees cannot be added. Register the data as they were registered for the release"
            )
        ledgers = self._ledgers.values()
        if not any(done.answer.get("sha256") == digest for ledger in ledgers for done in ledger.settled()):
            self._elsewhere[digest] = paid
        if paid.model_answers:
            self._uses.add(USED_MODEL_ANSWERS)

    def run_plans(self, paid: Sequence[tuple[Plan[R], int]], noise: Noise, *, private: bool = True) -> Iterator[PlanResult[R]]:
        """Run each plan on the rows, within the quanta that were reserved for it. Plans about local questions share one read of the rows."""
        return run_plans(self._rows, paid, noise, private=private)

    def require_readable(self) -> None:
        """Raise RowsUnavailable, before anything is spent, if rows outside this process's memory are not those that were registered."""
        if isinstance(self._rows, ChangeDetecting):
            self._rows.require_unchanged()

    def close(self) -> None:
        """Free resources outside this process, such as a cluster's workers. The data cannot be used afterwards."""
        if isinstance(self._rows, Closable):
            self._rows.close()

    def split(self, shards: int) -> tuple[PrivateData, ...]:
        """Disjoint parts for parallel use, with size m̄/k each; these data themselves can then be used no more.

        A row's shard follows from a public hash of its owner (the declared unit), or else of its own content: no other row's presence changes
        it (`proofs/parallel.md`), and the same rows split the same way in every process and order, so that each shard's ledger always
        refers to the same rows.
        """
        self._require_whole()
        if not (isinstance(shards, int) and shards >= 2):
            raise ParameterError(f"shards must be a whole number of at least 2, got {quote(shards)}")
        if self._ledgers:
            raise DataError("these data are in use by a release or an explainer. Split data before anything is opened on them")
        rows = self._rows
        if not isinstance(rows, DivisibleRows):
            raise DataError("rows of this kind cannot be split. Register each shard as data of its own")
        keys = shard_keys(rows.labelled_pieces) if self._keys is None else self._keys()
        self._shards = tuple(self._shard(rows, np.flatnonzero(keys % shards == i), keys, i, shards) for i in range(shards))
        self._rows = cast(Rows, _SplitRows())
        return self._shards

    def _shard(
        self, rows: DivisibleRows, chosen: np.ndarray[Any, Any], keys: np.ndarray[Any, Any], index: int, of: int
    ) -> PrivateData:
        size = max(self.size // of, 1)
        if len(chosen) > 2 * size:
            raise DataError("one shard would hold more than twice its share of the rows. Split into fewer shards")
        terms = replace(self._terms, name=f"{self.name}, hashed shard {index + 1} of {of}")
        part, part_keys = rows.select(chosen, most=2 * size), keys[chosen] // of
        found = PrivateData.from_registered(
            Registered(
                part, self.domain, terms, size, self.labeller, lambda: part_keys, scale=self.answer_scale, classes=self.targets
            )
        )
        found._wholes = (*self._wholes, self.name)
        return found

    def _require_whole(self) -> None:
        if self._shards:
            raise DataError("these data were split, and a row must be asked in one place only. Use the shards")

    def __repr__(self) -> str:
        """Public facts only."""
        protected = self.setting.neighbours.describe()
        return f"PrivateData({self.name!r}, size={self.size}, {self.domain.width} encoded columns; protects {protected})"

    def __reduce__(self) -> Any:
        raise TypeError("private data are not pickled. Register them again where they are needed")


def _require_domain(domain: Any) -> None:
    """Raise DomainError unless `domain` has a domain's methods."""
    if isinstance(domain, type) or not hasattr(domain, "encode_query"):
        raise DomainError(f"the domain cannot be {quote(domain)}. Pass dpx.Domain([dpx.Numeric(…), …]), or dpx.Domain.load(file)")


class _SplitRows:
    """Placeholder for rows that were split: every question raises DataError."""

    def __getattr__(self, question: str) -> Any:
        raise DataError("these data were split, and a row must be asked in one place only. Use the shards")
