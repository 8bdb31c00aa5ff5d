"""The interface of every domain: the public map from records to [0, 1]ⁿ."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpexplain.errors import DomainError

MOST_COLUMNS = 1_000_000

FloatArray: TypeAlias = NDArray[np.float64]
Kind: TypeAlias = Literal["numeric", "binary", "one-hot"]


@dataclass(frozen=True, slots=True)
class Block:
    """Encoded columns `start:stop` that come from one feature, and the set every encoded row v lies in.

    numeric: v ∈ [0, 1];  binary: v ∈ {0, 1};  one-hot: v ∈ {0, 1}^(stop-start) with Σv ≤ 1. Distances between rows are ‖scale·(v - v')‖.
    This is public structure: a release may use it to repair noisy statistics at no cost.
    """

    start: int
    stop: int
    kind: Kind
    scale: float = 1.0


class DomainLike(Protocol):
    """The public map e: records → [0, 1]ⁿ.

    `encode` is total and row-wise: e(rows)ᵢ depends on row i alone, and no value in a row decides whether it raises.
    Without the first, one person could move everyone's vector; without the second, an error would be a free release.
    `encode_query` is strict: a query is public, so a misfit is refused instead of explained as some other point.
    """

    @property
    def width(self) -> int:
        """Encoded dimension n."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """One name per encoded column."""
        ...

    @property
    def titles(self) -> tuple[str, ...]:
        """Display names: with a feature's title and unit where it has them."""
        ...

    @property
    def blocks(self) -> tuple[Block, ...]:
        """A partition of the columns, in order."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """Which columns of a table records are read from."""
        ...

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical description: equal domains have equal fingerprints."""
        ...

    def encode(self, rows: Any) -> Any:
        """Private records → (m, n), float64, dense, or sparse for some domains."""
        ...

    def encode_query(self, record: Any) -> FloatArray:
        """One public record → (n,), float64."""
        ...

    def encode_queries(self, records: Any) -> FloatArray:
        """Public records → (k, n), float64, each as strictly as by `encode_query`."""
        ...

    def separate(self, records: Any) -> list[Any]:
        """The same records one by one, each as `encode_query` takes it."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """The whole description in JSON's types, with its "kind" (`kinds.py`)."""
        ...


def format_list(items: Iterable[object], most: int = 12) -> str:
    """Items as text for an error message, shortened where there are many."""
    items = list(items)
    shown = ", ".join(map(repr, items[:most]))
    return shown if len(items) <= most else f"{shown}, … ({len(items)} in all)"


def hint(name: object, known: Iterable[object]) -> str:
    """' (did you mean …?)' when a known name is close, else nothing."""
    close = get_close_matches(str(name), [k for k in known if isinstance(k, str)], n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def require_width(width: int) -> None:
    """DomainError for more columns than can be computed with, because a description may come from an untrusted file."""
    if width > MOST_COLUMNS:
        raise DomainError(f"a domain has at most {MOST_COLUMNS:,} columns, got {width:,}. Declare fewer, or a coarser grid")
