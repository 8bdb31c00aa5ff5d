"""Interventional SHAP values (Lundberg & Lee 2017) with private rows as background.

The Shapley value of feature j is its fair share of f(z) - mean f(x): the mean, over background rows x and orders of the features, of how much the
label changes when z's value of j takes the place of x's. Players are *features*: a one-hot block moves as a whole, because no record has half a
category. "permutation" is the same estimator as shap's PermutationExplainer, walks in both directions, and needs no package. "kernel" and "tree" are the
shap package's (extra `[baselines]`); "tree" is exact and quick, but its players are encoded columns, summed over each feature afterwards.

A SHAP value is a contribution to this answer, not a slope. It goes to the feature's column, for a category to the query's own, and the other
columns get 0: summed over all columns it is f(z) - mean f(x). `evaluation.baselines` turns slopes into contributions to compare them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from dpexplain.arguments import quote
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.baseline_shapley import Orders, baseline_shapley, orders_from
from dpexplain.core.uniforms import Uniforms
from dpexplain.data import PrivateData
from dpexplain.domain.interface import Block, DomainLike
from dpexplain.errors import DataError, ParameterError
from dpexplain.evaluation.baselines.extras import import_extra
from dpexplain.evaluation.baselines.inputs import Model, column_model, encoded_point, feature_codes, from_codes
from dpexplain.mechanisms.ports import DivisibleRows
from dpexplain.noise.global_seed import temporary_global_seed
from dpexplain.noise.seeded import SeededNoise

Method = Literal["permutation", "kernel", "tree"]


def shap_values(
    data: PrivateData,
    query: Any,
    *,
    model: Any = None,
    target: Any = 1,
    method: Method = "permutation",
    background: Any = 100,
    permutations: int = 10,
    seed: int = 0,
) -> Vector:
    """SHAP values of the label (from -1 to 1) at `query`, one for each encoded column; features as players.

    `background` is how many private rows to draw, or encoded rows of your own, such as `release.reference.encoded`. `model` takes encoded
    rows; None asks the model that the data were registered with; for "tree" it must be a tree model that shap knows, with probabilities.
    `seed` decides rows and orders, and leaves the global one alone.
    """
    point, blocks = encoded_point(data.domain, query), data.domain.blocks
    rows = draw_rows(data, background, seed) if isinstance(background, int) else np.asarray(background, dtype=np.float64)
    if method == "tree":
        return tree_shap(model, point, rows, blocks, target)
    if method not in _BY_FEATURE:
        raise ParameterError(f"method must be 'permutation', 'kernel' or 'tree', got {quote(method)}")
    ask = column_model(data, model, target=target)
    return on_own_columns(_BY_FEATURE[method](ask, point, rows, blocks, permutations, seed), point, blocks)


def _permutation(ask: Model, point: Vector, rows: Matrix, blocks: Sequence[Block], permutations: int, seed: int) -> Vector:
    owner, noise = owners(blocks), SeededNoise(seed)
    orders = (orders_from(noise.uniform(len(rows) * len(blocks)).reshape(len(rows), -1)) for _ in range(permutations))
    each = [baseline_shapley(ask, point, rows, owner, order).mean(axis=0) for order in orders]
    return np.asarray(np.mean(each, axis=0))


def _kernel(ask: Model, point: Vector, rows: Matrix, blocks: Sequence[Block], permutations: int, seed: int) -> Vector:
    shap, codes = import_extra("shap"), feature_codes(rows, blocks)
    explainer = shap.KernelExplainer(lambda asked: ask(from_codes(asked, blocks)), codes)
    calls = permutations * (2 * len(blocks) + 1)
    with temporary_global_seed(seed):
        return np.asarray(explainer.shap_values(feature_codes(point[None], blocks), nsamples=calls, silent=True)[0])


_BY_FEATURE = {"permutation": _permutation, "kernel": _kernel}


def tree_shap(model: Any, point: Vector, rows: Matrix, blocks: Sequence[Block], target: Any) -> Vector:
    """Exact interventional TreeSHAP of 2p - 1, columns as players, summed over each feature's columns."""
    if not hasattr(model, "predict_proba"):
        raise DataError("method='tree' needs model=, a tree classifier on encoded columns. Pass it, or use method='permutation'")
    explainer = import_extra("shap").TreeExplainer(model, rows, model_output="probability", feature_perturbation="interventional")
    values = np.asarray(explainer.shap_values(point[None], check_additivity=False))[0, :, list(model.classes_).index(target)]
    return on_own_columns(2 * np.add.reduceat(values, [block.start for block in blocks]), point, blocks)


def row_shapley(model: Any, domain: DomainLike, query: Any, rows: Matrix, first: int = 1) -> Matrix:
    """Shapley values of the game between `query` and each background row, (rows, features): SHAP values are their mean over the rows.

    `model` takes encoded rows. A scikit-learn forest or tree is computed exactly, labels being 2p - 1 for the last of its classes, or its values.
    For anything else each row's values are averaged over one order of the features and its reverse; the orders come from a public sequence
    of numbers that starts at number `first`.
    """
    point, owner, features = encoded_point(domain, query), owners(domain.blocks), len(domain.blocks)
    if hasattr(model, "estimators_") or hasattr(model, "tree_"):
        from dpexplain.estimation.tree_shapley import tree_values
        from dpexplain.release.tree_readers import trees_of

        trees = trees_of(model, getattr(model, "classes_", [None])[-1])
        found = tree_values(trees, owner, point.astype(np.float32), rows.astype(np.float32))
        return found * (2 if hasattr(model, "classes_") else 1)
    orders = orders_from(Uniforms(first).take(len(rows) * features).reshape(-1, features))
    return baseline_shapley(model, point, rows, owner, orders)


def owners(blocks: Sequence[Block]) -> Orders:
    """The feature that each encoded column belongs to."""
    return np.repeat(np.arange(len(blocks)), [block.stop - block.start for block in blocks])


def on_own_columns(values: Vector, point: Vector, blocks: Sequence[Block]) -> Vector:
    """One number a feature → one a column: at the query's own category, or shared by all where it has none."""
    out = np.zeros(len(point))
    for value, block in zip(values, blocks, strict=True):
        own = point[block.start : block.stop] if block.kind == "one-hot" else np.ones(1)
        out[block.start : block.stop] = value * own if own.any() else value / (block.stop - block.start)
    return out


def draw_rows(data: PrivateData, count: int, seed: int) -> Matrix:
    """`count` different private rows, encoded. Offline only: these are the rows themselves."""
    rows = data.private_rows
    if not isinstance(rows, DivisibleRows):
        raise DataError("single rows cannot be drawn from these data. Pass background= as encoded rows")
    order = np.argsort(SeededNoise(seed).uniform(len(rows)), kind="stable")
    return np.concatenate(list(rows.select(np.sort(order[:count])).row_major()))
