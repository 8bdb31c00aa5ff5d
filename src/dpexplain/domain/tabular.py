"""The public description of a table: which features it has, and how its records become vectors in [0, 1]ⁿ."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpexplain.domain import description
from dpexplain.domain.catalogue import FEATURES, Feature
from dpexplain.domain.columns import read_array, read_columns
from dpexplain.domain.features import Numeric, Ordinal, to_unit
from dpexplain.domain.interface import Block, DomainLike, FloatArray
from dpexplain.domain.queries import (
    Queries,
    QueryRules,
    Read,
    place_queries,
    place_query,
    read_each,
    read_vector,
    record_of,
    records_of,
)
from dpexplain.domain.scaled import UNSCALED, require_scale
from dpexplain.domain.values import floats, objects
from dpexplain.errors import DataError, DomainError, QueryError

T = TypeVar("T")
STRICT = QueryRules()
REMEMBERED = 10_000  # decoded values and the like
_UNKNOWN = object()
FEW = 8  # records up to which lists are encoded faster than arrays


@dataclass(frozen=True, slots=True, repr=False)
class Domain(description.DomainDescription):
    """Public features in order, and the map e: record → [0, 1]ⁿ they define (SPEC §3).

    Everything here is declared by whoever knows the data's meaning, never read off private rows: a bound such as the largest
    age present is some person's age. There is therefore no method that infers a domain from data.

    `encode` is for private rows. It is total (no value in a row decides whether it raises; each feature documents what it does
    with missing, infinite, out-of-range and unknown values) and row-wise (a record's vector depends on that record alone). Only
    the table's schema can be refused. `encode_query` is for public queries and strict: a query outside the declared values is
    refused rather than clamped, because the answer would explain a point that was not asked about. Only what the domain
    declares as the substitute of a missing or undeclared value (`missing=`, `other=`) takes its place, and the answer states it.

    `scale` defines distances: those between records are computed from columns multiplied by it, and by their feature's own. Encoded
    values, slopes and contributions are per whole range of a feature, whatever its scale.
    """

    features: Sequence[Feature]
    scale: float = UNSCALED
    names: tuple[str, ...] = field(init=False, compare=False)
    blocks: tuple[Block, ...] = field(init=False, compare=False)
    width: int = field(init=False, compare=False)  # encoded dimension n
    columns: tuple[str, ...] = field(init=False, compare=False)  # the raw columns: one for each feature
    # how many ordered levels each feature has; 0 where it is not ordinal
    levels: tuple[int, ...] = field(init=False, compare=False)
    memory: dict[Any, Any] = field(init=False, compare=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        features = _features(self.features)
        names = [name for feature in features for name in feature.names]
        _unique("feature name", [feature.name for feature in features])
        _unique("encoded column", names)
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "scale", require_scale("a domain's ", self.scale))
        object.__setattr__(self, "names", tuple(names))
        object.__setattr__(self, "blocks", _blocks(features, self.scale))
        object.__setattr__(self, "width", len(names))
        object.__setattr__(self, "columns", tuple(feature.name for feature in features))
        object.__setattr__(self, "levels", tuple(len(one.levels) if isinstance(one, Ordinal) else 0 for one in features))

    @classmethod
    def encoded(cls, width: int, bounds: Any = None, names: Iterable[str] | None = None, *, scale: float = UNSCALED) -> Domain:
        """Rows that already are public vectors: `width` numeric columns, by default x0, x1, … with entries in [0, 1].

        `bounds=(low, high)`, two numbers or two arrays with one entry per column, are scaled to [0, 1]. It is the same as
        declaring each column `Numeric`; every domain of numeric features only also takes bare arrays, columns in its order.
        """
        return cls(description.vector_features(width, (0.0, 1.0) if bounds is None else bounds, names), scale)

    @classmethod
    def from_model(
        cls,
        model: Any,
        declare: Any = None,
        *,
        columns: Iterable[str] | None = None,
        suggested: bool = False,
        scale: float = UNSCALED,
    ) -> Domain:
        """The domain that a model's own preprocessing declares: names, categories of encoders, substitutes of missing values.

        `model` is a fitted scikit-learn estimator, the path of an .onnx file, or a KServe V2 address. What it does not contain is raised as
        `Undeclared`, with the list of it: pass it as `declare={"age": (17, 97), "work": ["private", …]}`. `suggested=True` also takes bounds
        from scalers and trees: these are facts of the model's *training* data, and become public. No row is read. `columns` chooses features.
        """
        from dpexplain.domain.drafts import draft_of_model  # which needs what is declared here

        return cls(draft_of_model(model).only(columns).declare(declare, suggested=suggested).complete(), scale)

    @classmethod
    def from_schema(
        cls, schema: Any, declare: Any = None, *, columns: Iterable[str] | None = None, scale: float = UNSCALED
    ) -> Domain:
        """The domain that a schema declares: an Arrow or polars schema, JSON Schema, a pydantic model, a pandera schema, or a file of rows
        or a JSON Schema, of which the schema alone is read.

        Arrow fields may declare more in their metadata: low, high, values, levels, missing, other, scale, title, unit, help (docs/domain.md). What is
        not declared is raised as `Undeclared`, with the list of it: pass it as `declare=`. `columns` chooses the features among the fields.
        """
        from dpexplain.domain.drafts import draft_of_schema

        return cls(draft_of_schema(schema).only(columns).declare(declare).complete(), scale)

    def encode(self, rows: Any) -> FloatArray:
        """Private records → (m, n): a data frame, a list of dicts, a dict of columns; an array or a sparse matrix where all is numeric."""
        if isinstance(rows, np.ndarray):
            return self._encode_array(rows)
        if hasattr(rows, "toarray"):  # sparse: chunks are made dense, one at a time
            return self._encode_array(rows.toarray())
        columns = read_columns(rows, [feature.name for feature in self.features])
        out = np.empty((len(next(iter(columns.values()))), self.width))
        for feature, block in zip(self.features, self.blocks, strict=True):
            feature.fill(columns[feature.name], out[:, block.start : block.stop])
        return out

    def decode(self, encoded: Any) -> dict[str, NDArray[Any]]:
        """Encoded rows (m, n) → one column of raw values per feature, such that encoding them gives the rows again.

        Decoding cannot restore what encoding lost: a missing number or yes/no is read as its substitute, a missing level or category
        as None.
        """
        rows = np.asarray(encoded, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.width:
            raise DataError(f"encoded rows must have shape (m, {self.width}), got {rows.shape}")
        pairs = zip(self.features, self.blocks, strict=True)
        return {feature.name: feature.read(rows[:, block.start : block.stop]) for feature, block in pairs}

    def decode_point(self, point: FloatArray) -> tuple[Any, ...]:
        """One encoded row as raw values, one for each feature: `decode` with a cache, because few of the values are new."""
        return self.decode_entries(point.tolist())

    def decode_entries(self, entries: list[float]) -> tuple[Any, ...]:
        """`decode_point` of a list."""
        memory, found = self.memory, list[Any]()
        for i, block in enumerate(self.blocks):
            key = (i, *entries[block.start : block.stop])
            known = memory.get(key, _UNKNOWN)
            found.append(self.remember(key, self._decode_block(i, key[1:])) if known is _UNKNOWN else known)
        return tuple(found)

    def _decode_block(self, feature: int, entries: tuple[float, ...]) -> Any:
        return self.features[feature].read(np.array([entries])).tolist()[0]

    def remember(self, key: Hashable, value: T) -> T:
        """Cache what follows from the domain and a few values in `memory`, as long as there is room. Returns the value."""
        if len(self.memory) >= REMEMBERED:
            self.memory.clear()
        self.memory[key] = value
        return value

    def encode_query(self, record: Any) -> FloatArray:
        """One public record → (n,): a dict, a one-row frame or a Series; or a vector where all features are numeric."""
        return self.read_query(record, STRICT)[0]

    def encode_queries(self, records: Any) -> FloatArray:
        """Public records → (k, n), each as strictly as by `encode_query`; an error names the row, counted from 0."""
        return self.read_queries(records, STRICT).points

    def read_query(self, record: Any, rules: QueryRules) -> Read:
        """The point of one public record, and how values were read that were not taken as given."""
        if isinstance(record, (np.ndarray, list, tuple)):
            return self._read_vector(_vector(record), rules)
        placed, notes = place_query(self.features, record_of(record), rules)
        out = np.zeros(self.width)
        for (column, entry), block in zip(placed, self.blocks, strict=True):
            out[block.start + column] = entry
        return out, notes

    def read_queries(self, records: Any, rules: QueryRules) -> Queries:
        """`read_query` of every record of a batch."""
        separate = self.separate(records)
        if isinstance(records, np.ndarray) and self._all_within(records):  # without visiting entries that fit
            return Queries(self._encode_array(records), tuple(separate), ({},) * len(records), tuple(range(len(records))))
        if (placed := place_queries(self.features, separate)) is not None:
            return Queries(
                self._points(placed, len(separate)), tuple(separate), ({},) * len(separate), tuple(range(len(separate)))
            )
        return read_each(separate, lambda record: self.read_query(record, rules), self.width, rules)

    def _points(self, placed: Sequence[Sequence[tuple[int, float]]], count: int) -> FloatArray:
        if count <= FEW:
            rows = [[0.0] * self.width for _ in range(count)]
            for column, block in zip(placed, self.blocks, strict=True):
                start = block.start
                for row, (place, entry) in zip(rows, column, strict=True):
                    row[start + place] = entry
            return np.array(rows) if rows else np.empty((0, self.width))
        out = np.zeros((count, self.width))
        pairs = zip(placed, self.blocks, strict=True)
        places = np.array([[block.start + place for place, _ in column] for column, block in pairs], dtype=np.intp)
        out[np.arange(count), places] = [[entry for _, entry in column] for column in placed]
        return out

    def separate(self, records: Any) -> list[Any]:
        """The records of a batch one by one."""
        return list(records) if isinstance(records, (list, tuple, np.ndarray)) else list(records_of(records))

    @property
    def titles(self) -> tuple[str, ...]:
        """One display name per encoded column: its feature's title and unit, and the value that it represents."""
        return tuple(
            feature.label_of(feature.name) + name.removeprefix(feature.name)
            for feature in self.features
            for name in feature.names
        )

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of how records are encoded and how far apart they are: titles, units and help texts do not count."""
        features = [plain(feature) for feature in self.features]
        return sha256(description.canonical_json(description.describe(features, self.scale))).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """The description in JSON's types; `description.py` documents the keys."""
        return description.describe(self.features, self.scale)

    @staticmethod
    def from_dict(data: Any) -> DomainLike:
        """What any domain's `to_dict` returned: of a table, a text, …: the "kind" decides."""
        from dpexplain.domain.kinds import domain_of  # which knows this class

        return domain_of(data)

    @staticmethod
    def from_json(text: str) -> DomainLike:
        return Domain.from_dict(description.from_json(text))

    @staticmethod
    def from_toml(text: str) -> DomainLike:
        return Domain.from_dict(description.from_toml(text))

    @staticmethod
    def load(path: str | Path) -> DomainLike:
        """Read what any domain's `save` (or a person) wrote to a .json or .toml file."""
        return Domain.from_dict(description.read(path))

    def __repr__(self) -> str:
        shown = [str(feature) for feature in self.features[:12]]
        more = [f"… {len(self.features) - 12} more"] if len(self.features) > 12 else []
        return f"<Domain: {len(self.features)} features → {self.width} columns: {', '.join(shown + more)}>"

    def _encode_array(self, rows: NDArray[Any]) -> FloatArray:
        limits = self._limits()
        if limits is None:
            raise DataError("this domain is not all numeric, so its rows need names. Pass a data frame or a list of dicts")
        array = read_array(rows, self.width)
        return to_unit(floats(array.reshape(-1)).reshape(array.shape), *limits)

    def _read_vector(self, vector: NDArray[Any], rules: QueryRules) -> Read:
        limits = self._limits()
        if limits is None:
            raise QueryError("this domain is not all numeric, so a query needs names. Pass a dict with one value per feature")
        if vector.shape != (self.width,):
            raise QueryError(f"a query must have {self.width} entries, one per feature, got shape {vector.shape}")
        read, notes = read_vector(self.features, vector, *limits[:2], rules)
        return self._encode_array(read[np.newaxis])[0], notes

    def _all_within(self, rows: NDArray[Any]) -> bool:
        limits = self._limits()
        if limits is None or rows.ndim != 2 or rows.shape[1] != self.width or rows.dtype.kind not in "iuf":
            return False
        return bool(((rows >= limits[0]) & (rows <= limits[1])).all())

    def _limits(self) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """(low, high, missing) per column, when every feature is numeric."""
        numeric = [feature for feature in self.features if isinstance(feature, Numeric)]
        if len(numeric) < len(self.features):
            return None
        low, high, missing = zip(*((f.low, f.high, f.default) for f in numeric), strict=True)
        return np.array(low), np.array(high), np.array(missing)


def _features(features: Any) -> tuple[Feature, ...]:
    declared = tuple(features) if isinstance(features, (list, tuple)) else None
    if declared is None or not all(isinstance(feature, FEATURES) for feature in declared):
        raise DomainError(
            f"a domain is a list of {', '.join(kind.__name__ for kind in FEATURES)} features, got {_describe_wrong(features)}. "
            "Declare what is public about each column. It is never inferred from rows, because that would leak them"
        )
    if not declared:
        raise DomainError("a domain needs at least one feature. Declare the columns that may be explained")
    return declared


def _describe_wrong(features: Any) -> str:
    """Describes for an error message what was passed instead of a list of features."""
    if not isinstance(features, (list, tuple)):
        return type(features).__name__
    odd = next(feature for feature in features if not isinstance(feature, FEATURES))
    return f"a list that holds a {type(odd).__name__}"  # not the value: it may be a private row


def plain(feature: Feature) -> Feature:
    """The feature without its labels for people."""
    return replace(feature, title=None, unit=None, help=None)


def _unique(what: str, names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DomainError(f"{what} {name!r} appears twice. Give every one its own name")
        seen.add(name)


def _blocks(features: Sequence[Feature], scale: float) -> tuple[Block, ...]:
    stops = np.cumsum([feature.width for feature in features]).tolist()
    return tuple(
        Block(stop - feature.width, stop, feature.block, scale * feature.scale)
        for feature, stop in zip(features, stops, strict=True)
    )


def _vector(record: Any) -> NDArray[Any]:
    """A bare record, without letting NumPy turn its entries into something else."""
    return record if isinstance(record, np.ndarray) else objects(record)
