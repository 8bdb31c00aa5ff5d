"""Decision trees of fitted models from scikit-learn, LightGBM and XGBoost, as lists of nodes. What cannot be read raises; it is then asked as a black box."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpexplain.core.arrays import Vector
from dpexplain.estimation.tree_shapley import Trees

_CHILDREN = ("left", "right")


@dataclass(frozen=True, slots=True, eq=False)
class ReadTrees:
    """Trees with how their sums become an answer: as they are, or by a logistic or softmax function of the sums plus `constants`."""

    trees: Trees
    linked: bool = False
    constants: Vector | None = None  # None: one constant, to be found from answers
    target: int = 0  # output of a softmax; 0 or 1 for the class of a logistic function
    single: bool = True  # whether rows are rounded to float32 before they are compared


@dataclass(frozen=True, slots=True, eq=False)
class _Tree:
    """One tree's nodes, children numbered within the tree."""

    left: Any
    right: Any
    column: Any
    threshold: Any
    value: Any
    missing_left: Any
    output: int = 0


def read_trees(model: Any, target: Any) -> ReadTrees | None:
    """The trees of a model of a known kind; None for any other."""
    library, kind = type(model).__module__.partition(".")[0], type(model).__name__
    for (known, start), read in _READERS.items():
        if library == known and kind.startswith(start) and kind.endswith(("Classifier", "Regressor")):
            return read(model, target)
    return None


def trees_of(model: Any, target: Any) -> Trees:
    """Probabilities of the target class, or values, of a scikit-learn tree or forest as a sum over trees."""
    return _read_forest(model, target).trees


def _read_forest(model: Any, target: Any) -> ReadTrees:
    each = [one.tree_ for one in getattr(model, "estimators_", [model])]
    column = _class_index(model, target)
    return ReadTrees(_join([_sklearn_tree(tree, _leaf_values(model, tree)[:, column] / len(each)) for tree in each]))


def _leaf_values(model: Any, tree: Any) -> Any:
    values = tree.value[:, 0, :]
    return values / values.sum(axis=1, keepdims=True) if hasattr(model, "classes_") else values


def _sklearn_tree(tree: Any, value: Any, output: int = 0) -> _Tree:
    missing = getattr(tree, "missing_go_to_left", np.zeros(tree.node_count))
    return _Tree(tree.children_left, tree.children_right, tree.feature, tree.threshold, value, missing, output)


def _read_gradient_boosting(model: Any, target: Any) -> ReadTrees:
    stages = model.estimators_
    trees = [
        _sklearn_tree(one.tree_, model.learning_rate * one.tree_.value[:, 0, 0], k)
        for stage in stages
        for k, one in enumerate(stage)
    ]
    if not hasattr(model, "classes_"):
        return ReadTrees(_join(trees))
    start = np.log(model.init_.class_prior_) if stages.shape[1] > 1 else None
    return ReadTrees(_join(trees), True, start, _class_index(model, target))


def _read_hist_gradient_boosting(model: Any, target: Any) -> ReadTrees | None:
    if getattr(model, "_preprocessor", None) is not None:
        return None
    trees = []
    for stage in model._predictors:
        for k, predictor in enumerate(stage):
            nodes = predictor.nodes
            if nodes["is_categorical"].any():
                return None
            left, right = (np.where(nodes["is_leaf"], -1, nodes[side].astype(np.int64)) for side in _CHILDREN)
            missing = nodes["missing_go_to_left"]
            trees.append(_Tree(left, right, nodes["feature_idx"], nodes["num_threshold"], nodes["value"], missing, k))
    if not hasattr(model, "classes_"):
        return ReadTrees(_join(trees), single=False)
    start = np.asarray(model._baseline_prediction, dtype=np.float64).reshape(-1) if len(model._predictors[0]) > 1 else None
    return ReadTrees(_join(trees), True, start, _class_index(model, target), single=False)


def _read_lightgbm(model: Any, target: Any) -> ReadTrees:
    dumped = model.booster_.dump_model()
    outputs = dumped["num_tree_per_iteration"]
    trees = [_lightgbm_tree(one["tree_structure"], i % outputs) for i, one in enumerate(dumped["tree_info"])]
    start = np.zeros(outputs) if outputs > 1 else None
    return ReadTrees(_join(trees), hasattr(model, "classes_"), start, _class_index(model, target), single=False)


def _lightgbm_tree(root: dict[str, Any], output: int) -> _Tree:
    rows: list[tuple[int, int, int, float, float, bool]] = []

    def add(node: dict[str, Any]) -> int:
        position = len(rows)
        rows.append((-1, -1, 0, 0.0, float(node.get("leaf_value", 0.0)), False))
        if "split_feature" in node:
            if node["decision_type"] != "<=" or node["missing_type"] == "Zero":
                raise ValueError("categories, or zeros as missing numbers")
            threshold = float(node["threshold"])
            missing = bool(node["default_left"]) if node["missing_type"] == "NaN" else threshold >= 0
            left, right = add(node["left_child"]), add(node["right_child"])
            rows[position] = (left, right, int(node["split_feature"]), threshold, 0.0, missing)
        return position

    add(root)
    left, right, column, threshold, value, missing = (np.array(each) for each in zip(*rows, strict=True))
    return _Tree(left, right, column, threshold, value, missing, output)


def _read_xgboost(model: Any, target: Any) -> ReadTrees:
    learner = json.loads(bytes(model.get_booster().save_raw(raw_format="json")))["learner"]
    stored = learner["gradient_booster"]["model"]
    trees = [_xgboost_tree(one, output) for one, output in zip(stored["trees"], stored["tree_info"], strict=True)]
    outputs = max(stored["tree_info"], default=0) + 1
    start = np.resize(_numbers(learner["learner_model_param"]["base_score"]), outputs) if outputs > 1 else None
    return ReadTrees(_join(trees), hasattr(model, "classes_"), start, _class_index(model, target))


def _xgboost_tree(tree: dict[str, Any], output: int) -> _Tree:
    """Rows go left where they are less than the condition, in float32: at most the number before it."""
    if any(tree["split_type"]):
        raise ValueError("categories")
    conditions = np.array(tree["split_conditions"], dtype=np.float32)
    left = np.array(tree["left_children"])
    before = np.nextafter(conditions, np.float32(-np.inf)).astype(np.float64)
    value = np.where(left < 0, conditions.astype(np.float64), 0.0)
    return _Tree(left, tree["right_children"], tree["split_indices"], before, value, tree["default_left"], output)


def _numbers(text: Any) -> Any:
    found = json.loads(text.replace("E", "e")) if isinstance(text, str) else text
    return np.atleast_1d(np.asarray(found, dtype=np.float64))


def _class_index(model: Any, target: Any) -> int:
    return list(model.classes_).index(target) if hasattr(model, "classes_") else 0


def _join(trees: Sequence[_Tree]) -> Trees:
    starts = np.cumsum([0] + [len(tree.value) for tree in trees])
    pairs = list(zip(trees, starts, strict=False))

    def children(side: str) -> Any:
        each = [(np.asarray(getattr(tree, side), dtype=np.int64), start) for tree, start in pairs]
        return np.concatenate([np.where(nodes < 0, -1, nodes + start) for nodes, start in each])

    def join_field(name: str, kind: Any) -> Any:
        return np.concatenate([np.asarray(getattr(tree, name)).astype(kind) for tree in trees])

    return Trees(
        left=children("left"),
        right=children("right"),
        column=np.maximum(join_field("column", np.int64), 0),
        threshold=join_field("threshold", np.float64),
        value=join_field("value", np.float64),
        roots=starts[:-1].astype(np.int64),
        missing_left=join_field("missing_left", np.bool_),
        output=np.array([tree.output for tree in trees], dtype=np.int64),
    )


_READERS: dict[tuple[str, str], Callable[[Any, Any], ReadTrees | None]] = {
    ("sklearn", "DecisionTree"): _read_forest,
    ("sklearn", "ExtraTree"): _read_forest,
    ("sklearn", "RandomForest"): _read_forest,
    ("sklearn", "GradientBoosting"): _read_gradient_boosting,
    ("sklearn", "HistGradientBoosting"): _read_hist_gradient_boosting,
    ("lightgbm", "LGBM"): _read_lightgbm,
    ("xgboost", "XGB"): _read_xgboost,
}
