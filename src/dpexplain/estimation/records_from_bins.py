"""Encoded records from bins: draws a cell of the bin, then a value within the cell. Pure post-processing."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.cells import CellCodes, Cells, NumberCells
from dpexplain.core.layout import Layout
from dpexplain.core.marginals import Bins, Joined
from dpexplain.core.uniforms import Uniforms
from dpexplain.estimation._table_kernels import find_cells
from dpexplain.estimation.denoise import Estimate
from dpexplain.estimation.reference import NUMBER_STEPS, number_shares

_STEEPEST = 1 / sqrt(3)  # by how many standard deviations the mean of a triangular density is from that of an even one


def cell_masses(bins: Bins, histograms: Sequence[Vector], sigma: float, known: Estimate | None, layout: Layout) -> list[Vector]:
    """How much of its bin each cell holds. Far from most rows what noise leaves in empty cells adds up, so numbers follow what is `known` of them."""
    each = zip(bins.cells, bins.joined, histograms, strict=True)
    masses = [_mass(cell, joined, histogram, sigma) for cell, joined, histogram in each]
    if known is not None and known.margins is not None:
        shares = dict(zip(layout.numbers.tolist(), number_shares(known, known.margins, layout, within_bins=True), strict=True))
        for a, cell in enumerate(bins.cells):
            masses[a] = shares[cell.start] if isinstance(cell, NumberCells) else masses[a]
    return masses


def draw_within_bins(codes: CellCodes, bins: Bins, masses: Sequence[Vector], layout: Layout, uniforms: Uniforms) -> CellCodes:
    """(attributes, rows) in the form a reference stores: a column's offset (its size: none), or a multiple of 1/`NUMBER_STEPS`."""
    stored = np.zeros((layout.attributes, len(codes)), dtype=np.int64)
    for a, (cell, joined, mass) in enumerate(zip(bins.cells, bins.joined, masses, strict=True)):
        cells = _draw_cells(codes[:, a], joined, mass, uniforms)
        if layout.is_number[a]:
            number = cell.columns(cells, uniforms.take(len(cells)))[:, 0]
            stored[a] = np.rint(number * NUMBER_STEPS).astype(np.int64)
        else:
            stored[a] = cells
    return stored


def position_errors(bins: Bins, histograms: Sequence[Vector], sigma: float, layout: Layout) -> Matrix:
    """(column, upper edge, error) of each bin of the numbers, by column and edge.

    The error is that of a bin's mean, in standard deviations of the numbers within it: noise on the cells that the numbers were drawn from,
    σ√(cells)/(their mass), and at most what a density that rises or falls to zero would make of an even one.
    """
    found = []
    for a, (cell, joined, histogram) in enumerate(zip(bins.cells, bins.joined, histograms, strict=True)):
        if layout.is_number[a]:
            mass = _mass(cell, joined, histogram, sigma)
            upper = cell.columns(np.arange(cell.count), np.ones(cell.count))[:, 0]
            for one in range(int(joined.max()) + 1):
                inside = joined == one
                held, used = float(mass[inside].sum()), int(np.count_nonzero(mass[inside]))
                error = min(sigma * sqrt(used) / held, _STEEPEST) if held > 0 else _STEEPEST * (inside.sum() > 1)
                found.append((layout.starts[a], float(upper[inside].max()), error))
    return np.array(sorted(found)).reshape(-1, 3)


def _mass(cell: Cells, joined: Joined, histogram: Vector, sigma: float) -> Vector:
    """What each cell holds beyond noise; a cell of missing values that was joined to another one holds nothing."""
    mass = np.maximum(histogram - sigma, 0.0)
    if cell.unknown is not None and (joined == joined[cell.unknown]).sum() > 1:
        mass[cell.unknown] = 0.0
    return mass


def _draw_cells(codes: CellCodes, joined: Joined, mass: Vector, uniforms: Uniforms) -> CellCodes:
    """A cell of each row's bin, drawn in proportion to `mass`; evenly where a bin has none."""
    order = np.argsort(joined, kind="stable")
    held = np.bincount(joined, weights=mass, minlength=int(joined.max()) + 1)
    ordered = np.where(held[joined] > 0, mass, 1.0)[order]
    edges = np.concatenate([[0.0], np.cumsum(ordered)])
    first = np.searchsorted(joined[order], np.arange(len(held)), side="left")
    last = np.searchsorted(joined[order], np.arange(len(held)), side="right")
    places = np.empty(len(codes), dtype=np.int64)
    find_cells(np.ascontiguousarray(codes), first, last, edges, uniforms.take(len(codes)), places)
    return np.asarray(order[places])
