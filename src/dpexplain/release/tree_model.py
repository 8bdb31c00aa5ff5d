"""Models that are sums of decision trees: their Shapley values are computed exactly from the trees instead of by asking the model.

Only where it is the same question: every input column of the trees depends on one feature of the record (so that mixing features is mixing columns), and
the trees give the model's own answers on mixtures of records, which is checked. Everything else is asked as a black box.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.uniforms import Uniforms
from dpexplain.estimation.tree_shapley import Trees, tree_values

Columns = dict[str, Any]
Labels = Callable[[Columns], Vector]

_KNOWN = {
    f"{kind}{what}"
    for kind in ("DecisionTree", "ExtraTree", "RandomForest", "ExtraTrees")
    for what in ("Classifier", "Regressor")
}
_PROBED, _MIXTURES = 64, 512
_AGREES = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class TreeModel:
    """Trees over the columns that `prepare` makes of records; `owner` says on which feature each column depends."""

    trees: Trees
    prepare: Callable[[Columns], NDArray[np.float32]]
    owner: NDArray[np.int64]

    def values(self, query: Columns, records: Columns) -> Matrix:
        """Exact Shapley values of the games between the query and each record, (records, d)."""
        return tree_values(self.trees, self.owner, self.prepare(query)[0], self.prepare(records))


def find_trees(model: Any, target: Any, table: Callable[[Columns], Any], ask: Labels, records: Columns) -> TreeModel | None:
    """The model's trees, scaled to the labels that `ask` gives; None where they are not known to be the same model."""
    steps = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
    *before, last = steps
    if type(last).__name__ not in _KNOWN or not type(last).__module__.startswith("sklearn."):
        return None

    def prepare(columns: Columns) -> NDArray[np.float32]:
        rows = table(columns)
        for step in before:
            rows = rows if step is None or isinstance(step, str) else step.transform(rows)
        return np.ascontiguousarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float32)

    try:
        return _check_trees(trees_of(last, target), prepare, ask, _some(records, _PROBED))
    except (
        Exception
    ):  # whatever a foreign model or its steps raise: it is asked as a black box instead, which reports what is wrong
        return None


def _check_trees(raw: Trees, prepare: Callable[[Columns], NDArray[np.float32]], ask: Labels, some: Columns) -> TreeModel | None:
    mixtures = _mixtures(some)
    rows, labels = prepare(mixtures), ask(mixtures)
    owner = _owners(prepare, some)
    if owner is None or not np.isfinite(rows).all():
        return None
    outputs = raw.predict(rows)
    spread = float(outputs.std())
    slope = float(np.cov(outputs, labels, bias=True)[0, 1]) / spread**2 if spread > 0 else 0.0
    if np.abs(labels - labels.mean() - slope * (outputs - outputs.mean())).max() > _AGREES:
        return None
    scaled = Trees(raw.left, raw.right, raw.column, raw.threshold, raw.value * slope, raw.roots)
    return TreeModel(scaled, prepare, owner)


def trees_of(model: Any, target: Any) -> Trees:
    """Probabilities of the target class, or values, as a sum over trees."""
    each = [one.tree_ for one in getattr(model, "estimators_", [model])]
    starts = np.cumsum([0] + [tree.node_count for tree in each])
    column = list(model.classes_).index(target) if hasattr(model, "classes_") else 0
    shifted = [
        [np.where(c < 0, -1, c + s) for c in (t.children_left, t.children_right)] for t, s in zip(each, starts, strict=False)
    ]
    values = [tree.value[:, 0, :] for tree in each]
    if hasattr(model, "classes_"):
        values = [value / value.sum(axis=1, keepdims=True) for value in values]
    return Trees(
        left=np.concatenate([left for left, _ in shifted]).astype(np.int64),
        right=np.concatenate([right for _, right in shifted]).astype(np.int64),
        column=np.concatenate([np.maximum(tree.feature, 0) for tree in each]).astype(np.int64),
        threshold=np.concatenate([tree.threshold for tree in each]).astype(np.float64),
        value=np.concatenate([value[:, column] for value in values]) / len(each),
        roots=starts[:-1].astype(np.int64),
    )


def _owners(prepare: Callable[[Columns], NDArray[np.float32]], some: Columns) -> NDArray[np.int64] | None:
    """The feature that each prepared column depends on, by changing one feature at a time; None where a column depends on several."""
    rows = prepare(some)
    owner = np.full(rows.shape[1], -1, dtype=np.int64)
    for j, name in enumerate(some):
        changed = (prepare(some | {name: np.roll(some[name], 1)}) != rows).any(axis=0)
        if (owner[changed] >= 0).any():
            return None
        owner[changed] = j
    last = (
        len(some) - 1
    )  # columns that never change belong to anyone; the last feature must own one, as the features are counted by it
    owner[owner < 0] = last
    return owner


def _some(records: Columns, count: int) -> Columns:
    return {name: column[:count] for name, column in records.items()}


def _mixtures(some: Columns) -> Columns:
    """Records whose features come from different ones."""
    count, stream = len(next(iter(some.values()))), Uniforms(1 << 40)
    return {name: column[(stream.take(_MIXTURES) * count).astype(np.intp)] for name, column in some.items()}
