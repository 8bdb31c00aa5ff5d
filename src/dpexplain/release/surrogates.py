"""A surrogate of the model of a release: answers and SHAP values in microseconds, without the model. Post-processing of the release.

It reproduces the model approximately for whoever gets it, so it is made, and published, only when it is asked for by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpexplain.answers.contributions import Contributions, feature_values, ordered_levels
from dpexplain.answers.contributions_batch import ContributionsBatch
from dpexplain.core.answer_scale import AnswerScale
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.domain import Domain, QueryRules, read_queries, read_query
from dpexplain.domain.queries import Extra
from dpexplain.errors import ParameterError
from dpexplain.estimation.surrogate import Grid, Surrogate, fit_surrogate
from dpexplain.privacy.budget import Guarantee
from dpexplain.registration.labels import Labeller
from dpexplain.release.reference_data import ReferenceData
from dpexplain.release.reference_shapley import prepare

_COMPARED, _BACKGROUND = 24, 256  # records on which the surrogate's SHAP values are compared with the model's own
_DIGITS = 6


@dataclass(frozen=True, slots=True, eq=False)
class ReleaseSurrogate:
    """Tables for single features and pairs. `fidelity` is R² on reference records that were held out.

    `error` is each contribution's standard error: how far the surrogate's SHAP values are from the model's own, on some reference records, together
    with those of the model's.
    """

    domain: Domain
    tables: Surrogate
    error: Vector
    scale: AnswerScale
    guarantee: Guarantee

    @property
    def fidelity(self) -> float:
        return self.tables.fidelity

    def predict(self, records: Any) -> Vector:
        """Answers in their own units."""
        return self.scale.answers(np.clip(self.tables.predict(read_queries(self.domain, records, QueryRules()).points), -1, 1))

    def shapley(self, record: Any, *, extra: Extra = "refuse", clip: bool = False) -> Contributions:
        """SHAP values of the surrogate at `record`; they add up to its answer. `extra` and `clip` are as for `Release.explain`."""
        point, _ = read_query(self.domain, record, (), extra, clip)
        return self._contributions(point[None])[0]

    def shapley_many(self, records: Any, *, extra: Extra = "refuse", clip: bool = False) -> ContributionsBatch:
        """The same for many records."""
        return self._contributions(read_queries(self.domain, records, QueryRules(extra, clip)).points)

    def _contributions(self, points: Matrix) -> ContributionsBatch:
        values = self.scale.slopes(self.tables.shapley(points))
        answer = self.scale.answers(self.tables.predict(points))
        return ContributionsBatch(
            names=self.domain.columns,
            values=values,
            base=answer - values.sum(axis=1),
            answer=answer,
            error=np.tile(self.scale.slopes(self.error), (len(points), 1)),
            scale=self.scale,
            record=feature_values(self.domain, points),
            guarantee=self.guarantee,
            titles=tuple(feature.label_of(feature.name) for feature in self.domain.features),
            levels=ordered_levels(self.domain),
            details={"quantity": "shapley", "source": "surrogate", "fidelity": self.fidelity},
        )

    def payload(self) -> dict[str, Any]:
        """The tables in JSON's types, for a page; labels, not the answer's units."""
        singles = [{"feature": one.feature, "grid": _grid(one.grid), "table": _round(one.table)} for one in self.tables.singles]
        pairs = [
            {
                "first": one.first,
                "second": one.second,
                "grids": [_grid(grid) for grid in one.grids],
                "table": [_round(row) for row in one.table],
                "along": _round(one.table @ one.columns),
                "across": _round(one.rows @ one.table),
                "mean": one.mean,
            }
            for one in self.tables.pairs
        ]
        return {
            "features": self.tables.features,
            "constant": self.tables.constant,
            "fidelity": self.fidelity,
            "error": self.error.tolist(),
            "singles": singles,
            "pairs": pairs,
        }


def make_surrogate(
    reference: ReferenceData, labeller: Labeller | None, scale: AnswerScale, guarantee: Guarantee
) -> ReleaseSurrogate:
    """Fitted to the labelled records; compared with the model's own SHAP values where it can be asked."""
    if reference.labels is None or reference.weights is None:
        raise ParameterError(
            "these reference records have no labels to fit to. Register the data with model=, or relabel the release"
        )
    tables = fit_surrogate(reference.encoded, reference.labels, reference.weights, reference.domain.blocks)
    return ReleaseSurrogate(reference.domain, tables, _errors(reference, tables, labeller), scale, guarantee)


def _errors(reference: ReferenceData, tables: Surrogate, labeller: Labeller | None) -> Vector:
    points = reference.encoded[reference.positions_by_weight(_COMPARED)]
    if labeller is None:  # what is not explained could be any feature's
        spread = float(tables.predict(reference.encoded).std())
        return np.full(tables.features, np.sqrt(max(1 - tables.fidelity, 0.0)) * spread)
    values, errors, _ = prepare(reference, labeller, _BACKGROUND).explain(points)
    return np.asarray(np.sqrt(np.square(values - tables.shapley(points)).mean(axis=0) + np.square(errors).mean(axis=0)))


def _grid(grid: Grid) -> dict[str, Any]:
    return {"start": grid.start, "stop": grid.stop, "edges": None if grid.edges is None else grid.edges.tolist()}


def _round(values: Vector) -> list[float]:
    return [round(float(value), _DIGITS) for value in values]
