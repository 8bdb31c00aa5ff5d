"""The records that a rehearsal asks about, and the exact answers about them. Reads private rows without paying."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpexplain.answers.contributions import per_feature
from dpexplain.core.answer_scale import AnswerScale
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.moments import Moments, RawMoments
from dpexplain.core.plane import Plane
from dpexplain.core.weights import Custom, Gaussian, Weight, Window
from dpexplain.data import PrivateData
from dpexplain.domain import Domain
from dpexplain.errors import ParameterError, QueryError
from dpexplain.evaluation.baselines.inputs import column_scales, column_spread
from dpexplain.evaluation.baselines.shap import draw_rows
from dpexplain.evaluation.metrics.fidelity import minimiser
from dpexplain.mechanisms.ports import DivisibleRows

_SPARE = 4  # rows drawn for each that is asked about: some hold values that are not valid in a query
_UNBOUNDED = 1e300


@dataclass(frozen=True, slots=True, eq=False)
class Questions:
    """Records as a caller asks about them, their encoded points, and the model's labels there where the model can be asked."""

    records: list[Any]
    points: Matrix
    labels: Vector | None

    def __len__(self) -> int:
        return len(self.records)


def choose_questions(data: PrivateData, records: Any, count: int, seed: int) -> Questions:
    """The caller's records, or `count` private rows."""
    if records is None:
        chosen = _draw_rows(data, count, seed)
    else:
        chosen = data.domain.separate(records)
        if not chosen:
            raise ParameterError("records is empty. Pass at least one record, or leave it out to draw private rows")
    points = np.asarray(data.domain.encode_queries(chosen), dtype=np.float64)
    return Questions(chosen, points, None if data.column_model is None else data.column_model(points))


def _draw_rows(data: PrivateData, count: int, seed: int) -> list[Any]:
    if not (isinstance(data.domain, Domain) and isinstance(data.private_rows, DivisibleRows)):
        raise ParameterError("records can be drawn from tables in memory only. Pass records=, such as a few hundred typical ones")
    rows = draw_rows(data, min(count * _SPARE, len(data.private_rows)), seed)
    found = [record for record in _decode_rows(data.domain, rows) if _is_valid_query(data.domain, record)]
    if not found:
        raise ParameterError("none of the drawn rows can be asked about: each has an unknown or missing value. Pass records=")
    return found[:count]


def _decode_rows(domain: Domain, rows: Matrix) -> Iterator[dict[str, Any]]:
    columns = domain.decode(rows)
    return ({name: column[i] for name, column in columns.items()} for i in range(len(rows)))


def _is_valid_query(domain: Domain, record: dict[str, Any]) -> bool:
    try:
        domain.encode_query(record)
    except QueryError:
        return False
    return True


@dataclass(frozen=True, slots=True, eq=False)
class Exact:
    """The exact answer about one record: slopes, contributions, the moments that other answers are compared by, and how many rows count."""

    slopes: Vector
    added: Vector
    moments: Moments
    effective_rows: float


@dataclass(slots=True, eq=False)
class ExactAnswers:
    """Exact answers, each computed once for a record and a weight."""

    data: PrivateData
    questions: Questions
    plane: Plane
    _mean: Vector = field(init=False)
    _known: dict[tuple[int, str], Exact] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._mean = column_spread(self.data).mean

    def answer_at(self, index: int, weight: Weight) -> Exact:
        key = index, repr(weight)
        if key not in self._known:
            self._known[key] = self._compute(index, weight)
        return self._known[key]

    def contributions_of(self, index: int, slopes: Vector) -> Vector:
        """Contributions of slopes, by feature, compared with the rows' own average."""
        return per_feature(self.data.domain, slopes * (self.questions.points[index] - self._mean))

    def _compute(self, index: int, weight: Weight) -> Exact:
        point = self.questions.points[index]
        scale = column_scales(self.data)
        sums = self.data.private_rows.raw(RawMoments(point, weight, scale))
        squares = self.data.private_rows.raw(RawMoments(point, square_weight(weight), scale))
        slopes = minimiser(moments := self._judge(sums, index), self.plane)
        effective = sums.S0**2 / squares.S0 if squares.S0 > 0 else 0.0
        return Exact(slopes, self.contributions_of(index, slopes), moments, effective)

    def _judge(self, sums: Any, index: int) -> Moments:
        if self.plane == "fitted":
            return sums.eliminate_intercept()  # type: ignore[no-any-return]
        plain: Moments = sums.shift(np.zeros_like(sums.S1))
        labels = self.questions.labels
        return plain.relabelled_from(float(labels[index])) if self.plane == "anchored" and labels is not None else plain


@dataclass(frozen=True, slots=True)
class _Square:
    weight: Weight

    def __call__(self, distance: Vector) -> Vector:
        return np.square(self.weight(distance))


def square_weight(weight: Weight) -> Weight:
    """α². The sums of α and α² over the rows give the effective number of rows."""
    if isinstance(weight, Window):
        return weight
    if isinstance(weight, Gaussian):
        return Gaussian(weight.width / np.sqrt(2))
    square: Callable[[Vector], Vector] = _Square(weight)
    return Custom(square, c=_UNBOUNDED, maximum=_UNBOUNDED)


def anchors_for(plane: Plane, questions: Questions, scale: AnswerScale) -> Sequence[float] | None:
    """The model's answers, in their own units, where planes go through them."""
    if plane != "anchored":
        return None
    if questions.labels is None:
        raise ParameterError("plane='anchored' needs the model's answers. Register the data with model=, or choose another plane")
    return [float(one) for one in scale.answers(questions.labels)]
