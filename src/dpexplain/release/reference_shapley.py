"""SHAP values over private reference records: what each feature adds to a model's answer, for any model and any number of records, free.

Interventional SHAP compares a record with background records. Here these are the reference records of a release with their raked weights, so the values are
post-processing of what was released: private for the explanation data, whatever is asked. The model itself is asked about mixtures of the record with
reference records, so its answers, and what they reveal about its training data, are not protected by the release.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpexplain.answers.contributions import feature_names, feature_titles, feature_values, ordered_levels
from dpexplain.answers.contributions_batch import ContributionsBatch
from dpexplain.arguments import quote
from dpexplain.core.answer_scale import AnswerScale
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.domain import Domain
from dpexplain.errors import DataError, ParameterError
from dpexplain.estimation.background import Background, positions_of
from dpexplain.estimation.coalitions import MOST_EXACT, questions_per_record, record_values
from dpexplain.estimation.hidden_codes import Alternatives
from dpexplain.estimation.reference import LABEL_STEPS
from dpexplain.privacy.budget import Guarantee
from dpexplain.progress import with_bar
from dpexplain.registration.labels import Labeller
from dpexplain.registration.model_sources import Estimator
from dpexplain.release.reference_data import ReferenceData, every_value

if TYPE_CHECKING:
    from dpexplain.release.image_shapley import ImageReference
    from dpexplain.release.tree_model import TreeModel

QUESTIONS = 1 << 15  # about how many the model is asked for one answer
FEWEST_RECORDS, MOST_RECORDS = 64, 1 << 12
_PROBED = 64
_REMEMBERED = 4  # models, or classes of models
_MANY = 8  # records from which a progress bar is shown
_SAME = 1 / LABEL_STEPS  # stored labels are rounded
TRAINING = (
    "The model was asked about this {asked} and about mixtures of it with {background}; what its answers say about the data it was "
    "trained on is not limited by this release."
)


@dataclass(frozen=True, slots=True, eq=False)
class ShapleyReference:
    """One model and the reference records that it is compared on: prepared once, for any number of records."""

    domain: Domain
    labeller: Labeller
    background: Background
    columns: dict[str, NDArray[Any]]  # of the background records and their alternatives, as the model is shown them
    at_records: Vector
    same_model: bool  # whether its answers are the reference's labels
    trees: TreeModel | None

    def explain(self, points: Matrix, *, bar: bool = True) -> tuple[Matrix, Matrix, Vector]:
        """(values, errors, answers) in labels, for encoded records."""
        queries = self.domain.decode(points)
        answers = self.labeller(queries)  # one question for all: a model that cannot answer raises before anything is computed
        found = []
        for i in with_bar(range(len(points)), "explaining", len(points)) if bar and len(points) >= _MANY else range(len(points)):
            query = {name: column[i : i + 1] for name, column in queries.items()}
            each = self.record_values(query, float(answers[i]), bar=bar and len(points) < _MANY)
            found.append(self.background.average_by_feature(each, ignored=self.trees is not None))
        empty = np.zeros((0, len(self.columns)))
        values = np.array([value for value, _ in found]) if found else empty
        return values, np.array([error for _, error in found]) if found else empty, answers

    def record_values(self, query: dict[str, NDArray[Any]], answer: float, *, bar: bool = False) -> Matrix:
        """Shapley values of the game with each background record and alternative, (records, features)."""
        if self.trees is not None and self.trees.applies_to(query, self.columns, answer):
            return self.trees.values(query, self.columns)
        both = {name: np.concatenate([column, query[name]]) for name, column in self.columns.items()}
        each = _with_bar if bar else iter
        return record_values(partial(self._ask_mixtures, both), self.at_records, answer, len(self.columns), each)

    def _ask_mixtures(self, both: dict[str, NDArray[Any]], records: NDArray[np.intp], joined: NDArray[np.bool_]) -> Vector:
        """Answers about records with the features that joined taken from the query, which is the last row of `both`."""
        last = len(self.at_records)
        return self.labeller(
            {name: column[np.where(joined[:, j], last, records)] for j, (name, column) in enumerate(both.items())}
        )

    def is_about(self, labeller: Labeller) -> bool:
        """Whether this is about the same model, asked in the same way, and it still answers as it did about some of the records."""
        mine, other = self.labeller, labeller
        same = mine.model is other.model and mine.table == other.table and mine.domain is other.domain
        if not same or (mine.target, mine.output, mine.bounds) != (other.target, other.output, other.bounds):
            return False
        some = {name: column[:_PROBED] for name, column in self.columns.items()}
        return bool(np.array_equal(labeller(some), self.at_records[:_PROBED]))

    @property
    def base(self) -> tuple[float, float]:
        """(the average answer over the reference, its standard error)."""
        return self.background.average_one(self.at_records)

    @property
    def details(self) -> dict[str, Any]:
        players = len(self.columns)
        asked = 0 if self.trees is not None else len(self.at_records) * questions_per_record(players)
        black_box = "all coalitions" if players <= MOST_EXACT else "paired orders"
        method = black_box if self.trees is None else self.trees.method
        return {
            "quantity": "shapley",
            "source": "reference",
            "method": method,
            "records": len(self.background.weights),
            "questions": asked,
            "same_model": self.same_model,
            "training_data": TRAINING.format(asked="record", background="reference records"),
        }


def prepare(
    reference: ReferenceData,
    labeller: Labeller,
    records: int | None = None,
    questions: int = QUESTIONS,
    most: int = MOST_RECORDS,
) -> ShapleyReference:
    """Choose background records and ask the model about them; `records` is how many, by default as many as `questions` allow, at most `most`."""
    players = len(reference.domain.features)
    trees = _find_trees(labeller, reference)
    if records is None:
        wanted = trees.most_records if trees is not None else questions // questions_per_record(max(players, 2))
        records = int(np.clip(wanted, FEWEST_RECORDS, most))
    positions = positions_of(len(reference), checked_count(records, len(reference)))
    columns = reference.columns_at(positions)
    answers = labeller(columns)
    same = reference.labels is not None and bool(np.abs(answers - reference.labels[positions]).max() <= _SAME)
    background = reference.background(len(positions), with_labels=same)
    alternatives, others, found = _ask_alternatives(reference, labeller, positions, answers)
    if len(alternatives):
        background = background.with_alternatives(alternatives)
        columns = {name: np.concatenate([column, others[name]]) for name, column in columns.items()}
        answers = np.concatenate([answers, found])
    trees = None if trees is None else trees.compared_with(columns, answers)
    return ShapleyReference(reference.domain, labeller, background, columns, answers, same, trees)


def _ask_alternatives(
    reference: ReferenceData, labeller: Labeller, positions: NDArray[np.intp], answers: Vector
) -> tuple[Alternatives, dict[str, NDArray[Any]], Vector]:
    """(alternatives of the background records, as the model is shown them, its answers); none where it does not accept every declared value."""
    proposed = reference.alternatives(len(positions))
    if not len(proposed):
        return proposed, {}, answers[:0]
    columns = reference.columns_of_alternatives(proposed, positions)
    try:
        asked = labeller(columns)
    except DataError:
        return proposed.take(np.arange(0)), {}, answers[:0]
    kept, times = proposed.worth_keeping(asked - answers[proposed.records])
    return proposed.take(kept, times), {name: column[kept] for name, column in columns.items()}, asked[kept]


def prepare_once(reference: ReferenceData, labeller: Labeller, records: int | None) -> ShapleyReference:
    """`prepare`, or what it returned before for the same model and records where the model still answers alike."""
    known: list[tuple[int | None, ShapleyReference]] = reference.compared_models
    for count, over in known:
        if count == records and over.is_about(labeller):
            return over
    made = prepare(reference, labeller, records)
    known.append((records, made))
    del known[:-_REMEMBERED]
    return made


def _find_trees(labeller: Labeller, reference: ReferenceData) -> TreeModel | None:
    """The trees of a fitted model that is made of them, alone, at the end of a pipeline, or from a file."""
    model, table = labeller.model, labeller.table
    if isinstance(model, Estimator):  # from a file: asked with what it prepares
        given, shown = table, model.prepare
        model, table = model.fitted, lambda columns: shown(given(columns))
    if not hasattr(model, "steps") and not type(model).__module__.startswith(("sklearn.", "lightgbm.", "xgboost.")):
        return None
    from dpexplain.release.tree_model import find_trees  # which compiles its loops

    records, public = reference.columns_at(positions_of(len(reference), _PROBED)), every_value(reference.domain, _PROBED)
    some = {name: np.concatenate([column, public[name]]) for name, column in records.items()}
    return find_trees(model, labeller.target, table, labeller, some)


def checked_count(records: Any, available: int) -> int:
    """How many background records to use: a whole number, large enough, and no more than there are."""
    if isinstance(records, bool) or not isinstance(records, int) or records < FEWEST_RECORDS:
        raise ParameterError(
            f"records must be a whole number of at least {FEWEST_RECORDS}, got {quote(records)}: fewer say too little"
        )
    return min(records, available)


def shapley_batch(
    over: ShapleyReference, points: Matrix, scale: AnswerScale, guarantee: Guarantee, fingerprint: str | None
) -> ContributionsBatch:
    """SHAP values of encoded records."""
    return in_own_units(over, points, over.explain(points), scale, guarantee, fingerprint)


def in_own_units(
    over: ShapleyReference | ImageReference,
    points: Matrix,
    found: tuple[Matrix, Matrix, Vector],
    scale: AnswerScale,
    guarantee: Guarantee,
    fingerprint: str | None = None,
) -> ContributionsBatch:
    """(values, errors, answers) of labels as contributions in the answer's own units, which add up to each answer."""
    values, errors, answers = found
    own, (_, base_error) = scale.slopes(values), over.base
    answer = scale.answers(answers)
    return ContributionsBatch(
        names=feature_names(over.domain),
        values=own,
        base=answer - own.sum(axis=1),
        answer=answer,
        error=scale.slopes(errors),
        scale=scale,
        record=feature_values(over.domain, points),
        base_error=np.full(len(points), float(scale.slopes(base_error))),
        answer_error=np.zeros(len(points)),
        guarantee=guarantee,
        titles=feature_titles(over.domain),
        levels=ordered_levels(over.domain),
        details=over.details | ({} if fingerprint is None else {"fingerprint": fingerprint}),
    )


def _with_bar(parts: Sequence[slice]) -> Iterable[slice]:
    return with_bar(parts, "asking the model", len(parts))
