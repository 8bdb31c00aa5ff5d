"""The input columns of a fitted scikit-learn estimator: names, categories of encoders, facts of scalers, imputers and trees.

Only attributes of the fitted object are read, by name: scikit-learn itself is not imported. Everything found was learnt from the model's
training data; categories are taken as the model's public vocabulary, numbers are suggestions only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dpexplain.domain.drafts.boosting import booster_columns, draft_of_booster
from dpexplain.domain.drafts.draft import Draft, DraftFeature, round_out
from dpexplain.domain.values import is_missing
from dpexplain.errors import DomainError

SPREAD = 4.0  # standard deviations around the mean of a scaler that bounds are suggested at
Facts = dict[str, dict[str, Any]]  # column → what was found
Columns = Sequence[str] | None  # which raw column each column of a step's input is; None once they no longer correspond


def draft_of_estimator(model: Any) -> Draft:
    """One draft feature for each column the estimator was fitted with."""
    model = unwrap(model)
    source = f"the model ({type(model).__name__})"
    if boosted := booster_columns(model):
        return draft_of_booster(boosted, source)
    names = _input_names(model)
    facts: Facts = {name: {} for name in names}
    _walk(model, names, facts)
    # a column that the model drops is not a feature
    taken = [name for name in names if "used" in facts[name] or "dropped" not in facts[name]]
    return Draft(tuple(_feature(name, facts[name]) for name in taken), source)


def unwrap(model: Any) -> Any:
    """The estimator inside a search or a calibration."""
    for attribute in ("best_estimator_", "estimator_"):
        if hasattr(model, attribute) and not hasattr(model, "estimators_"):  # of an ensemble it is only the unfitted pattern
            return unwrap(getattr(model, attribute))
    calibrated = getattr(model, "calibrated_classifiers_", None)
    return unwrap(calibrated[0].estimator) if calibrated else model


def _input_names(model: Any) -> list[str]:
    found = getattr(model, "feature_names_in_", None)
    if found is None and hasattr(model, "steps"):
        found = next((names for _, step in model.steps if (names := getattr(step, "feature_names_in_", None)) is not None), None)
    if found is not None:
        return [str(name) for name in found]
    if (width := getattr(model, "n_features_in_", None)) is not None:
        return [f"x{i}" for i in range(int(width))]
    raise DomainError(
        f"{type(model).__name__} does not say which columns it was fitted with. Fit it on a data frame, or declare the domain yourself"
    )


def _walk(step: Any, columns: Columns, facts: Facts) -> Columns:
    """Note the facts that a step holds about its input columns; returns which raw column each of its output columns is."""
    if columns is None or step is None or isinstance(step, str):  # "passthrough"
        return columns
    if hasattr(step, "steps"):
        for _, inner in step.steps:
            columns = _walk(inner, columns, facts)
        return columns
    if hasattr(step, "transformers_"):
        return _walk_columns(step, columns, facts)
    if hasattr(step, "transformer_list"):
        for _, inner in step.transformer_list:
            _walk(inner, columns, facts)
        return None
    if getattr(step, "func", step) is None:  # a FunctionTransformer that changes nothing
        return columns
    if (inside := getattr(step, "_preprocessor", None)) is not None:  # gradient boosting that encodes categories itself
        _walk(inside, columns, facts)
        columns = [name for _, _, chosen in inside.transformers_ for name in _chosen_names(chosen, columns, None)]
    reader = next((read for attribute, read in READERS if hasattr(step, attribute)), None)
    return None if reader is None else reader(step, columns, facts)


def _walk_columns(step: Any, columns: Sequence[str], facts: Facts) -> Columns:
    """A ColumnTransformer: each branch with its own columns. Outputs correspond only where every branch keeps its columns."""
    kept: list[str] | None = []
    for _, inner, chosen in step.transformers_:
        names = _chosen_names(chosen, columns, getattr(step, "feature_names_in_", None))
        for name in names:
            facts[name].setdefault("dropped" if isinstance(inner, str) and inner == "drop" else "used", True)
        out = [] if isinstance(inner, str) and inner == "drop" else _walk(inner, names, facts)
        kept = None if kept is None or out is None else [*kept, *out]
    return kept


def _chosen_names(chosen: Any, columns: Sequence[str], fitted: Any) -> list[str]:
    """The names behind a list of names or positions, a mask or a slice."""
    if isinstance(chosen, str):
        return [chosen]
    if isinstance(chosen, slice):
        if isinstance(chosen.start, str) or isinstance(chosen.stop, str):
            names = [str(name) for name in fitted]
            first = 0 if chosen.start is None else names.index(chosen.start)
            last = len(names) - 1 if chosen.stop is None else names.index(chosen.stop)
            return names[first : last + 1]
        return list(columns[chosen])
    if np.isscalar(chosen):
        return [columns[int(np.asarray(chosen))]]
    entries = list(chosen)
    if entries and all(isinstance(entry, (bool, np.bool_)) for entry in entries):
        return [name for name, taken in zip(columns, entries, strict=True) if taken]
    return [entry if isinstance(entry, str) else columns[int(entry)] for entry in entries]


def _encoder(step: Any, columns: Sequence[str], facts: Facts) -> Columns:
    """One-hot and target encoders make other columns; an ordinal one makes one of each."""
    for name, values in zip(columns, step.categories_, strict=False):
        facts[name].setdefault("categories", [one for one in np.asarray(values, dtype=object).tolist() if not is_missing(one)])
        if getattr(step, "handle_unknown", "error") != "error" or any(map(is_missing, np.asarray(values, dtype=object).tolist())):
            facts[name]["optional"] = True  # the model handles missing values itself
    return None if hasattr(step, "drop_idx_") or hasattr(step, "encodings_") else columns


def _imputer(step: Any, columns: Sequence[str], facts: Facts) -> Columns:
    for name, value in zip(columns, step.statistics_, strict=False):
        if not is_missing(value):
            facts[name].setdefault("missing", value.item() if isinstance(value, np.generic) else value)
            facts[name].setdefault("constant", getattr(step, "strategy", "") == "constant")
    return None if getattr(step, "add_indicator", False) else columns


def _bounds(read: Callable[[Any], tuple[Any, Any]]) -> Callable[[Any, Sequence[str], Facts], Columns]:
    def note(step: Any, columns: Sequence[str], facts: Facts) -> Columns:
        lows, highs = read(step)
        for name, low, high in zip(columns, lows, highs, strict=False):
            facts[name].setdefault("bounds", round_out(float(low), float(high)))
            facts[name].setdefault("source", f"the model's {type(step).__name__}")
            facts[name]["scaled"] = True
        return columns

    return note


def _standard(step: Any) -> tuple[Any, Any]:
    mean = np.zeros(step.n_features_in_) if step.mean_ is None else step.mean_
    scale = np.ones(step.n_features_in_) if step.scale_ is None else step.scale_
    return mean - SPREAD * scale, mean + SPREAD * scale


def _robust(step: Any) -> tuple[Any, Any]:
    center = np.zeros(step.n_features_in_) if step.center_ is None else step.center_
    scale = np.ones(step.n_features_in_) if step.scale_ is None else step.scale_
    return center - SPREAD * scale, center + SPREAD * scale


def _edges(step: Any) -> tuple[Any, Any]:
    return [edges[0] for edges in step.bin_edges_], [edges[-1] for edges in step.bin_edges_]


def _trees(step: Any, columns: Sequence[str], facts: Facts) -> None:
    """Beyond the outermost thresholds of its trees the answer does not change: bounds a tenth of their distance wider."""
    cuts: dict[int, list[float]] = {}
    for features, thresholds in _splits(step):
        for feature, threshold in zip(features, thresholds, strict=True):
            cuts.setdefault(int(feature), []).append(float(threshold))
    for place, found in cuts.items():
        name = columns[place]
        if not facts[name].get("scaled") and min(found) < max(found):
            room = (max(found) - min(found)) / 10
            # no negative bound where no threshold is negative
            low = min(found) - room if min(found) < 0 else max(min(found) - room, 0.0)
            facts[name].setdefault("bounds", round_out(low, max(found) + room))
            facts[name].setdefault("source", "the thresholds of the model's trees")


def _splits(step: Any) -> Iterator[tuple[Any, Any]]:
    if hasattr(step, "_predictors"):  # histogram gradient boosting
        for stage in step._predictors:
            for predictor in stage:
                nodes = predictor.nodes
                inner = nodes[(nodes["is_leaf"] == 0) & (nodes["is_categorical"] == 0)]
                yield inner["feature_idx"], inner["num_threshold"]
        return
    trees = [step] if hasattr(step, "tree_") else np.asarray(step.estimators_, dtype=object).ravel().tolist()
    for tree in trees:
        if hasattr(tree, "tree_"):
            inner = tree.tree_.feature >= 0
            yield tree.tree_.feature[inner], tree.tree_.threshold[inner]


READERS: tuple[tuple[str, Callable[[Any, Sequence[str], Facts], Columns]], ...] = (
    ("categories_", _encoder),
    ("statistics_", _imputer),
    ("data_min_", _bounds(lambda step: (step.data_min_, step.data_max_))),
    ("mean_", _bounds(_standard)),
    ("center_", _bounds(_robust)),
    ("max_abs_", _bounds(lambda step: (-step.max_abs_, step.max_abs_))),
    ("bin_edges_", _bounds(_edges)),
    ("quantiles_", _bounds(lambda step: (step.quantiles_[0], step.quantiles_[-1]))),
    ("_predictors", _trees),
    ("tree_", _trees),
    ("estimators_", _trees),
)


def _feature(name: str, found: dict[str, Any]) -> DraftFeature:
    if "categories" in found:
        return _categorical(name, found)
    suggested = dict(found.get("bounds", {}))
    missing = found.get("missing")
    if isinstance(missing, (int, float)) and not isinstance(missing, bool):
        inside = not suggested or suggested["low"] <= missing <= suggested["high"]
        suggested |= {"missing": float(missing)} if inside else {}
    return DraftFeature(name, "numeric", suggested=suggested, source=found.get("source", "the model's imputer"))


def _categorical(name: str, found: dict[str, Any]) -> DraftFeature:
    values = found["categories"]
    if set(values) == {True, False} or (len(values) == 2 and all(isinstance(value, bool) for value in values)):
        return DraftFeature(name, "binary", source="the model's encoder")
    known: dict[str, Any] = {"values": values}
    if found.get("missing") in values:
        known["missing"] = found["missing"]
    elif found.get("optional"):
        known["optional"] = True
    return DraftFeature(name, "categorical", known, source="the model's encoder")
