"""Synthetic records from noisy counts: the maximum-entropy population, relative to a tree, that has the released tables. Pure post-processing.

1. *Consistency.* Every table holds each attribute's margin; their average by inverse variance is the margin p, and tables are shifted to it.
2. *Shrinkage.* With e = p pᵀ and noise s, a cell keeps the share e²/(e² + s²) of its distance from independence; then it is scaled to its
   margins again (iterative proportional fitting).
3. *Tree.* The maximum spanning tree of mutual information (Chow & Liu 1968), sampled.
4. *All tables.* Potentials for all pairs are learnt from a chain of records that starts at the sample (`estimation/gibbs.py`): its records have all
   tables, up to noise.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.cells import CellCodes
from dpexplain.core.marginals import Joined
from dpexplain.core.uniforms import Uniforms
from dpexplain.estimation._table_kernels import fit_margins
from dpexplain.estimation.gibbs import CHAIN, STATES, learn_potentials
from dpexplain.estimation.raking import FLOOR, Tables


def tables(counts: Matrix, offsets: Joined, used: list[Joined], sigma: float) -> Tables:
    """Steps 1 and 2. `used[a]` are the bins of attribute a that the map fills; the others are empty, publicly."""
    blocks = [slice(int(a), int(b)) for a, b in pairwise(offsets)]
    present = np.zeros(int(offsets[-1]), dtype=bool)
    for start, bins in zip(offsets[:-1], used, strict=True):
        present[start + bins] = True
    counts = np.where(np.outer(present, present), counts, 0.0)
    totals = [
        (counts[a, b].sum(), len(used[i]) * len(used[j])) for i, a in enumerate(blocks) for j, b in enumerate(blocks) if i < j
    ]
    size = sum(total / cells for total, cells in totals) / sum(1 / cells for _, cells in totals)
    size = max(size, sigma, 1.0)
    p, pairs = _make_consistent(counts / size, offsets, used)
    errors = np.full_like(pairs, sigma / size)
    return Tables(offsets, p, pairs, shrink_tables(offsets, pairs, p, errors), sigma / size, errors)


def redraw_tables(found: Tables, normals: Vector) -> tuple[Vector, Matrix]:
    """(margins, tables) with other noise of the same size, taking these for the truth. `normals` has a standard normal for each cell."""
    used = [np.flatnonzero(found.p[found.block(a)]) for a in range(found.attributes)]
    possible = (found.owner[:, None] < found.owner) & np.outer(found.p > 0, found.p > 0)
    noise = np.where(possible, found.errors * normals.reshape(possible.shape), 0.0)
    return _make_consistent(found.pairs + noise + noise.T, found.offsets, used)


def _make_consistent(pairs: Matrix, offsets: Joined, used: list[Joined]) -> tuple[Vector, Matrix]:
    """One margin for each attribute, the average of its tables' by inverse variance, and the nearest tables that have these margins."""
    starts, sizes = offsets[:-1], np.array([len(bins) for bins in used])
    owner, present = np.repeat(np.arange(len(used)), np.diff(offsets)), np.zeros(len(pairs), dtype=bool)
    p, margins = np.zeros(len(pairs)), np.add.reduceat(pairs, starts, axis=1)  # (bins, attributes); a table with itself is zero
    for a, bins in enumerate(used):
        inside, others = starts[a] + bins, np.arange(len(used)) != a
        present[inside] = True
        p[inside] = on_simplex(margins[inside][:, others] @ (1 / sizes[others]) / float((1 / sizes[others]).sum()))
    there = np.outer(present, present) & (owner[:, None] < owner)
    shifted = np.where(there, pairs + ((p[:, None] - margins) / sizes)[:, owner], 0.0)
    missing = (p - np.add.reduceat(shifted, starts, axis=0)) / sizes[:, None]
    shifted = np.where(there, shifted + missing[owner], 0.0)
    return p, shifted + shifted.T


def on_simplex(values: Vector) -> Vector:
    """The nearest probabilities (Duchi et al. 2008), none of them zero."""
    ordered = np.sort(values)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, len(values) + 1)
    found = np.maximum(values - excess[np.nonzero(ordered > excess)[0][-1]], FLOOR)
    return np.asarray(found / found.sum())


def shrink_tables(offsets: Joined, pairs: Matrix, p: Vector, errors: Matrix) -> Matrix:
    """Step 2, for cells with these errors."""
    blocks, independent = [slice(int(a), int(b)) for a, b in pairwise(offsets)], np.outer(p, p)
    kept = np.square(independent) / (np.square(independent) + np.square(errors) + 1e-300)
    smooth = np.maximum(independent + kept * (pairs - independent), 0.02 * independent)
    for i, a in enumerate(blocks):
        for b in blocks[:i]:
            smooth[a, b] = _fit_margins(smooth[a, b], p[a], p[b])
            smooth[b, a] = smooth[a, b].T
        smooth[a, a] = np.diag(p[a])
    return np.asarray(smooth)


def _fit_margins(table: Matrix, rows: Vector, columns: Vector) -> Matrix:
    """Iterative proportional fitting to both margins."""
    fitted = table.copy()
    fit_margins(fitted, np.ascontiguousarray(rows), np.ascontiguousarray(columns), 20)
    return fitted


def tree(found: Tables) -> list[tuple[int, int | None]]:
    """(attribute, parent), parents first: the maximum spanning tree of mutual information (Prim)."""
    independent = np.outer(found.p, found.p)
    ratio = np.divide(found.smooth, independent, out=np.ones_like(independent), where=independent > 0)
    information = found.smooth * np.log(np.maximum(ratio, 1e-300))
    starts = found.offsets[:-1]
    strength = np.add.reduceat(np.add.reduceat(information, starts, axis=0), starts, axis=1)
    np.fill_diagonal(strength, -1.0)
    root = int(strength.sum(axis=1).argmax())
    order: list[tuple[int, int | None]] = [(root, None)]
    waiting = np.ones(found.attributes, dtype=bool)
    waiting[root] = False
    while waiting.any():
        reach = np.where(waiting, strength[~waiting], -2.0)
        parent, child = np.unravel_index(int(reach.argmax()), reach.shape)
        order.append((int(child), int(np.flatnonzero(~waiting)[parent])))
        waiting[child] = False
    return order


def sample_tree(found: Tables, rows: int, uniforms: Uniforms) -> CellCodes:
    """Bins of `rows` records that follow the tree."""
    codes = np.zeros((found.attributes, rows), dtype=np.int64)
    for child, parent in tree(found):
        block, u, own = found.block(child), uniforms.take(rows), codes[child]
        table = found.p[None, block] if parent is None else found.smooth[found.block(parent), block]
        steps = np.cumsum(table, axis=1)
        steps /= np.maximum(steps[:, -1:], 1e-300)
        given = np.zeros(rows, dtype=np.int64) if parent is None else codes[parent]
        for step in steps.T[:-1]:
            own += u > step[given]
    return np.ascontiguousarray(codes.T)


def draw(found: Tables, rows: int, uniforms: Uniforms) -> CellCodes:
    """Steps 3 and 4: bins of `rows` records, (rows, attributes)."""
    chain = sample_tree(found, max(CHAIN, -(-rows // STATES)), uniforms)
    return learn_potentials(chain, found, tree_potentials(found), uniforms).records(rows, uniforms)


def tree_potentials(found: Tables) -> tuple[Matrix, Vector]:
    """(θ, η) of the tree: log p(x, y)/(p(x)p(y)) along its edges, and log p."""
    independent = np.maximum(np.outer(found.p, found.p), FLOOR**2)
    theta = np.zeros_like(independent)
    for child, parent in tree(found):
        if parent is not None:
            rows, columns = found.block(child), found.block(parent)
            edge = np.log(np.maximum(found.smooth[rows, columns], FLOOR**2) / independent[rows, columns])
            theta[rows, columns], theta[columns, rows] = edge, edge.T
    return theta, np.log(np.maximum(found.p, FLOOR**2))
