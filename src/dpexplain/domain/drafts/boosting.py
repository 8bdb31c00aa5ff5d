"""Facts that LightGBM and XGBoost store about their input columns: names, categories of pandas, the range of numbers.

Neither library is imported: only attributes of the fitted model are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpexplain.domain.drafts.draft import Draft, DraftFeature, round_out


@dataclass(frozen=True, slots=True)
class BoosterColumn:
    """A column that a booster was fitted with. `categories` is None where it is not a category; `low` and `high` come from training data."""

    name: str
    categories: tuple[Any, ...] | None = None
    low: float | None = None
    high: float | None = None
    kind: str = "numeric"
    integer: bool = False


def booster_columns(model: Any) -> tuple[BoosterColumn, ...] | None:
    """The columns of a LightGBM or XGBoost model, of either interface; None for any other model, and for one that is not fitted."""
    library = next((base.__module__.split(".")[0] for base in type(model).__mro__ if base.__module__ != "builtins"), "")
    try:
        if library == "lightgbm":
            return _lightgbm(getattr(model, "booster_", model))
        if library == "xgboost":
            return _xgboost(model.get_booster() if hasattr(model, "get_booster") else model)
    except Exception:  # not fitted, or another version's attributes: then its columns are unknown
        return None
    return None


def draft_of_booster(columns: tuple[BoosterColumn, ...], source: str) -> Draft:
    """One draft feature for each column. Categories are the model's public vocabulary, ranges are suggestions only."""
    return Draft(tuple(_feature(one) for one in columns), source)


def _feature(one: BoosterColumn) -> DraftFeature:
    if one.categories is not None:
        return DraftFeature(one.name, "categorical", {"values": list(one.categories), "optional": True}, source="the model")
    suggested = {} if one.low is None or one.high is None else round_out(one.low, one.high)
    known = {"integer": True} if one.integer else {}
    return DraftFeature(one.name, one.kind, known, suggested, source="the range that the model stored")


def _lightgbm(booster: Any) -> tuple[BoosterColumn, ...]:
    """Names, ranges, and the categories of pandas columns in their order. An ordered column is stored like a number, so its categories
    cannot be distinguished from those of another column: then no categories are read.
    """
    described = booster.dump_model(num_iteration=1)
    ranges, stored = described["feature_infos"], list(described.get("pandas_categorical") or ())
    names = [str(name) for name in booster.feature_name()]
    categorical = [name for name in names if ranges.get(name, {}).get("values")]
    categories = dict(zip(categorical, stored, strict=True)) if len(categorical) == len(stored) else {}
    return tuple(
        BoosterColumn(name, tuple(categories[name]))
        if name in categories
        else BoosterColumn(name, None, ranges.get(name, {}).get("min_value"), ranges.get(name, {}).get("max_value"))
        for name in names
    )


def _xgboost(booster: Any) -> tuple[BoosterColumn, ...] | None:
    """Names and types, and from version 3.1 the categories."""
    if booster.feature_names is None:
        return None
    types = booster.feature_types or ["float"] * len(booster.feature_names)
    categories: dict[str, Any] = {}
    if "c" in types and hasattr(booster, "get_categories"):
        categories = dict(booster.get_categories(export_to_arrow=True).to_arrow())
    return tuple(
        BoosterColumn(str(name), tuple(categories[name].to_pylist()))
        if categories.get(name) is not None
        else BoosterColumn(str(name), kind="binary" if type_ == "i" else "numeric", integer=type_ == "int")
        for name, type_ in zip(booster.feature_names, types, strict=True)
    )
