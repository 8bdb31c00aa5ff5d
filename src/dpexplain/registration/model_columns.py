"""The columns that a model was fitted with: a table with others besides is shown to it without them, in the model's own order.

LightGBM and XGBoost that were fitted on pandas categories take these columns as categories only, with the same values. Which columns are shown,
and as what, follows from the model and from the table's column names: no row decides about another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpexplain.domain.drafts.boosting import booster_columns

Prepare = Callable[[Any], Any]


def column_selection(model: Any) -> Prepare | None:
    """A function that selects the columns that the model was fitted with; None where the model does not list them."""
    if not hasattr(model, "predict"):
        return None
    boosted = booster_columns(model)
    found = getattr(model, "feature_names_in_", None)
    names = [one.name for one in boosted] if boosted else None if found is None else [str(name) for name in found]
    if not names:
        return None
    categories = {one.name: list(one.categories) for one in boosted or () if one.categories is not None}
    return lambda rows: _order_as_fitted(rows, names, categories)


def _order_as_fitted(rows: Any, names: list[str], categories: dict[str, list[Any]]) -> Any:
    """The table itself where it lacks a column of the model, or is not a data frame: then the model raises its own error."""
    import narwhals as nw

    frame = nw.from_native(rows, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame) or not set(names) <= set(frame.columns):
        return rows
    chosen = frame if frame.columns == names else frame.select(names)
    if not categories:
        return chosen.to_native()
    import pandas as pd  # the model was fitted on its categories

    table = chosen.to_pandas()
    return table.assign(**{name: pd.Categorical(table[name].to_numpy(object), values) for name, values in categories.items()})
