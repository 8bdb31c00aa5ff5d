"""A surrogate of a model: functions of single features and of pairs, fitted to labelled reference records. Pure post-processing.

    f(x) ≈ c + Σ_a s_a(x_a) + Σ_ab T_ab(x_a, x_b),

each a table over bins, fitted by going through the terms and setting each to the (shrunken) mean of what the others leave (backfitting). Pairs are those
that reduce the squared error most. Interventional SHAP values of such a function over weighted records have a closed form: with X a random record,

    φ_a = s_a(z_a) - E s_a(X_a) + Σ_b ½[E T(z_a, X_b) - E T(X_a, X_b) + T(z_a, z_b) - E T(X_a, z_b)],

so a record is answered in microseconds, from small tables, without the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.layout import BlockLike

Bins = NDArray[np.intp]

_BINS, _PAIR_BINS = 24, 10  # of a number, alone and in a pair
_SHRUNK = 8.0  # records of prior evidence for 0 in each cell
_ROUNDS = 12
_HELD = 4  # every so many-th record is held out to measure fidelity
MOST_PAIRS = 30


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """The bins of one feature: between `edges` for a number; one for each column of a category and one for none of them."""

    start: int
    stop: int
    edges: Vector | None

    @classmethod
    def of(cls, block: BlockLike, encoded: Matrix, most: int) -> Grid:
        if block.kind != "numeric":
            return cls(block.start, block.stop, None)
        values = np.unique(encoded[:, block.start])
        if len(values) > most:
            values = np.unique(np.quantile(encoded[:, block.start], np.arange(most + 1) / most))
        return cls(block.start, block.stop, (values[1:] + values[:-1]) / 2)

    @property
    def size(self) -> int:
        return self.stop - self.start + 1 if self.edges is None else len(self.edges) + 1

    def bins(self, encoded: Matrix) -> Bins:
        if self.edges is not None:
            return np.searchsorted(self.edges, encoded[:, self.start])
        columns = encoded[:, self.start : self.stop]
        return np.where(columns.max(axis=1) > 0.5, columns.argmax(axis=1), self.stop - self.start)


@dataclass(frozen=True, slots=True, eq=False)
class Single:
    """s_a as a table, centred over the records."""

    feature: int
    grid: Grid
    table: Vector


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """T_ab as a table, with the shares of records in each cell's row and column."""

    first: int
    second: int
    grids: tuple[Grid, Grid]
    table: Matrix
    rows: Vector  # shares of the first feature's bins
    columns: Vector
    mean: float  # E T(X_a, X_b)


@dataclass(frozen=True, slots=True, eq=False)
class Surrogate:
    """The fitted tables. `fidelity` is R² on records that were held out."""

    features: int
    constant: float
    singles: tuple[Single, ...]
    pairs: tuple[Pair, ...]
    fidelity: float

    def predict(self, encoded: Matrix) -> Vector:
        """Labels of encoded records; estimates may pass ±1."""
        out = np.full(len(encoded), self.constant)
        for one in self.singles:
            out += one.table[one.grid.bins(encoded)]
        for pair in self.pairs:
            out += pair.table[pair.grids[0].bins(encoded), pair.grids[1].bins(encoded)]
        return out

    def shapley(self, encoded: Matrix) -> Matrix:
        """SHAP values of each record, (records, features): they add up to the prediction minus `base`."""
        out = np.zeros((len(encoded), self.features))
        for one in self.singles:
            out[:, one.feature] += one.table[one.grid.bins(encoded)]  # centred: its mean is 0
        for pair in self.pairs:
            a, b = pair.grids[0].bins(encoded), pair.grids[1].bins(encoded)
            here = pair.table[a, b]
            along, across = (pair.table @ pair.columns)[a], (pair.rows @ pair.table)[b]
            out[:, pair.first] += (along - pair.mean + here - across) / 2
            out[:, pair.second] += (across - pair.mean + here - along) / 2
        return out

    @property
    def base(self) -> float:
        """The average prediction over the records."""
        return self.constant + sum(pair.mean for pair in self.pairs)


def fit_surrogate(encoded: Matrix, labels: Vector, weights: Vector, blocks: Sequence[BlockLike]) -> Surrogate:
    """Fit on three quarters of the records, measure on the rest."""
    held = np.arange(len(labels)) % _HELD == 0
    fit = _Fitting(encoded[~held], labels[~held], weights[~held], blocks)
    fit.go_through(fit.singles, _ROUNDS // 2)
    fit.choose_pairs(MOST_PAIRS)
    fit.go_through([*fit.singles, *fit.pairs], _ROUNDS)
    found = fit.surrogate(0.0)
    left = labels[held] - found.predict(encoded[held])
    share = weights[held] / weights[held].sum()
    spread = float(share @ np.square(labels[held] - share @ labels[held]))
    fidelity = 1 - float(share @ np.square(left)) / max(spread, 1e-12)
    return fit.surrogate(fidelity)


@dataclass(slots=True, eq=False)
class _Term:
    """A table during fitting: the cell of each record, and the table."""

    features: tuple[int, ...]
    grids: tuple[Grid, ...]
    cells: Bins
    table: Vector


class _Fitting:
    """Backfitting over weighted records."""

    def __init__(self, encoded: Matrix, labels: Vector, weights: Vector, blocks: Sequence[BlockLike]) -> None:
        self.encoded, self.weights, self.blocks = encoded, weights / weights.mean(), blocks
        self.constant = float(self.weights @ labels / self.weights.sum())
        self.left = labels - self.constant
        self.singles = [self._term((a,), _BINS) for a in range(len(blocks))]
        self.pairs: list[_Term] = []

    def _term(self, features: tuple[int, ...], most: int) -> _Term:
        grids = tuple(Grid.of(self.blocks[a], self.encoded, most) for a in features)
        cells = grids[0].bins(self.encoded)
        for grid in grids[1:]:
            cells = cells * grid.size + grid.bins(self.encoded)
        return _Term(features, grids, cells, np.zeros(int(np.prod([grid.size for grid in grids]))))

    def _means(self, term: _Term, values: Vector) -> Vector:
        sums = np.bincount(term.cells, self.weights * values, len(term.table))
        return np.asarray(sums / (np.bincount(term.cells, self.weights, len(term.table)) + _SHRUNK))

    def go_through(self, terms: Sequence[_Term], rounds: int) -> None:
        for _ in range(rounds):
            for term in terms:
                self.left += term.table[term.cells]
                term.table = self._means(term, self.left)
                self.left -= term.table[term.cells]

    def choose_pairs(self, most: int) -> None:
        """Those that reduce the squared error most, beyond what their number of cells would by chance."""
        found = []
        noise = float(self.weights @ np.square(self.left)) / len(self.left)
        for a, b in combinations(range(len(self.blocks)), 2):
            term = self._term((a, b), _PAIR_BINS)
            counts = np.bincount(term.cells, self.weights, len(term.table))
            gain = float(np.square(self._means(term, self.left)) @ counts) - noise * np.count_nonzero(counts)
            found.append((gain, term))
            found = sorted(found, key=lambda one: -one[0])[:most]  # only the best are kept in memory
        self.pairs = [term for gain, term in found if gain > 0]

    def surrogate(self, fidelity: float) -> Surrogate:
        total, constant, singles, pairs = self.weights.sum(), self.constant, [], []
        for term in self.singles:
            middle = float(self.weights @ term.table[term.cells] / total)
            singles.append(Single(term.features[0], term.grids[0], term.table - middle))
            constant += middle
        for term in self.pairs:
            shape = (term.grids[0].size, term.grids[1].size)
            shares = np.bincount(term.cells, self.weights, len(term.table)).reshape(shape) / total
            table = term.table.reshape(shape)
            margins = shares.sum(axis=1), shares.sum(axis=0)
            grids, (a, b) = (term.grids[0], term.grids[1]), term.features
            pairs.append(Pair(a, b, grids, table, *margins, float((shares * table).sum())))
        return Surrogate(len(self.blocks), constant, tuple(singles), tuple(pairs), fidelity)
