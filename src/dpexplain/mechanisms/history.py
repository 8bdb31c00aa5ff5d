"""The history: all answers released so far. They are public, and a mechanism may use no other past."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from threading import RLock
from typing import Any, TypeVar, cast

import numpy as np
import scipy

from dpexplain.core.answer_scale import AnswerScale
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.layout import Layout
from dpexplain.domain import Domain
from dpexplain.domain.interface import DomainLike
from dpexplain.errors import InputError
from dpexplain.mechanisms.shared_sums import PaidSums, SumPool, best_pool
from dpexplain.privacy.budget import Guarantee

T = TypeVar("T")
FORMAT, VERSION = "dpexplain.history", 1
_TAIL = 256  # so few entries are searched one by one


@dataclass(frozen=True, slots=True)
class ReleasedAnswer:
    """One public answer: the point that was asked about, its explanation, and whether it was copied from a neighbour."""

    point: Vector
    values: Vector
    copied: bool = False
    details: dict[str, Any] = field(default_factory=dict)
    plane: str | None = None
    intercept: float | None = None  # the plane's answer at the point; None where planes go through 0

    @property
    def state(self) -> Vector:
        """(φ, a) where the plane has an intercept a, else φ."""
        return self.values if self.intercept is None else np.append(self.values, self.intercept)

    def __post_init__(self) -> None:
        for name in ("point", "values"):
            frozen = np.array(getattr(self, name), dtype=np.float64)
            frozen.setflags(write=False)
            object.__setattr__(self, name, frozen)

    def to_dict(self) -> dict[str, Any]:
        return {
            "point": self.point.tolist(),
            "values": self.values.tolist(),
            "copied": self.copied,
            "details": self.details,
            **({} if self.plane is None else {"plane": self.plane, "intercept": self.intercept}),
        }


class Latest:
    """A cache of the last object that was made."""

    def __init__(self) -> None:
        self._entry: tuple[Any, Any] | None = None

    def find(self, key: Any, make: Callable[[], T]) -> T:
        """The object of this key, made unless it is the last one."""
        entry = self._entry
        if entry is None or entry[0] != key:
            entry = self._entry = key, make()
        return cast(T, entry[1])


class History:
    """Released answers in order; append-only. Copied answers are stored, but are neither copied again nor used for regression.

    `stopped` are the totals at which the paper's stopping rule ended the stream, or None; the answer that it withheld is counted in them.

    `sums` are the noisy sums that paid answers released beside their planes, as stored; an adaptive answer by moments takes them from here.

    The nearest computed answer is found in a k-d tree of most entries and an unsorted tail; the tree is rebuilt when the tail has grown
    to an eighth of it, so that n appends cost O(n log n) in all. `domain`, `guarantee` and `answer_scale`, where an explainer has set
    them, let a `NonInteractive` read records, say what the history has cost, and answer in the model's own units. `model`, the black box as a
    function of encoded public points, sharpens answers from sums; it is not stored with the rest.
    """

    def __init__(
        self,
        domain: DomainLike | None = None,
        guarantee: Callable[[], Guarantee] | None = None,
        answer_scale: AnswerScale | None = None,
        model: Callable[[Matrix], Vector] | None = None,
    ) -> None:
        self.domain, self._guarantee, self.answer_scale = domain, guarantee, answer_scale or AnswerScale()
        self.model = model
        self._released: list[ReleasedAnswer] = []
        self._computed: list[int] = []
        self._points, self._values = _Stack(), _Stack()  # of the computed ones
        self._tree: scipy.spatial.cKDTree | None = None
        self._in_tree = 0
        scale = None if domain is None else Layout.of(domain.blocks).scale
        self._scale: Vector | float = 1.0 if scale is None else scale
        self._lock = RLock()  # a service appends and searches from several threads
        self._sums: list[PaidSums] = []
        self.stopped: dict[str, Any] | None = None
        self.planes, self.sketches, self.label_names, self.starts, self.regressions, self._pools = (Latest() for _ in range(6))

    @property
    def guarantee(self) -> Guarantee | None:
        """What everything here has cost, where that is known."""
        return None if self._guarantee is None else self._guarantee()

    def distances(self, points: Matrix, point: Vector) -> Vector:
        """How far points are from one, in the domain's scale."""
        return np.asarray(np.linalg.norm((points - point) * self._scale, axis=1))

    def append(self, released: ReleasedAnswer) -> None:
        if self._released and released.point.shape != self._released[0].point.shape:
            raise InputError(
                f"this history is about points of {len(self._released[0].point)} numbers, got {len(released.point)}. Keep one history for each domain"
            )
        with self._lock:
            if not released.copied:
                self._computed.append(len(self._released))
                self._points.push(released.point)
                self._values.push(released.state)
            self._released.append(released)

    def append_sums(self, stored: dict[str, Any]) -> None:
        """Add noisy sums, as a ledger stores them."""
        self._sums.append(PaidSums.from_dict(stored))

    @property
    def sums(self) -> tuple[PaidSums, ...]:
        return tuple(self._sums)

    def pool(self, layout: Layout, labels: str, size: int) -> SumPool | None:
        """The most precise pool of sums about so many rows of this layout and these labels; None without any."""
        fitting = [one for one in self._sums if (one.labels, one.size) == (labels, size)]
        return self._pools.find((layout, labels, size, len(fitting)), lambda: best_pool(fitting, layout))

    def nearest(self, point: Vector) -> tuple[ReleasedAnswer, float] | None:
        """The closest *computed* answer and its distance, in the domain's scale; None when there is none."""
        with self._lock:
            if not self._computed:
                return None
            self._grow_tree()
            found = [] if self._tree is None else [self._tree.query(point * self._scale)]
            tail = self._points.rows[self._in_tree :]
            if len(tail):
                distances = self.distances(tail, point)
                found.append((distances.min(), self._in_tree + distances.argmin()))
            distance, position = min(found)
            return self._released[self._computed[int(position)]], float(distance)

    def _grow_tree(self) -> None:
        if self.computed_count - self._in_tree > max(_TAIL, self._in_tree // 8):
            self._tree, self._in_tree = scipy.spatial.cKDTree(self._points.rows * self._scale), self.computed_count

    @property
    def computed_count(self) -> int:
        """How many answers were computed, not copied."""
        return len(self._computed)

    def latest(self, most: int, count: int | None = None) -> tuple[Matrix, Matrix]:
        """(points, states) of the last `most` computed answers, or of the last of the first `count`, one a row, oldest first.

        A state is φ, or (φ, a) where a was found too.
        """
        with self._lock:
            end = self.computed_count if count is None else count
            some = slice(max(end - most, 0), end)
            return self._points.rows[some], self._values.rows[some]

    def __len__(self) -> int:
        return len(self._released)

    def __iter__(self) -> Iterator[ReleasedAnswer]:
        return iter(self._released)

    def __reversed__(self) -> Iterator[ReleasedAnswer]:
        return reversed(self._released)

    def __getitem__(self, index: int) -> ReleasedAnswer:
        return self._released[index]

    def __repr__(self) -> str:
        copied = len(self) - self.computed_count
        return f"History({len(self)} answers, {copied} of them copied)"

    def to_dict(self) -> dict[str, Any]:
        """All of it, in JSON's types, with the domain and what was spent by now."""
        spent = self.guarantee
        return {
            "format": FORMAT,
            "version": VERSION,
            "domain": None if self.domain is None else self.domain.to_dict(),
            "guarantee": None if spent is None else spent.to_dict(),
            "scale": self.answer_scale.to_dict(),
            "released": [one.to_dict() for one in self],
            **({"sums": [one.to_dict() for one in self._sums]} if self._sums else {}),
            **({} if self.stopped is None else {"stopped": self.stopped}),
        }

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> History:
        """Read back what `to_dict` wrote."""
        if value.get("format") != FORMAT or value.get("version") != VERSION:
            raise InputError(
                f"this is not version {VERSION} of a dpexplain history. Pass what to_dict() returned, or upgrade dpexplain if a newer version wrote it"
            )
        spent = None if value["guarantee"] is None else Guarantee.from_dict(value["guarantee"])
        domain = None if value["domain"] is None else Domain.from_dict(value["domain"])
        known, scale = None if spent is None else lambda: spent, AnswerScale.from_dict(value.get("scale"))
        history = cls.of((ReleasedAnswer(**one) for one in value["released"]), domain, known, scale)
        for stored in value.get("sums", ()):
            history.append_sums(stored)
        history.stopped = value.get("stopped")
        return history

    @classmethod
    def of(
        cls,
        released: Iterable[ReleasedAnswer],
        domain: DomainLike | None = None,
        guarantee: Callable[[], Guarantee] | None = None,
        answer_scale: AnswerScale | None = None,
    ) -> History:
        """A history of these answers, in order."""
        history = cls(domain, guarantee, answer_scale)
        for one in released:
            history.append(one)
        return history

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> History:
        return cls.from_dict(json.loads(text))


class _Stack:
    """Rows of one matrix that grows by doubling."""

    def __init__(self) -> None:
        self._store, self._count = np.empty((0, 0)), 0

    def push(self, row: Vector) -> None:
        if self._count == len(self._store):
            grown = np.empty((max(2 * self._count, 64), len(row)))
            grown[: self._count] = self._store[: self._count] if self._count else 0
            self._store = grown
        self._store[self._count] = row
        self._count += 1

    @property
    def rows(self) -> Matrix:
        return self._store[: self._count]
