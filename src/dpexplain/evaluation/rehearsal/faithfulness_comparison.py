"""Faithfulness of private answers beside the exact ones, LIME and SHAP, on the records of a rehearsal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dpexplain.answers.contributions import per_feature
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.data import PrivateData
from dpexplain.evaluation.baselines.inputs import Model
from dpexplain.evaluation.baselines.lime import lime
from dpexplain.evaluation.baselines.shap import draw_rows, shap_values
from dpexplain.evaluation.metrics import faithfulness as metrics
from dpexplain.evaluation.metrics.agreement import cosine
from dpexplain.evaluation.rehearsal.questions import ExactAnswers
from dpexplain.mechanisms.ports import DivisibleRows
from dpexplain.progress import ProgressCallback

MOST = 10  # records: LIME and SHAP ask the model thousands of questions about each
BACKGROUND, PERMUTATIONS, LIME_SAMPLES = 100, 5, 2_000
NO_MODEL = "Faithfulness was not measured: it needs the model. Register the data with model= (--model) instead of labels."
NO_LIME = "LIME is not installed, so it is not shown. Run: pip install 'dpexplain[baselines]'."
NO_DRAWS = "Faithfulness was not measured: the rows are not in memory, and SHAP needs some of them for background."


@dataclass(frozen=True, slots=True)
class Faithfulness:
    """Means over records: cosine of contributions to SHAP's, and the metrics of `evaluation`."""

    method: str
    cosine_to_shap: float
    deletion: float
    insertion: float
    pgi: float
    pgu: float
    infidelity: float


def measure_faithfulness(
    data: PrivateData, exact: ExactAnswers, private: Mapping[str, Matrix], optima: Matrix, seed: int, watch: ProgressCallback
) -> tuple[tuple[Faithfulness, ...], tuple[str, ...]]:
    """(one line for each method, what could not be measured); `private` has slopes by the name of their way, one row a record."""
    if data.column_model is None:
        return (), (NO_MODEL,)
    if not isinstance(data.private_rows, DivisibleRows):
        return (), (NO_DRAWS,)
    rows = draw_rows(data, BACKGROUND, seed)
    slopes = {"exact answer": optima, **private}
    notes: tuple[str, ...] = ()
    found: dict[str, list[Vector]] = {}
    for i in range(min(MOST, len(exact.questions))):
        watch(f"faithfulness of record {i + 1}")
        methods: dict[str, tuple[Vector, metrics.Kind]] = {name: (values[i], "slope") for name, values in slopes.items()}
        try:
            methods["LIME"] = _lime(data, exact, i, seed), "slope"
        except ImportError:
            notes = (NO_LIME,)
        shap = shap_values(data, exact.questions.points[i], background=rows, permutations=PERMUTATIONS, seed=seed)
        methods[f"SHAP, {BACKGROUND} rows"] = shap, "contribution"
        for name, (values, kind) in methods.items():
            found.setdefault(name, []).append(_measure_one(data.column_model, exact, i, values, kind, rows, shap))
    return tuple(Faithfulness(name, *map(float, np.mean(each, axis=0))) for name, each in found.items()), notes


def _lime(data: PrivateData, exact: ExactAnswers, index: int, seed: int) -> Vector:
    return lime(data, exact.questions.points[index], samples=LIME_SAMPLES, seed=seed)


def _measure_one(
    model: Model, exact: ExactAnswers, i: int, values: Vector, kind: metrics.Kind, rows: Matrix, shap: Vector
) -> Vector:
    domain, point = exact.data.domain, exact.questions.points[i]
    added = exact.contributions_of(i, values) if kind == "slope" else per_feature(domain, values)
    return np.array(
        [
            cosine(added, per_feature(domain, shap)),
            metrics.deletion(values, model, domain, point, rows, kind=kind).area,
            metrics.insertion(values, model, domain, point, rows, kind=kind).area,
            metrics.pgi(values, model, domain, point, kind=kind),
            metrics.pgu(values, model, domain, point, kind=kind),
            metrics.infidelity(values, model, domain, point, kind=kind, baseline=rows),
        ]
    )
