"""Private rows, labelled once by the black box. Nothing about them is printed or returned; everything released is counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from itertools import chain
from typing import Any, Protocol, cast, runtime_checkable

import narwhals as nw
import numpy as np
from scipy.sparse import issparse

from dpexplain import scanning
from dpexplain.backends.dense import DenseRows
from dpexplain.backends.distributed import ClusterRows
from dpexplain.backends.sparse import SparseRows
from dpexplain.backends.streaming import StreamedRows
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.domain import Domain, DomainLike
from dpexplain.domain.tables import plain_columns
from dpexplain.errors import DataError, ParameterError
from dpexplain.label_file import LabelFile
from dpexplain.labels import Labeller, Output, ask_model, check_labels
from dpexplain.ledger.port import Account, Ledger
from dpexplain.mechanisms.base import Setting
from dpexplain.mechanisms.ports import Rows, SingleRows
from dpexplain.privacy.budget import Budget, Guarantee
from dpexplain.privacy.relation import Neighbours, Relation

_CHUNK, _NUMBERS = 1 << 16, 1 << 22  # at most so many rows are encoded at a time, and fewer where they are wide: 32 MB


class PrivateData:
    """Sensitive records behind a wall: releases and explainers may ask them bounded questions, and pay.

    `rows` is any data frame, list of dicts, dict of columns, array (for `Domain.encoded`), or texts. Labels come from `model`, asked once
    about the rows as given, or from `labels`. `unit` names the column that says who owns a row; at most `max_rows_per_unit` of each
    owner's rows are kept, the first ones in order, whatever their values. `size` is the public row count m̄ that sums are divided by;
    it defaults to the number of rows kept, which is thereby stated as public. `name` tells data sets apart in a ledger.
    """

    def __init__(
        self,
        rows: Any,
        domain: DomainLike,
        *,
        model: Any = None,
        labels: Any = None,
        target: Any = 1,
        output: Output = "probability",
        unit: str | None = None,
        max_rows_per_unit: int = 1,
        relation: Relation | str = Relation.ADD_REMOVE,
        size: int | None = None,
        name: str = "data",
    ) -> None:
        if (model is None) == (labels is None):
            raise DataError("pass exactly one of model= (to label the rows) and labels= (already computed, in [-1, 1])")
        neighbours = Neighbours(Relation.parse(relation), unit, max_rows_per_unit)
        count = count_rows(rows)
        values = ask_model(model, rows, count, target=target, output=output) if labels is None else check_labels(labels, count)
        kept = np.arange(count) if unit is None else first_of_each(_column(rows, unit), max_rows_per_unit)
        public = _public_size(size, len(kept))
        store = _store(_encoded_chunks(rows, domain, kept), values[kept], domain.width, most=2 * public)
        keys = np.arange(len(kept)) if unit is None else owner_keys(_column(rows, unit)[kept])
        tabular = isinstance(domain, Domain)  # only then can rows be made up for the model to label
        labeller = Labeller(model, target, output, _same_kind(rows)) if tabular and model is not None else None
        self._register(store, domain, neighbours, public, name, labeller, keys)

    @classmethod
    def scan(
        cls,
        files: scanning.Where,
        domain: DomainLike,
        *,
        label: str | None = None,
        model: Any = None,
        target: Any = None,
        output: Output = "probability",
        unit: str | None = None,
        max_rows_per_unit: int = 1,
        relation: Relation | str = Relation.ADD_REMOVE,
        size: int | None = None,
        name: str = "data",
        progress: bool = True,
    ) -> PrivateData:
        """Rows that stay in Parquet files and are read anew for each question, a bounded number at a time.

        `files` is a file, a folder, a pattern such as "rows/*.parquet", an address such as "s3://…", or a list of these. Labels come from
        the column `label` (booleans; classes, +1 where they are `target`; or numbers in [-1, 1]) or from `model`, which is asked once
        about every row, its answers being kept in a nameless file of 8 bytes a row. The rest is as for the constructor, and so are
        the answers. Files that change after this are refused. `progress` shows a bar on a terminal when reading takes long.
        """
        labels = scanning.labels_from(label, model, target, output)
        how: dict[str, Any] = {
            "unit": unit,
            "max_rows_per_unit": max_rows_per_unit,
            "relation": relation,
            "size": size,
            "name": name,
        }
        return cls._streamed(files, domain, labels, LabelFile.temporary, progress=progress, **how)

    @classmethod
    def _streamed(
        cls,
        files: scanning.Where,
        domain: DomainLike,
        labels: scanning.ColumnLabels | scanning.ModelLabels,
        keep: scanning.Keep,
        *,
        unit: str | None,
        max_rows_per_unit: int,
        relation: Relation | str,
        size: int | None,
        name: str,
        progress: bool,
    ) -> PrivateData:
        """`scan` with labels from anywhere, a model's being written down by `keep`."""
        neighbours = Neighbours(Relation.parse(relation), unit, max_rows_per_unit)
        source = scanning.read_registered(files, domain, labels, unit, max_rows_per_unit, check=True)
        public = _public_size(size, source.rows)
        if isinstance(labels, scanning.ModelLabels):
            source = scanning.spilled(source, keep)
        return cls._of(StreamedRows(source, progress=progress), domain, neighbours, public, name, labels.labeller(domain))

    @classmethod
    def cluster(
        cls,
        files: scanning.Where,
        domain: DomainLike,
        *,
        label: str | None = None,
        model: Any = None,
        target: Any = None,
        output: Output = "probability",
        unit: str | None = None,
        max_rows_per_unit: int = 1,
        relation: Relation | str = Relation.ADD_REMOVE,
        size: int | None = None,
        name: str = "data",
        address: str | None = None,
        workers: int | None = None,
    ) -> PrivateData:
        """Rows held in memory by the workers of a Ray cluster, each reading its own row groups of the files.

        `address` is that of a running cluster, "auto" for one on this machine; without it Ray is started here, with two workers. A
        worker that is lost is started again by Ray, reads its rows again and answers. A `model` is asked by the workers, about the
        rows each holds, and must answer the same each time. The rest is as for `scan`. `close()` frees the workers.
        """
        neighbours = Neighbours(Relation.parse(relation), unit, max_rows_per_unit)
        labels = scanning.labels_from(label, model, target, output)
        source = scanning.read_registered(files, domain, labels, unit, max_rows_per_unit, check=False)
        public = _public_size(size, source.rows)
        rows = ClusterRows(source, address=address, workers=workers)
        return cls._of(rows, domain, neighbours, public, name, labels.labeller(domain))

    @classmethod
    def _of(
        cls, rows: Rows, domain: DomainLike, neighbours: Neighbours, size: int, name: str, labeller: Labeller | None
    ) -> PrivateData:
        data = cls.__new__(cls)
        data._register(rows, domain, neighbours, size, name, labeller)
        return data

    def _register(
        self,
        rows: Rows,
        domain: DomainLike,
        neighbours: Neighbours,
        size: int,
        name: str,
        labeller: Labeller | None,
        keys: np.ndarray[Any, Any] | None = None,
    ) -> None:
        self._rows, self._domain, self._labeller, self._name = rows, domain, labeller, name
        one_hot = tuple((block.start, block.stop) for block in domain.blocks if block.kind == "one-hot")
        self._setting = Setting(domain.width, size, neighbours, rows.summation_error, one_hot, isinstance(rows, SingleRows))
        self._ledgers: dict[str, Ledger] = {}
        self._leak = ""  # says what was done to these rows that no accounting covers
        self._keys = keys  # who a row belongs to: decides its shard, never its values
        self._shards: tuple[PrivateData, ...] = ()

    @property
    def domain(self) -> DomainLike:
        return self._domain

    @property
    def size(self) -> int:
        """The public row count m̄."""
        return self._setting.size

    @property
    def setting(self) -> Setting:
        """The public facts a plan may use."""
        return self._setting

    @property
    def name(self) -> str:
        return self._name

    @property
    def spent(self) -> Guarantee:
        """Everything ever released from these rows, over all releases, explainers and ledgers that were opened on them.

        After `split`, one person's rows are in one shard only, so it is the worst shard's total (`proofs/parallel.md`).
        """
        if self._shards:
            return self._worst_shard()
        states = [ledger.state() for ledger in self._ledgers.values()]
        delta = min((state.budget.delta for state in states), default=1e-6)
        total = Guarantee.of_quanta(sum(state.spent_quanta for state in states), delta, self._setting.neighbours)
        return replace(total, private=False, note=self._leak) if self._leak else total

    def _worst_shard(self) -> Guarantee:
        each = [shard.spent for shard in self._shards]
        worst = next((one for one in each if not one.private), max(each, key=lambda one: one.mu))
        subject = f"Everything released so far from {len(each)} disjoint shards (the worst shard's total)"
        return replace(worst, delta=min(one.delta for one in each), subject=subject)

    def know(self, labeller: Labeller) -> None:
        """The black box behind labels that were computed elsewhere, to ask about public rows."""
        self._labeller = labeller

    @property
    def labeller(self) -> Labeller | None:
        """Asks the black box about public rows; None where only its answers about the private ones were registered."""
        return self._labeller

    @property
    def column_model(self) -> Callable[[Matrix], Vector] | None:
        """The black box as a function of encoded rows; None where there is none to ask, or the domain cannot be decoded."""
        labeller, decode = self._labeller, getattr(self._domain, "decode", None)
        return None if labeller is None or decode is None else lambda rows: labeller(decode(rows))

    def account(self, budget: Budget) -> Account:
        """Who pays: these data, under this budget."""
        self._require_whole()
        return Account(self._name, self._domain.fingerprint, budget, self._setting.neighbours)

    def attach(self, ledger: Ledger, *, private: bool = True) -> None:
        """Count what this ledger spends among everything spent on these data; `private=False` marks them as no longer protected."""
        self._require_whole()
        self._ledgers[ledger.identity] = ledger
        if not private:
            self._leak = "a mechanism for offline reproduction was used on these data, which reads them without paying."

    def require_readable(self) -> None:
        """RowsUnavailable if rows outside this process's memory are not there as registered; told before anything is spent."""
        if isinstance(self._rows, Watched):
            self._rows.require_unchanged()

    def close(self) -> None:
        """Free what holds the rows elsewhere, such as a cluster's workers. Nothing can be asked afterwards."""
        if isinstance(self._rows, Closable):
            self._rows.close()

    def split(self, shards: int) -> tuple[PrivateData, ...]:
        """Disjoint parts for parallel use, with size m̄/k each; these data themselves can then be used no more.

        A row's shard follows from its owner (a hash of the declared unit) or else from its position in the table: values are not looked
        at, and the same table splits the same way in every process, so that each shard's ledger keeps meaning the same rows.
        """
        self._require_whole()
        if not (isinstance(shards, int) and shards >= 2):
            raise ParameterError(f"split into a whole number of at least 2 shards, got {shards!r}")
        if self._ledgers:
            raise DataError("these data are in use by a release or an explainer: split data before anything is opened on them")
        rows, keys = self._rows, self._keys
        if keys is None or not isinstance(rows, Divisible):
            raise DataError("rows of this kind cannot be split: register each shard as data of its own")
        self._shards = tuple(self._shard(rows, np.flatnonzero(keys % shards == i), keys, i, shards) for i in range(shards))
        self._rows = cast(Rows, _SplitRows())
        return self._shards

    def _shard(
        self, rows: Divisible, chosen: np.ndarray[Any, Any], keys: np.ndarray[Any, Any], index: int, of: int
    ) -> PrivateData:
        size = max(self.size // of, 1)
        if len(chosen) > 2 * size:
            raise DataError("one shard would hold more than twice its share of the rows: split into fewer shards")
        part = PrivateData.__new__(PrivateData)
        name, neighbours = f"{self._name}, shard {index + 1} of {of}", self._setting.neighbours
        part._register(
            rows.select(chosen, most=2 * size), self._domain, neighbours, size, name, self._labeller, keys[chosen] // of
        )
        return part

    def _require_whole(self) -> None:
        if self._shards:
            raise DataError("these data were split: use the shards, so that no row is ever asked in two places")

    def __repr__(self) -> str:
        """Public facts only."""
        protected = self._setting.neighbours.describe()
        return f"PrivateData({self._name!r}, size={self.size}, {self._domain.width} encoded columns; protects {protected})"

    def __reduce__(self) -> Any:
        raise TypeError("private data are not pickled: register them again where they are needed")


@runtime_checkable
class Divisible(Rows, Protocol):
    """Rows that can be copied in part."""

    def select(self, positions: np.ndarray[Any, Any], most: int | None = None) -> Rows: ...


@runtime_checkable
class Watched(Protocol):
    """Rows that somebody else could change or take away."""

    def require_unchanged(self) -> None: ...


@runtime_checkable
class Closable(Protocol):
    """Rows that hold something beyond this process."""

    def close(self) -> None: ...


class _SplitRows:
    """What is left of rows that were split: nothing. Whatever is asked of them is refused."""

    def __getattr__(self, question: str) -> Any:
        raise DataError("these data were split: use the shards, so that no row is ever asked in two places")


def owner_keys(owners: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """One number for each row, the same for all rows of one owner: a hash of who it is, so nothing else decides."""
    hashed = {owner: int.from_bytes(sha256(owner.encode()).digest()[:7]) for owner in {repr(one) for one in owners}}
    return np.array([hashed[repr(one)] for one in owners], dtype=np.int64)


def count_rows(rows: Any) -> int:
    """The number of rows of any kind of table."""
    if isinstance(rows, dict):
        count = len(next(iter(rows.values()), ()))
    elif hasattr(rows, "shape"):
        count = int(rows.shape[0])
    elif hasattr(rows, "__len__"):
        count = len(rows)
    else:
        raise DataError(
            f"cannot read rows from {type(rows).__name__}: pass a data frame, list of dicts, dict of columns or array"
        )
    if count == 0:
        raise DataError("there are no rows: register data with at least one row")
    return count


def first_of_each(owners: np.ndarray[Any, Any], most: int) -> np.ndarray[Any, Any]:
    """Positions of the first `most` rows of each owner, in order; rows without an owner count as one owner together."""
    keys = np.array([repr(owner) for owner in owners])
    order = np.argsort(keys, kind="stable")
    _, starts, counts = np.unique(keys[order], return_index=True, return_counts=True)
    rank = np.arange(len(keys)) - np.repeat(starts, counts)
    return np.sort(order[rank < most])


def _column(rows: Any, name: str) -> np.ndarray[Any, Any]:
    try:
        if isinstance(rows, dict):
            return np.asarray(rows[name], dtype=object)
        if isinstance(rows, list):
            return np.array([row[name] for row in rows], dtype=object)
        return np.asarray(nw.from_native(rows, eager_only=True)[name].to_list(), dtype=object)
    except (KeyError, TypeError, IndexError, nw.exceptions.ColumnNotFoundError):
        raise DataError(f"unit={name!r} is not a column of the rows: name the column that says who owns a row") from None


def _store(chunks: Iterator[Any], labels: Vector, width: int, most: int) -> Rows:
    """Dense or sparse, as the domain encodes; at most `most` rows, publicly."""
    first = next(chunks)
    kind = SparseRows if issparse(first) else DenseRows
    return kind(chain([first], chunks), labels, width, most)


def _encoded_chunks(rows: Any, domain: DomainLike, kept: np.ndarray[Any, Any]) -> Iterator[Any]:
    """Encode a slice at a time, so that the float64 table never exists as a whole."""
    step = min(max(_NUMBERS // domain.width // 256, 1) * 256, _CHUNK)  # whole blocks of the store
    for start in range(0, len(kept), step):
        yield domain.encode(_take(rows, kept[start : start + step]))


def _take(rows: Any, positions: np.ndarray[Any, Any]) -> Any:
    if isinstance(rows, dict):
        return {name: _take(column, positions) for name, column in rows.items()}
    if isinstance(rows, (list, tuple)):
        return [rows[i] for i in positions]
    if isinstance(rows, np.ndarray):
        return rows[positions]
    if hasattr(rows, "tocsr"):
        return rows.tocsr()[positions]
    try:
        frame = nw.from_native(rows, eager_only=True, allow_series=True)
    except TypeError:
        raise DataError(f"cannot read rows from {type(rows).__name__}: pass a data frame, dicts or an array") from None
    return frame[positions.tolist()].to_native()


def _same_kind(rows: Any) -> Callable[[dict[str, Any]], Any]:
    """A function from columns to the kind of table that `rows` is. It keeps nothing of the rows."""
    if isinstance(rows, dict):
        return dict
    if isinstance(rows, np.ndarray) or issparse(rows):
        return lambda columns: np.column_stack(list(columns.values()))
    if isinstance(rows, (list, tuple)):
        return lambda columns: [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    backend = nw.from_native(rows, eager_only=True).implementation
    return lambda columns: nw.from_dict(plain_columns(columns), backend=backend).to_native()


def _public_size(declared: int | None, rows: int) -> int:
    """m̄ as declared, or the row count. Summation error is bounded for up to twice as many rows, so more are refused."""
    if declared is None:
        return rows
    if not (isinstance(declared, int) and declared >= 1):
        raise ParameterError(f"size must be a whole number of at least 1, got {declared!r}")
    if rows > 2 * declared:
        raise DataError("size is less than half of the rows kept: declare a public row count closer to the truth")
    return declared
