"""LIME (Ribeiro et al. 2016) by the lime package, on the same point, in the domain's own terms (extra `[baselines]`).

Two forms, as in the package. Both ask the model about valid records only and return one number for each encoded column, in units of the
label (from -1 to 1) per unit of the column, so that they can be compared with our φ:

tabular     `LimeTabularExplainer`, numbers not cut into quartiles. LIME draws each feature by itself: numbers from a normal with the rows' mean
            and deviation, other features by their frequencies. A number's coefficient is divided by the deviation, which LIME scales
            by. A category's coefficient says what having the query's own value adds: it goes to that value's column, and the other columns of
            the feature get 0, which is the same linear function of records. For a yes/no column at 0 it is the slope that changes sign.
presence    `LimeTextExplainer`: parts of the query are taken away, i.e. set to `baseline`; words, or superpixels. Columns that are at the
            baseline already get 0. A coefficient is divided by how far the column moved.

Of the rows LIME gets their means, deviations and frequencies. It uses nothing else of them, so its answers are those it would give with all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from dpexplain.arguments import quote
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.data import PrivateData
from dpexplain.domain.interface import Block
from dpexplain.errors import ParameterError
from dpexplain.evaluation.baselines.extras import import_extra
from dpexplain.evaluation.baselines.inputs import (
    ColumnSpread,
    Model,
    column_model,
    column_spread,
    encoded_point,
    feature_codes,
    from_codes,
    on_levels,
)

Form = Literal["tabular", "presence"]
_STAND_INS = 10_000  # rows that have the private rows' means, deviations and frequencies (to 1e-4)


def lime(
    data: PrivateData,
    query: Any,
    *,
    model: Any = None,
    target: Any = 1,
    form: Form | None = None,
    samples: int = 5000,
    kernel_width: float | None = None,
    baseline: float = 0.0,
    seed: int = 0,
) -> Vector:
    """LIME's coefficients at `query`, one for each encoded column.

    `model` takes encoded rows; None asks the model that the data were registered with. `form` is "presence" for texts and "tabular" for
    everything else by default. `kernel_width` is the package's own by default: 0.75√features, or 25. `seed` leaves the global one alone.
    """
    ask, point = column_model(data, model, target=target), encoded_point(data.domain, query)
    chosen = form or ("presence" if hasattr(data.domain, "vocabulary") else "tabular")
    if chosen == "presence":
        return presence_lime(ask, point, np.full(len(point), baseline), samples, kernel_width or 25.0, seed)
    if chosen != "tabular":
        raise ParameterError(f"form must be 'tabular' or 'presence', got {quote(chosen)}")
    valid: Model = lambda rows: ask(on_levels(rows, data.domain))  # noqa: E731
    return tabular_lime(valid, point, data.domain.blocks, column_spread(data), samples, kernel_width, seed)


def tabular_lime(
    ask: Model, point: Vector, blocks: Sequence[Block], rows: ColumnSpread, samples: int, kernel_width: float | None, seed: int
) -> Vector:
    explainer = import_extra("lime.lime_tabular").LimeTabularExplainer(
        _stand_ins(rows, blocks),
        mode="regression",
        categorical_features=[i for i, block in enumerate(blocks) if block.kind != "numeric"],
        discretize_continuous=False,
        feature_selection="none",
        kernel_width=kernel_width,
        random_state=seed,
    )
    code = feature_codes(point[None], blocks)[0]
    answer = explainer.explain_instance(code, lambda codes: ask(from_codes(codes, blocks)), num_samples=samples)
    return _in_columns(dict(answer.local_exp[1]), point, blocks, rows)


def _stand_ins(rows: ColumnSpread, blocks: Sequence[Block]) -> Matrix:
    """Rows of feature codes whose means, deviations and frequencies are the given ones."""
    out = np.empty((_STAND_INS, len(blocks)))
    for i, block in enumerate(blocks):
        mean, deviation = rows.mean[block.start], rows.deviation[block.start]
        if block.kind == "numeric":
            out[:, i] = mean + deviation * np.resize([-1.0, 1.0], _STAND_INS)
        else:
            shares = rows.mean[block.start : block.stop] if block.kind == "one-hot" else np.array([1 - mean])
            edges = np.rint(np.cumsum(shares) * _STAND_INS)
            out[:, i] = np.searchsorted(edges, np.arange(_STAND_INS), side="right")
    return out


def _in_columns(coefficients: dict[int, float], point: Vector, blocks: Sequence[Block], rows: ColumnSpread) -> Vector:
    """One coefficient a feature → one slope a column."""
    out = np.zeros(len(point))
    for i, block in enumerate(blocks):
        c, own = coefficients[i], point[block.start : block.stop]
        if block.kind == "numeric":
            deviation = rows.deviation[block.start]
            out[block.start] = c / deviation if deviation > 0 else 0.0
        elif block.kind == "binary":
            out[block.start] = c if own[0] > 0.5 else -c
        else:
            out[block.start : block.stop] = c * own if own.any() else -c
    return out


def presence_lime(ask: Model, point: Vector, baseline: Vector, samples: int, kernel_width: float, seed: int) -> Vector:
    """The text explainer on a text whose words are the numbers of the columns that can be taken away."""
    present, out = np.flatnonzero(point != baseline), np.zeros(len(point))
    if len(present) == 0:
        return out

    def answers(texts: list[str]) -> Matrix:
        rows = np.tile(baseline, (len(texts), 1))
        for row, text in zip(rows, texts, strict=True):
            kept = [int(word) for word in text.split()]
            row[kept] = point[kept]
        return ask(rows)[:, None]

    text = " ".join(map(str, present))
    explainer = import_extra("lime.lime_text").LimeTextExplainer(
        kernel_width=kernel_width, feature_selection="none", random_state=seed, class_names=["label"]
    )
    answer = explainer.explain_instance(text, answers, labels=(0,), num_samples=samples)
    for place, coefficient in answer.local_exp[0]:
        column = present[place]
        out[column] = coefficient / (point[column] - baseline[column])
    return out
