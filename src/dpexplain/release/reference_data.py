"""Private reference data: synthetic records in the domain's own terms, which any tool may read.

They are drawn from a model of noisy counts (`mechanisms/marginals_plan.py`, `estimation/population.py`) and labelled by the black box, so whatever is
computed from them is private for the explanation data by post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpexplain.arguments import quote
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.cells import CellCodes
from dpexplain.core.layout import Layout
from dpexplain.domain import Domain, DomainLike
from dpexplain.domain.catalogue import Feature
from dpexplain.domain.columns import plain_columns
from dpexplain.errors import ParameterError
from dpexplain.estimation.answer import Solver
from dpexplain.estimation.background import Background, WeightedRecords, choose_background
from dpexplain.estimation.global_slopes import Slopes
from dpexplain.estimation.hidden_codes import Alternatives, propose_alternatives
from dpexplain.estimation.local_reference import LocalReference
from dpexplain.estimation.reference import NUMBER_STEPS

FEWEST, MOST = 1 << 10, 1 << 20
_USUAL, _MANY = 1 << 17, 1 << 19  # records that `reference=True` asks for
_LARGE, _WIDE = 1_000_000, 128  # rows from which these are many, columns up to which many fit into memory
CHANGE_STEPS = 63
LARGEST_NUMBER = 1e100  # in a file: its square does not overflow
_LEFT = 0.25  # of τ², by which records missed the label moments, after they were raked to these
Changes: TypeAlias = NDArray[np.int8]


@dataclass(frozen=True, eq=False, repr=False)
class ReferenceData:
    """Synthetic records that follow the private ones in every pair of features. They belong to no person.

    `labels` is None, and explanations follow the moments alone, where data were registered with `labels=`: there is no model to ask.
    """

    domain: Domain
    codes: CellCodes
    labels: Vector | None
    weights: Vector | None
    radius: float
    changes: Changes | None = None  # from which error bars are computed (estimation/response.py)
    bias: float = 0.0
    slopes: Slopes | None = None  # of the plane through all rows, by these records and the moments
    position_errors: Matrix | None = None  # of numbers within their bins: column, upper edge, error; None in older files
    hidden_codes: Matrix | None = None  # that noise may hide: attribute, code, share; None in older files

    @cached_property
    def encoded(self) -> Matrix:
        """(rows, n): the records as the domain encodes them."""
        layout = Layout.of(self.domain.blocks)
        out = np.empty((len(self), layout.width))
        for a, (feature, codes) in enumerate(zip(self.domain.features, self.codes, strict=True)):
            block, (values, places) = layout.columns(a), _values_of(feature, codes, layout, a)
            few = np.empty((len(values), block.stop - block.start))
            feature.fill(values, few)
            out[:, block] = few[places]
        return out

    @property
    def frame(self) -> Any:
        """The records in the domain's own terms: a pandas data frame, or a pyarrow table where pandas is not installed."""
        import narwhals as nw

        return nw.from_dict(plain_columns(self._columns), backend="pandas" if find_spec("pandas") else "pyarrow").to_native()

    def solver(self, rows: int) -> LocalReference | None:
        """Explains from these records, which stand for so many private rows; None where they have no labels."""
        if self.labels is None or self.weights is None or self.changes is None:
            return None
        changes = (self.changes / CHANGE_STEPS).astype(np.float32)
        layout = Layout.of(self.domain.blocks)
        return LocalReference(self.encoded, self.labels, self.weights, changes, layout, self.radius, self.bias, rows)

    @property
    def _columns(self) -> dict[str, Any]:
        return columns_of(self.codes, self.domain)

    def columns_at(self, positions: NDArray[np.intp]) -> dict[str, Any]:
        """Some of the records in the domain's own terms, as a model is shown them."""
        return columns_of(self.codes[:, positions], self.domain)

    def positions_by_weight(self, count: int) -> NDArray[np.intp]:
        """`count` records of equal weight: at equal distances along the sum of the weights."""
        reached = np.cumsum(self._weighted_records.weights)
        places = (np.arange(count) + 0.5) / count * reached[-1]
        return np.asarray(np.minimum(np.searchsorted(reached, places), len(self) - 1))

    def changes_at(self, positions: NDArray[np.intp]) -> Matrix:
        """What other noise would change about the log weights of some records, (rehearsals, records)."""
        return self._weighted_records.changes[:, positions]

    def background(self, count: int, *, with_labels: bool) -> Background:
        """About `count` records that represent all of them (estimation/background.py); chosen once for each count."""
        if (key := (count, with_labels)) not in self._backgrounds:
            labels = self.labels if with_labels else None
            self._backgrounds[key] = choose_background(self._weighted_records, labels, self.domain.blocks, count)
        return self._backgrounds[key]

    def alternatives(self, count: int) -> Alternatives:
        """Hidden codes in the records of a background of this `count` of records."""
        return propose_alternatives(np.empty((0, 3)) if self.hidden_codes is None else self.hidden_codes, count)

    def columns_of_alternatives(self, alternatives: Alternatives, positions: NDArray[np.intp]) -> dict[str, Any]:
        """Alternatives of the records at `positions`, in the domain's own terms."""
        return columns_of(alternatives.of(self.codes[:, positions]), self.domain)

    @cached_property
    def _backgrounds(self) -> dict[tuple[int, bool], Background]:
        return {}

    @cached_property
    def compared_models(self) -> list[Any]:
        """Models that were prepared for Shapley values over these records (`release/reference_shapley.py`), the latest last."""
        return []

    @cached_property
    def _weighted_records(self) -> WeightedRecords:
        weights = np.ones(len(self)) if self.weights is None else self.weights
        changes = np.zeros((0, len(self))) if self.changes is None else self.changes / CHANGE_STEPS
        return WeightedRecords(self.encoded, weights / weights.sum(), changes, _LEFT * self.bias, self.position_errors)

    def arrays(self) -> dict[str, Any]:
        """The arrays that a release file stores."""
        stored: dict[str, Any] = {"reference_codes": self.codes.astype(np.uint16)}
        if self.labels is not None and self.weights is not None:
            stored |= {"reference_labels": self.labels, "reference_weights": self.weights}
        if self.changes is not None:
            stored |= {"reference_changes": self.changes, "reference_bias": np.array([self.bias])}
        if self.slopes is not None:
            stored |= {"reference_slopes": self.slopes.values, "reference_spread": self.slopes.spread}
            stored |= {"reference_doubt": np.array([self.slopes.doubt])}
            stored |= {} if self.slopes.noise is None else {"reference_noise": self.slopes.noise}
        if self.position_errors is not None:
            stored |= {"reference_positions": self.position_errors}
        if self.hidden_codes is not None:
            stored |= {"reference_hidden": self.hidden_codes}
        return stored

    def __len__(self) -> int:
        return int(self.codes.shape[1])

    def __repr__(self) -> str:
        labelled = "with labels" if self.labels is not None else "without labels"
        return f"<ReferenceData: {len(self):,} records of {len(self.domain.features)} features, {labelled}>"


def reference_rows(wanted: bool | int, rows: int, columns: int) -> int:
    """How many records `reference=` asks for, given the public size of the table.

    From a million rows on, what limits narrow weights is how few records are near a query, and not what is known about the rows.
    """
    if isinstance(wanted, bool):
        return (_MANY if rows >= _LARGE and columns <= _WIDE else _USUAL) if wanted else 0
    if not (isinstance(wanted, int) and FEWEST <= wanted <= MOST):
        raise ParameterError(
            f"reference must be True, False or a number of records from {FEWEST:,} to {MOST:,}, got {quote(wanted)}"
        )
    return wanted


def restore_reference(arrays: dict[str, Any], domain: DomainLike, solver: Solver) -> ReferenceData | None:
    """What `ReferenceData.arrays` stored; ValueError unless it makes sense."""
    if not arrays:
        return None
    if not isinstance(domain, Domain):
        raise ValueError("reference records without a table's domain")
    codes, labels, weights, changes, bias = (
        arrays.get(f"reference_{name}") for name in ("codes", "labels", "weights", "changes", "bias")
    )
    layout = Layout.of(domain.blocks)
    if codes is None or codes.shape[:1] != (layout.attributes,) or (codes > largest_codes(layout)[:, None]).any():
        raise ValueError("reference codes")
    if (labels is None) != (weights is None) or (labels is not None and not _is_valid(labels, weights, codes.shape[1:])):
        raise ValueError("reference labels")
    made = ReferenceData(domain, codes.astype(np.int64), labels, weights, solver.radius)
    if labels is None and changes is None:  # without labels, older files have no errors
        return made
    if bias is None or not _has_valid_errors(changes, bias, codes.shape[1:]):
        raise ValueError("reference errors")
    return replace(
        made,
        changes=changes,
        bias=float(bias[0]),
        slopes=_restore_slopes(arrays, layout),
        position_errors=_restore_positions(arrays, layout),
        hidden_codes=_restore_hidden(arrays, layout),
    )


def _restore_hidden(arrays: dict[str, Any], layout: Layout) -> Matrix | None:
    found = arrays.get("reference_hidden")
    if found is None:
        return None
    if found.ndim != 2 or found.shape[1] != 3 or not np.isfinite(found).all() or (found < 0).any():
        raise ValueError("reference hidden codes")
    attributes, codes = found[:, :2].astype(np.int64).T
    if (attributes >= layout.attributes).any() or (codes > largest_codes(layout)[attributes]).any():
        raise ValueError("reference hidden codes")
    return np.asarray(found)


def _restore_positions(arrays: dict[str, Any], layout: Layout) -> Matrix | None:
    found = arrays.get("reference_positions")
    if found is None:
        return None
    known = (
        found.ndim == 2 and found.shape[1] == 3 and np.isfinite(found).all() and set(found[:, 0]) <= set(layout.numbers.tolist())
    )
    if not known or (found[:, 2] < 0).any():
        raise ValueError("reference positions")
    return np.asarray(found)


def _restore_slopes(arrays: dict[str, Any], layout: Layout) -> Slopes | None:
    """None in files from before there were planes."""
    values, spread, doubt = (arrays.get(f"reference_{name}") for name in ("slopes", "spread", "doubt"))
    if values is None or spread is None or doubt is None:
        return None
    finite = values.shape == spread.shape == (layout.width,) and np.isfinite(np.concatenate([values, spread, doubt])).all()
    if not finite or doubt.shape != (1,) or (spread < 0).any() or not doubt[0] >= 0:
        raise ValueError("reference slopes")
    return Slopes(values, spread, float(doubt[0]), noise=restore_noise(arrays.get("reference_noise"), layout.width))


def restore_noise(found: Vector | None, columns: int) -> Vector | None:
    """The part of slopes' errors that noise causes; None in files that do not tell it from shrinkage. ValueError unless it makes sense."""
    if found is not None and not (found.shape == (columns,) and ((found >= 0) & (found <= LARGEST_NUMBER)).all()):
        raise ValueError("noise of slopes")
    return found


def _is_valid(labels: Any, weights: Any, shape: tuple[int, ...]) -> bool:
    return bool(
        labels.shape == shape == weights.shape
        and (np.abs(labels) <= 1).all()
        and ((weights > 0) & (weights <= LARGEST_NUMBER)).all()
    )


def _has_valid_errors(changes: Any, bias: Any, shape: tuple[int, ...]) -> bool:
    if changes is None or bias is None:
        return False
    stored = changes.dtype == np.int8 and changes.ndim == 2 and changes.shape[1:] == shape
    return bool(stored and bias.shape == (1,) and 0 <= float(bias[0]) < np.inf)


def largest_codes(layout: Layout) -> Any:
    """The largest code each attribute can have."""
    return np.where(layout.is_number, NUMBER_STEPS, np.array(layout.stops) - np.array(layout.starts))


def columns_of(codes: CellCodes, domain: Domain) -> dict[str, Any]:
    """Stored records in the domain's own terms."""
    layout, found = Layout.of(domain.blocks), {}
    for a, (feature, code) in enumerate(zip(domain.features, codes, strict=True)):
        values, places = _values_of(feature, code, layout, a)
        found[feature.name] = values[places]
    return found


def _values_of(feature: Feature, codes: CellCodes, layout: Layout, attribute: int) -> tuple[Any, NDArray[np.intp]]:
    """(the values that occur, which of them each record has): they are few, so decoding and encoding them takes next to no time."""
    occurring = np.bincount(codes) > 0
    used, block = np.flatnonzero(occurring), layout.columns(attribute)
    if layout.is_number[attribute]:
        columns = used[:, None] / NUMBER_STEPS
    else:
        columns = np.eye(block.stop - block.start + 1)[used, :-1]
    return feature.read(columns), (np.cumsum(occurring) - 1)[codes]


def stored_changes(changes: Matrix) -> Changes:
    """Rounded to what a file stores; log weights change by at most 2 in absolute value, larger changes are cut."""
    return np.rint(np.clip(changes, -2, 2) * CHANGE_STEPS).astype(np.int8)


def every_value(domain: Domain, fewest: int) -> dict[str, Any]:
    """Public records in which every category of every feature occurs, and numbers all over their ranges: `fewest` records or more."""
    layout = Layout.of(domain.blocks)
    sizes = np.where(layout.is_number, 1, np.array(layout.stops) - np.array(layout.starts))
    count = max(fewest, int(sizes.max()))
    numbers = np.arange(count) * (NUMBER_STEPS // 7) % (NUMBER_STEPS + 1)
    codes = [numbers if number else np.arange(count) % size for number, size in zip(layout.is_number, sizes, strict=True)]
    return columns_of(np.stack(codes), domain)


def trial_columns(domain: Domain) -> dict[str, Any]:
    """A few public records, to check that the model answers before anything is paid."""
    layout = Layout.of(domain.blocks)
    sizes = np.array(layout.stops) - np.array(layout.starts)
    largest = np.where(layout.is_number, NUMBER_STEPS, sizes - 1)
    return columns_of(np.stack([np.zeros_like(largest), largest], axis=1), domain)
