"""The `Door`, through which every number computed from private rows is released: it evaluates, adds noise, counts the cost, and enforces the reservation.

A `Door` is built from what was reserved. It alone holds the rows and the noise while a plan runs. Each release is charged before its noise is drawn; the
one that would pass the reservation raises `ReservationExceeded`. What is settled afterwards is what the door counted, not what the plan states.

    door.release(mechanism)          one Gaussian release of the mechanism's own bounded query
    door.releases(mechanism, count)  `count` of them, at public parameters that may depend on what was released before
    door.visible(mechanism)          the cells of an unbounded histogram that pass public thresholds
    door.select(query)               one exponential mechanism (reproduction only)
    door.exact(query)                refused, unless the door was opened for a mechanism that is marked as not private

`run_plans` opens a door for each of several plans. `listening` lets an audit record every release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dpexplain.core.arrays import Vector
from dpexplain.core.moments import LocalMoments, Moments
from dpexplain.errors import NotPrivateError, ReservationExceeded
from dpexplain.mechanisms.gaussian import Cut, GaussianMechanism, quantise, rounded_gaussian, rounded_scale
from dpexplain.mechanisms.ports import BoundedQuery, LocalPlan, Noise, Plan, Rows, SelectionQuery
from dpexplain.privacy.events import PrivacyEvent, price

R = TypeVar("R")
Release: TypeAlias = Callable[[Any], NDArray[np.float64]]
Listener: TypeAlias = Callable[[GaussianMechanism[Any], Any, NDArray[np.float64]], None]
"""(mechanism, public parameters of the query, what was released)"""

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Pass every Gaussian release of doors that are opened within this context to `listener`: what accounting assumes an attacker sees."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


class Door:
    """Private rows and noise behind a counter: at most `reserved` can be released.

    `secure` is true if the noise comes from a cryptographic source.
    """

    def __init__(self, rows: Rows, noise: Noise, reserved: int | Iterable[PrivacyEvent], *, private: bool = True) -> None:
        """`reserved` is the price that was committed, in quanta, or the events that were. `private=False` allows `exact`."""
        self._rows, self._noise, self._private = ReadOnce.of(rows), noise, private
        self.secure = noise.secure
        self._limit = reserved if isinstance(reserved, int) else price(tuple(reserved))
        self._spent, self._events = 0, list[PrivacyEvent]()
        self._listener = _listener.get()

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        """What was released so far, in order."""
        return tuple(self._events)

    def auxiliary_normal(self, size: int) -> Vector:
        """Standard normal numbers for simulations on released values. They are not privacy noise and cost nothing."""
        return self._noise.auxiliary_normal(size)

    def release(self, mechanism: GaussianMechanism[Any], at: Any = None) -> NDArray[np.float64]:
        """The mechanism's query at the public parameters `at`, with noise."""
        return self.releases(mechanism, 1)(at)

    def releases(self, mechanism: GaussianMechanism[Any], count: int) -> Release:
        """A function that releases the mechanism's query at public parameters, up to `count` times. All are charged, and their noise drawn, now.

        Noise does not depend on values, so drawing it in one go changes nothing but the speed.
        """
        self._charge(mechanism.event(count))
        drawn = iter(mechanism.draw(self._noise, count))
        query, heard = mechanism.query, self._listener

        def release(at: Any = None) -> NDArray[np.float64]:
            units = next(drawn, None)
            if units is None:
                raise ReservationExceeded(
                    f"{count} releases of {query.what!r} were reserved, and one more was asked for. Reserve the plan's worst case"
                )
            out = mechanism.perturb(query.evaluate(self._rows, at), units)
            if heard is not None:
                heard(mechanism, at, out)
            return out

        return release

    def visible(self, mechanism: GaussianMechanism[Any]) -> Any:
        """What an unbounded histogram shows above its public thresholds (`mechanisms/discovery_counts.py: TextCounts`).

        Every possible cell gets the same noise; for all empty cells together it is drawn which of them noise alone lifts above
        their thresholds. Counts are whole numbers and the grid a power of two below 1, so they are on it without rounding.
        """
        self._charge(mechanism.event())
        grid = mechanism.grid

        def noisy(counts: Vector) -> Vector:
            units = quantise(counts, grid) + rounded_gaussian(mechanism.sigma / grid, len(counts), self._noise)
            return units.astype(np.float64) * grid

        return mechanism.query.visible(self._rows, noisy, Cut(grid, rounded_scale(mechanism.sigma / grid)), self._noise.uniform)

    def select(self, query: SelectionQuery) -> int:
        """A candidate with probability ∝ exp(exponent): the largest of the exponents plus Gumbel noise."""
        self._charge(query.event)
        exponents = query.exponents(self._rows)
        gumbel = -np.log(-np.log(self._noise.uniform(len(exponents))))
        return int(np.argmax(gumbel + exponents))

    def exact(self, query: BoundedQuery, at: Any = None) -> Vector:
        """The statistic without noise, for the paper's own algorithms, which are marked as not private. Other doors raise NotPrivateError."""
        if not self._private:
            return query.evaluate(self._rows, at)
        raise NotPrivateError(
            f"the exact value of {query.what!r} was asked for by a private mechanism. Release it with noise instead"
        )

    def _charge(self, event: PrivacyEvent) -> None:
        total = self._spent + price((event,))
        if not total <= self._limit:
            raise ReservationExceeded(
                f"a plan asked for more than was reserved for it ({event.what!r}), so nothing was released. Reserve the plan's worst case"
            )
        self._spent = total
        self._events.append(event)


class ReadOnce:
    """Rows that cache the answer to the last local question, because all steps of a descent ask the same one."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._query: LocalMoments | None = None
        self._moments: Moments | None = None

    @classmethod
    def of(cls, rows: Rows) -> Rows:
        return cast(Rows, cls(rows))

    def local(self, query: LocalMoments) -> Moments:
        if self._moments is None or query is not self._query:
            self._query, self._moments = query, self._rows.local(query)
        return self._moments

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rows, name)


class KnownMoments(ReadOnce):
    """Rows with the precomputed answer to one local question, from a read that several plans shared."""

    def __init__(self, rows: Rows, query: LocalMoments, moments: Moments) -> None:
        super().__init__(rows)
        self._query, self._moments = query, moments


class PlanResult(NamedTuple, Generic[R]):
    """What a plan returned, and what it released."""

    value: R
    events: tuple[PrivacyEvent, ...]


def run_plans(rows: Rows, paid: Sequence[tuple[Plan[R], int]], noise: Noise, *, private: bool = True) -> Iterator[PlanResult[R]]:
    """Run each plan at a door of its own, within the quanta that were reserved for it. Plans about local questions share one read of the rows."""
    queries = [plan.query if isinstance(plan, LocalPlan) else None for plan, _ in paid]
    questions = [query for query in queries if query is not None]
    moments = iter(rows.local_many(questions) if questions else ())
    for (plan, quanta), query in zip(paid, queries, strict=True):
        asked = rows if query is None else cast(Rows, KnownMoments(rows, query, next(moments)))
        door = Door(asked, noise, quanta, private=private)
        yield PlanResult(plan.run(door), door.events)
