"""What baselines need beyond private rows: the query as a point, the black box on encoded rows, and the rows' own means and spreads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, TypeAlias

import numpy as np

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.layout import Layout
from dpexplain.core.moments import RawMoments
from dpexplain.core.weights import Window
from dpexplain.data import PrivateData
from dpexplain.domain.interface import Block, DomainLike
from dpexplain.errors import DataError
from dpexplain.registration.declared_answers import AnswerDeclaration
from dpexplain.registration.labels import ask_model

Model: TypeAlias = Callable[[Matrix], Vector]
"""Encoded rows (m, n) → labels in [-1, 1]."""


def encoded_point(domain: DomainLike, query: Any) -> Vector:
    """A record of the domain, or a point that is encoded already."""
    encoded = isinstance(query, np.ndarray) and query.shape == (domain.width,)
    return query.astype(np.float64) if encoded else np.asarray(domain.encode_query(query), dtype=np.float64)


def column_model(data: PrivateData, model: Any = None, *, target: Any = 1) -> Model:
    """The black box as a function of encoded rows.

    `model` is anything `PrivateData` accepts, asked about encoded rows; None takes the model that the data were registered with, and
    asks it about the rows as the domain decodes them.
    """
    if model is not None:
        reading = AnswerDeclaration(target).resolve(model)
        return lambda rows: ask_model(model, rows, len(rows), reading, "encoded")
    if data.column_model is None:
        raise DataError("this needs the model. Pass model=, a function of encoded rows, or register the table with model=")
    return data.column_model


@dataclass(frozen=True, slots=True)
class ColumnSpread:
    """Mean and standard deviation of each encoded column over the private rows."""

    mean: Vector
    deviation: Vector


def column_scales(data: PrivateData) -> Vector | None:
    """The domain's scale of each column in distances; None where all are 1."""
    return Layout.of(data.domain.blocks).scale


def column_spread(data: PrivateData) -> ColumnSpread:
    """Mean and deviation of each encoded column: from the sums that every backend offers, with equal weights."""
    sums = data.private_rows.raw(RawMoments(np.zeros(data.domain.width), Window(2 * sqrt(data.domain.width) + 1)))
    mean = sums.S1 / sums.S0
    return ColumnSpread(mean, np.sqrt(np.maximum(np.diag(sums.S2) / sums.S0 - mean**2, 0.0)))


def feature_codes(encoded: Matrix, blocks: Sequence[Block]) -> Matrix:
    """One column a feature: numbers as they are, 0 or 1, and the place of the 1 in a one-hot block (its width where there is none)."""
    return np.column_stack([_code(encoded[:, block.start : block.stop], block) for block in blocks])


def from_codes(codes: Matrix, blocks: Sequence[Block]) -> Matrix:
    """Encoded rows again; numbers are clamped to [0, 1], where every record lies."""
    out = np.zeros((len(codes), blocks[-1].stop))
    for block, code in zip(blocks, codes.T, strict=True):
        if block.kind == "one-hot":
            known = np.flatnonzero(code < block.stop - block.start)
            out[known, block.start + code[known].astype(int)] = 1.0
        else:
            out[:, block.start] = np.clip(code, 0.0, 1.0)
    return out


def on_levels(rows: Matrix, domain: DomainLike) -> Matrix:
    """The same rows with ordered features moved to their nearest level: between two levels there is no record."""
    out = rows.copy()
    for block, levels in zip(domain.blocks, getattr(domain, "levels", None) or (), strict=False):
        if levels:
            out[:, block.start] = np.rint(out[:, block.start] * (levels - 1)) / (levels - 1)
    return out


def _code(columns: Matrix, block: Block) -> Vector:
    if block.kind != "one-hot":
        return columns[:, 0]
    return np.where(columns.max(axis=1) > 0.5, columns.argmax(axis=1), block.stop - block.start).astype(np.float64)


def labelled_rows(data: PrivateData) -> Matrix | None:
    """The encoded private rows, each followed by its label, (m, n + 1). None for sparse rows and for rows outside this process's memory. Offline only."""
    rows: Any = data.private_rows
    if not (hasattr(rows, "labelled_pieces") and hasattr(rows, "shapley")):
        return None  # sparse rows lack the second, rows in files the first
    return np.concatenate(list(rows.labelled_pieces()) or [np.empty((0, data.domain.width + 1))])
