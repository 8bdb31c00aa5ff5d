"""Models made of decision trees: their Shapley values are computed from the trees instead of by asking the model.

Only where both agree: every input column of the trees depends on one feature of the record (so that mixing features is mixing columns), and
the trees give the model's own answers on mixtures of records, which is checked. Everything else is asked as a black box.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.uniforms import Uniforms
from dpexplain.estimation.boosted_shapley import MOST_PLAYERS, boosted_values, link_labels, used_features
from dpexplain.estimation.coalitions import record_values
from dpexplain.estimation.tree_shapley import Trees, tree_values
from dpexplain.release.tree_readers import ReadTrees, read_trees

Columns = dict[str, Any]
Labels = Callable[[Columns], Vector]

_MIXTURES = 512
_AGREES = 1e-6
_WORK = 1 << 28  # additions for one answer, about
_FEWEST = 512  # background records


@dataclass(frozen=True, slots=True, eq=False)
class TreeModel:
    """Trees over the columns that `prepare` computes from records; `owner[j]` is the feature on which column j depends.

    Labels are the trees' sum plus a constant, or where `linked` a logistic or softmax function of sums plus constants.
    """

    trees: Trees
    prepare: Callable[[Columns], Matrix]
    owner: NDArray[np.int64]
    constants: Vector
    linked: bool = False
    target: int = 0
    background: Matrix | None = None  # prepared background records

    @property
    def method(self) -> str:
        return "trees, exact" if self._is_exact else "trees, paired orders"

    @property
    def most_records(self) -> int:
        """Background records that are compared with in about a second; sums of trees take any number."""
        if not self.linked or not self._is_exact:
            return 1 << 20
        return max(_WORK // (len(self.trees.roots) << len(used_features(self.trees, self.owner))), _FEWEST)

    @property
    def _is_exact(self) -> bool:
        return not self.linked or len(used_features(self.trees, self.owner)) <= MOST_PLAYERS

    def labels(self, rows: Matrix) -> Vector:
        """The model's labels of prepared rows, from the trees."""
        margins = self.trees.margins(rows) + self.constants
        return link_labels(margins, self.target) if self.linked else margins[:, 0]

    def answers_like(self, columns: Columns, labels: Vector) -> bool:
        """Whether the trees give these labels."""
        return bool(np.abs(self.labels(self.prepare(columns)) - labels).max(initial=0.0) <= _AGREES)

    def compared_with(self, records: Columns, labels: Vector) -> TreeModel | None:
        """The same with these background records, prepared once; None unless the trees give their labels."""
        rows = self.prepare(records)
        agrees = bool(np.abs(self.labels(rows) - labels).max(initial=0.0) <= _AGREES)
        return replace(self, background=rows) if agrees else None

    def applies_to(self, query: Columns, records: Columns, label: float) -> bool:
        """Whether the trees give the query's label, and each of its features changes no column but its own.

        A value that was not seen when owners of columns were looked for may change columns that nothing changed then.
        """
        first = {name: np.repeat(column[:1], len(records) + 1) for name, column in records.items()}
        for j, name in enumerate(records):
            first[name] = np.concatenate([first[name][: j + 1], query[name][:1], first[name][j + 2 :]])
        rows = self.prepare(first)
        changed = (rows[1:] != rows[0]) & ~(np.isnan(rows[1:]) & np.isnan(rows[0]))
        own = self.owner == np.arange(len(records))[:, None]
        return not bool((changed & ~own).any()) and self.answers_like(query, np.array([label]))

    def values(self, query: Columns, records: Columns) -> Matrix:
        """Shapley values of the games between the query and each record, (records, d)."""
        point, rows = self.prepare(query)[0], self.prepare(records) if self.background is None else self.background
        if not self.linked:
            return tree_values(self.trees, self.owner, point, rows, len(records))
        if self._is_exact:
            return boosted_values(self.trees, self.constants, self.target, self.owner, point, rows, len(records))

        def label_mixtures(positions: NDArray[np.intp], joined: NDArray[np.bool_]) -> Vector:
            return self.labels(np.where(joined[:, self.owner], point, rows[positions]))

        return record_values(label_mixtures, self.labels(rows), float(self.labels(point[None])[0]), len(records))


def find_trees(model: Any, target: Any, table: Callable[[Columns], Any], ask: Labels, records: Columns) -> TreeModel | None:
    """The model's trees, scaled to the labels that `ask` gives; None where they are not known to be the same model."""
    steps = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
    *before, last = steps
    try:
        found = read_trees(last, target)
        if found is None:
            return None
        dtype = np.float32 if found.single else np.float64

        def prepare(columns: Columns) -> Matrix:
            rows = table(columns)
            for step in before:
                rows = rows if step is None or isinstance(step, str) else step.transform(rows)
            numbers = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=dtype)
            return np.ascontiguousarray(numbers, dtype=np.float64)

        return _check_trees(found, prepare, ask, records)
    except Exception:
        # a foreign model or its steps may raise anything: it is asked as a black box instead, which reports the error
        return None


def _check_trees(found: ReadTrees, prepare: Callable[[Columns], Matrix], ask: Labels, some: Columns) -> TreeModel | None:
    mixtures = _mixtures(some)
    rows, labels = prepare(mixtures), ask(mixtures)
    owner = _owners(prepare, some)
    if owner is None:
        return None
    margins = found.trees.margins(rows)
    made = (_fit_link if found.linked else _fit_scale)(found, prepare, owner, margins, labels)
    return made if np.abs(made.labels(rows) - labels).max() <= _AGREES else None


def _fit_scale(
    found: ReadTrees, prepare: Callable[[Columns], Matrix], owner: NDArray[np.int64], margins: Matrix, labels: Vector
) -> TreeModel:
    """Labels as a multiple of the trees' sum plus a constant."""
    outputs = margins[:, 0]
    spread = float(outputs.std())
    slope = float(np.cov(outputs, labels, bias=True)[0, 1]) / spread**2 if spread > 0 else 0.0
    trees = replace(found.trees, value=found.trees.value * slope)
    return TreeModel(trees, prepare, owner, np.array([labels.mean() - slope * outputs.mean()]))


def _fit_link(
    found: ReadTrees, prepare: Callable[[Columns], Matrix], owner: NDArray[np.int64], margins: Matrix, labels: Vector
) -> TreeModel:
    """Labels as 2p - 1; with one output the constant follows from the least certain of the answers."""
    if found.constants is not None:
        return TreeModel(found.trees, prepare, owner, found.constants, True, found.target)
    sign = 1.0 if found.target == 1 else -1.0  # with two classes, the trees predict the second
    trees, at = replace(found.trees, value=found.trees.value * sign), int(np.abs(labels).argmin())
    constant = 2 * float(np.arctanh(labels[at])) - sign * float(margins[at, 0])
    return TreeModel(trees, prepare, owner, np.array([constant]), True)


def _owners(prepare: Callable[[Columns], Matrix], some: Columns) -> NDArray[np.int64] | None:
    """The feature that each prepared column depends on, by changing one feature at a time; None where a column depends on several."""
    rows = prepare(some)
    owner = np.full(rows.shape[1], -1, dtype=np.int64)
    for j, name in enumerate(some):
        moved = prepare(some | {name: np.roll(some[name], 1)})
        changed = ((moved != rows) & ~(np.isnan(moved) & np.isnan(rows))).any(axis=0)
        if (owner[changed] >= 0).any():
            return None
        owner[changed] = j
    owner[owner < 0] = len(some) - 1  # columns that never change may be assigned to any feature
    return owner


def _mixtures(some: Columns) -> Columns:
    """Records whose features come from different ones."""
    count, stream = len(next(iter(some.values()))), Uniforms(1 << 40)
    return {name: column[(stream.take(_MIXTURES) * count).astype(np.intp)] for name, column in some.items()}
