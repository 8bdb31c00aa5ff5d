"""The public structure of encoded columns: which columns belong to one attribute, and which values they can take.

An attribute is a *number* in [0, 1] or a *code*: k columns in {0, 1} of which at most one is 1. A binary column is a code with k = 1. A
code's row may be all zeros (an unknown value, or a binary 0), so its columns need not sum to one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from math import sqrt
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpexplain.core.arrays import Matrix, Vector

Indices = NDArray[np.int64]
_FEW = 64  # columns up to which sums over attributes are quicker as products


class BlockLike(Protocol):
    """Columns start … stop-1 of one attribute (`domain.Block` is one)."""

    @property
    def start(self) -> int: ...

    @property
    def stop(self) -> int: ...

    @property
    def kind(self) -> str: ...

    @property
    def scale(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Layout:
    """A partition of the encoded columns into attributes."""

    starts: tuple[int, ...]
    stops: tuple[int, ...]
    is_number: tuple[bool, ...]
    scales: tuple[float, ...] = ()  # of each attribute, in distances; () where all are 1
    owner: Indices = field(init=False, compare=False)  # the attribute of each column
    first: Indices = field(init=False, compare=False)  # `starts` as an array
    sizes: Indices = field(init=False, compare=False)  # columns of each attribute
    numbers: Indices = field(init=False, compare=False)  # columns that are numbers
    code_columns: Indices = field(init=False, compare=False)  # the others
    members: Matrix | None = field(init=False, compare=False)  # (columns, attributes), where columns are few
    width: int = field(init=False, compare=False)
    attributes: int = field(init=False, compare=False)
    codes: tuple[int, ...] = field(init=False, compare=False)  # attributes that are codes
    # codes of several columns, one of which is 1 unless the value is missing
    choices: list[int] = field(init=False, compare=False)
    scale: Vector | None = field(init=False, compare=False)  # of each column; None where all are 1
    # the squares of the scales: ‖x - z‖² in distances is Σ metric·(x - z)²
    metric: Vector | float = field(init=False, compare=False)
    centre: Vector = field(init=False, compare=False)  # a public centre: 1/2 for a number, 1/max(k, 2) for each column of a code

    codes_apart: float = field(init=False, compare=False)  # how far apart the codes of two records can be

    def __post_init__(self) -> None:
        sizes = np.array(self.stops) - np.array(self.starts)
        owner = np.repeat(np.arange(len(sizes)), sizes)
        object.__setattr__(self, "owner", owner)
        object.__setattr__(self, "sizes", sizes)
        object.__setattr__(self, "width", self.stops[-1])
        object.__setattr__(self, "attributes", len(self.starts))
        object.__setattr__(self, "codes", tuple(a for a, number in enumerate(self.is_number) if not number))
        object.__setattr__(self, "choices", [a for a in self.codes if sizes[a] > 1])
        object.__setattr__(self, "first", np.array(self.starts))
        object.__setattr__(self, "numbers", np.flatnonzero(np.array(self.is_number)[owner]))
        object.__setattr__(self, "code_columns", np.flatnonzero(~np.array(self.is_number)[owner]))
        object.__setattr__(self, "members", np.eye(len(sizes))[owner] if len(owner) <= _FEW else None)
        object.__setattr__(self, "scale", np.array(self.scales)[owner] if self.scales else None)
        object.__setattr__(self, "metric", np.square(self.scale) if self.scale is not None else 1.0)
        object.__setattr__(self, "centre", 1 / np.maximum(sizes, 2)[owner])
        # two for a category in place of another, one for a binary column
        units = np.where(self.is_number, 0, np.minimum(sizes, 2))
        squares = units * np.square(self.scales or np.ones(len(sizes)))
        object.__setattr__(self, "codes_apart", sqrt(float(squares.sum())))

    @classmethod
    def of(cls, blocks: Iterable[BlockLike]) -> Layout:
        blocks = list(blocks)
        scales = tuple(block.scale for block in blocks)
        return cls(
            tuple(block.start for block in blocks),
            tuple(block.stop for block in blocks),
            tuple(block.kind == "numeric" for block in blocks),
            scales if any(scale != 1 for scale in scales) else (),
        )

    @property
    def pairs(self) -> tuple[Indices, Indices]:
        """Columns (i, j), i < j, of different attributes. Products within a code are 0 off the diagonal, so they are known."""
        return _pairs_across(self.starts, self.width)

    @property
    def reach(self) -> Vector:
        """The largest ‖x - centre‖² each attribute can have: 1/4, or 1 - 1/k for a code of k ≥ 2 columns."""
        return np.where(self.sizes == 1, 0.25, 1 - 1 / np.maximum(self.sizes, 2))

    @property
    def typical_distance(self) -> float:
        """The typical distance of two records that public facts alone make up: numbers uniform, categories equally frequent, independent features."""
        codes = np.where(self.sizes == 1, 1 / 2, 2 * (1 - 1 / np.maximum(self.sizes, 2)))
        apart = np.where(self.is_number, 1 / 6, codes)
        return sqrt(float((apart * np.square(self.scales or np.ones(len(apart)))).sum()))

    def diameter(self, point: Vector) -> float:
        """A bound on the distance of any record from `point`: a number moves by its scale, a code by one unit or two, or where `point` is no
        record itself by at most one a column."""
        whole = self.per_attribute(((point == 0) | (point == 1)).astype(np.int64)) == self.sizes
        records = np.array(self.is_number) | (whole & (self.per_attribute(point) <= 1))
        moves = np.where(records, np.minimum(self.sizes, 2), self.sizes)
        return sqrt(float((moves * np.square(self.scales or np.ones(len(moves)))).sum())) * (1 + 2.0**-40)

    def columns(self, attribute: int) -> slice:
        return slice(self.starts[attribute], self.stops[attribute])

    def per_attribute(self, values: Matrix, axis: int = 0) -> Matrix:
        """Sums over each attribute's columns, along one of the last two axes. Values are finite."""
        if self.members is not None and values.dtype == np.float64:
            return np.asarray(values @ self.members if axis in (-1, values.ndim - 1) else self.members.T @ values)
        return np.asarray(np.add.reduceat(values, self.first, axis=axis))

    def same_attribute(self) -> NDArray[np.bool_]:
        """(n, n): whether two columns belong to one attribute."""
        return np.asarray(self.owner[:, None] == self.owner[None, :])


@lru_cache(maxsize=4)
def _pairs_across(starts: tuple[int, ...], width: int) -> tuple[Indices, Indices]:
    owner = np.searchsorted(starts, np.arange(width), side="right")
    i, j = np.triu_indices(width, 1)
    cross = owner[i] != owner[j]
    pairs = i[cross], j[cross]
    for one in pairs:
        one.setflags(write=False)  # shared by every caller
    return pairs


def is_code(block: Vector) -> bool:
    """Whether columns hold one 1 and zeros, or zeros alone."""
    entries: list[float] = block.tolist()  # a loop over a few numbers is quicker than NumPy
    return entries.count(1.0) <= 1 and entries.count(0.0) + entries.count(1.0) == len(entries)
