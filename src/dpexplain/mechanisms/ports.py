"""The interfaces that form the architecture, on one page: private rows, randomness, bounded queries, plans and mechanisms.

Adapters live above: `backends/` implements `Rows`, `noise/` implements `Noise`. A mechanism imports neither, and is given neither: a plan is run with
a `Door`, which evaluates bounded queries on the rows, adds the noise and counts what is released.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.baseline_shapley import ShapleySum
from dpexplain.core.expected_labels import LabelDistances
from dpexplain.core.label_moments import LabelSums
from dpexplain.core.marginals import Histograms, LabelTables, PairTables
from dpexplain.core.moments import LocalMoments, Moments, RawMoments, RawSums
from dpexplain.core.release_moments import CentreMoments, NormalisedMoments
from dpexplain.privacy.events import PrivacyEvent

if TYPE_CHECKING:
    from dpexplain.mechanisms.door import Door
    from dpexplain.mechanisms.history import History
    from dpexplain.mechanisms.setting import Setting
    from dpexplain.mechanisms.start import Start


@runtime_checkable
class Noise(Protocol):
    """The only source of privacy noise. Only a `Door` holds it."""

    @property
    def secure(self) -> bool:
        """Whether draws come from a cryptographic source, which cannot be replayed. A service accepts no other."""
        ...

    def standard_normal(self, size: int) -> Vector:
        """`size` independent standard normal numbers."""
        ...

    def uniform(self, size: int) -> Vector:
        """`size` independent numbers, uniform in the open interval (0, 1)."""
        ...

    def auxiliary_normal(self, size: int) -> Vector:
        """Standard normal numbers for simulations on what was released. They protect nothing."""
        ...


class Rows(Protocol):
    """Private records and their labels. Answers are exact and private: they leave only through a `Door`."""

    @property
    def width(self) -> int:
        """Number of encoded columns n."""
        ...

    @property
    def summation_error(self) -> float:
        """Public bound on |computed - true| ≤ summation_error · Σ|terms| for any sum this backend returns."""
        ...

    def local(self, query: LocalMoments) -> Moments:
        """(Σ α u uᵀ, Σ α y u, Σ α u, Σ α, Σ α y) with u = x - z, for one point of interest."""
        ...

    def local_many(self, queries: Sequence[LocalMoments]) -> list[Moments]:
        """`local` of each query, in order, from one read of the rows: `local(q) == local_many([q])[0]` to the last bit."""
        ...

    def raw(self, query: RawMoments) -> RawSums:
        """(Σ w, Σ w v, Σ w v vᵀ, Σ w y, Σ w y v) with v = x - anchor."""
        ...

    def centre(self, query: CentreMoments) -> Vector:
        """(Σ v, 2 Σ (v² - 1/8) over numbers) with v = x - public centre: stage 1 of a release."""
        ...

    def normalised(self, query: NormalisedMoments) -> RawSums:
        """`raw` around the query's centre with w(x) = 1/‖F(x, 1)‖: stage 2 of a release, of which `query.vector` makes Σ w(x)F(x, y);
        with `query.expected`, y is compared with it first."""
        ...

    def label_distances(self, query: LabelDistances) -> Vector:
        """How many rows have a label in each bin of distances from a plane: exact counts."""
        ...

    def histograms(self, query: Histograms) -> Vector:
        """How many rows fall into each cell of each attribute: exact counts."""
        ...

    def pair_tables(self, query: PairTables) -> Matrix:
        """Counts of every pair of bins of different attributes; symmetric, zero within an attribute, exact."""
        ...

    def label_tables(self, query: LabelTables) -> Matrix:
        """The labels of the rows added up in the same cells, each rounded to the query's grid; exact."""
        ...


@runtime_checkable
class SingleRows(Protocol):
    """Rows that a black box can be asked about one by one. Sparse rows cannot: they have too many features."""

    def shapley(self, query: ShapleySum) -> Vector:
        """Σ φ(x) over the rows that the query asks, exact."""
        ...


@runtime_checkable
class RelabelledRows(Protocol):
    """Rows that another black box can label too, wherever they are stored."""

    def label_sums(self, query: LabelSums) -> list[RawSums]:
        """`normalised` for each of the K labels that `query.ask`, a function of each row by itself, gives the rows' encoding."""
        ...


@runtime_checkable
class DivisibleRows(Rows, Protocol):
    """Rows in memory, which can be copied in part."""

    def __len__(self) -> int: ...

    def select(self, positions: NDArray[np.int64], most: int | None = None) -> DivisibleRows:
        """A copy of the rows at these positions; `most` is the largest number of rows that it can hold."""
        ...

    def row_major(self) -> Iterator[Matrix]:
        """All encoded rows in order, a piece at a time."""
        ...

    def labelled_pieces(self) -> Iterator[Matrix]:
        """All rows in order, a piece at a time, each followed by its label."""
        ...


@runtime_checkable
class ChangeDetecting(Protocol):
    """Rows outside this process, which may change or become unavailable."""

    def require_unchanged(self) -> None:
        """Raise RowsUnavailable if the rows are not those that were registered."""
        ...


@runtime_checkable
class Closable(Protocol):
    """Rows that hold resources outside this process, such as a cluster's workers."""

    def close(self) -> None: ...


class BatchLabels(Protocol):
    """The source of the labels of a batch of rows that is read from files."""

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The columns it reads besides the domain's; None for all."""
        ...

    def of(self, batch: Any, start: int) -> Vector:
        """One label in [-1, 1] for each row of an Arrow record batch; `start` is the position of its first row among all rows."""
        ...


class UndeclaredColumns(Protocol):
    """Private columns without a domain, as discovery counts them."""

    def coarse(self, names: Any) -> Vector:
        """How many numbers of each column fall into each coarse bin."""
        ...

    def fine(self, ranges: Mapping[str, tuple[float, float]]) -> Vector:
        """How many numbers of each column fall into each of the equal bins of its range."""
        ...

    def texts(self, name: str) -> dict[str, int]:
        """How many rows have each text of a column."""
        ...


@runtime_checkable
class BoundedQuery(Protocol):
    """A statistic of private rows and its L2 sensitivity, as one object, so that neither is used without the other."""

    @property
    def what(self) -> str:
        """The name of the release in a ledger."""
        ...

    @property
    def sensitivity(self) -> float:
        """How far neighbours can move the statistic as computed: relation, rows per unit and summation error included."""
        ...

    @property
    def dimension(self) -> int:
        """How many numbers the statistic has."""
        ...

    def evaluate(self, rows: Rows, at: Any) -> Vector:
        """The exact statistic of these rows at the public parameters `at`, for all of which the bound holds; others are refused."""
        ...


class SelectionQuery(Protocol):
    """Scores of public candidates on private rows, one of which an exponential mechanism selects."""

    @property
    def event(self) -> PrivacyEvent:
        """What one selection costs."""
        ...

    def exponents(self, rows: Rows) -> Vector:
        """For each candidate x: a candidate is selected with probability ∝ exp(x)."""
        ...


Result = TypeVar("Result", covariant=True)


class Plan(Protocol[Result]):
    """What a mechanism will release and its price, computed before any row is read."""

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        """The most that `run` may release; reserved before it."""
        ...

    def run(self, door: Door) -> Result:
        """Release through the door, and compute the result from what it returned."""
        ...


@runtime_checkable
class LocalPlan(Protocol):
    """A plan whose releases are all about one local question, so that several plans can share a read of the rows."""

    @property
    def query(self) -> LocalMoments: ...


class Mechanism(Protocol):
    """How a point of interest is explained. Its fields are public parameters."""

    @property
    def delta(self) -> float:
        """The δ at which one answer's cost is stated."""
        ...

    @property
    def private(self) -> bool:
        """False for settings for reproduction only, which are not private. A service refuses them."""
        ...

    def plan(self, point: Vector, setting: Setting, history: History, hint: Start | None = None) -> Plan[Any]:
        """Plan from public information only. `hint` is a starting point from elsewhere, such as a release."""
        ...

    def to_dict(self) -> dict[str, Any]: ...


@runtime_checkable
class HistoryFree(Protocol):
    """A mechanism whose plans do not depend on earlier answers: several can be planned and paid for before the first is given."""

    def plan_alone(self, point: Vector, setting: Setting) -> Plan[Any]:
        """`plan` without a history."""
        ...


@runtime_checkable
class UsesModel(Protocol):
    """A mechanism that can use the black box itself, where there is one to ask."""

    def with_model(self, model: Callable[[Matrix], Vector]) -> Mechanism:
        """The same mechanism with the black box, a function from encoded rows to labels in [-1, 1]."""
        ...


@runtime_checkable
class UsesAnswers(Protocol):
    """A mechanism that says whether its plans start from answers that are known already: those of a history, or a release's."""

    def uses_answers(self, setting: Setting) -> bool:
        """Whether plans in this setting do. If not, they use a history's sums alone, and answers are neither read nor kept for them."""
        ...
