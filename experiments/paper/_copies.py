"""The scale of the columns, which the paper does not state, decides how many answers of Algorithm 2 are copied from near ones.

How many follows from the queries alone. At the printed noise every computed answer takes T iterations at every scale (erratum 8), so totals follow too.
How good copies are takes the rows.
"""

from __future__ import annotations

import numpy as np

from dpexplain import weights
from dpexplain.privacy import paper
from experiments.paper import _lanes, _streams
from experiments.paper._cells import Cells
from experiments.paper._exact import Problem
from experiments.paper._streams import DELTA, TOTAL_DELTA
from experiments.paper._study import digits


def copies(data, plans, scales):
    """Rows of a table: for columns in [0, scale], computed answers of all shards and the total of the worst one by the paper's bookkeeping."""
    squares = [squared_distances(plan.points()[0]) for plan in plans]
    counts = {
        scale: [count_computed(one * scale**2, paper.reuse_distance(_streams.STEPS) ** 2) for one in squares] for scale in scales
    }
    asked = sum(len(one) for one in squares)
    return [
        {
            "data": data,
            "columns in": f"[0, {scale:g}]",
            "computed, with T' = T": f"{sum(each):,} of {asked:,}",
            "ε by the paper's bookkeeping": digits(book_total(max(each), plans[0].epsilon), 3),
        }
        for scale, each in counts.items()
    ]


def ask_at_scale(plan, lanes, scale):
    """The paper's algorithms on a shard whose columns are in [0, scale]: {mechanism: {quantity: (seeds, queries)}}."""
    points = plan.points()[0]
    width, size = points.shape[1], plan.shard.size
    cells = Cells.remember(plan.shard, lambda: Cells.of(plan.shard))
    found = (cells.moments(point, weights.Stable(), scale) for point in points)
    asked = (Problem.of(point * scale, A / size, b / size) for point, (A, b) in zip(points, found, strict=True))
    chosen = _streams.paper_algorithms(plan.size, width, plan.epsilon, lanes, seed=0)
    return _streams.answer_all(chosen, asked, _lanes.Normal(lanes, _streams.STEPS, width, seed=0), len(points))


def squared_distances(points):
    norms = np.einsum("ij,ij->i", points, points)
    return np.maximum(norms[:, None] + norms - 2 * points @ points.T, 0.0)


def count_computed(squares, near):
    """Queries in order: one is computed unless an earlier computed one is as near as `near`."""
    computed = []
    for i, row in enumerate(squares):
        if not computed or row[computed].min() > near:
            computed.append(i)
    return len(computed)


def book_total(count, epsilon):
    """Strong composition of so many answers of T iterations: T - 1 gradients each, and a drawn start for all but the first."""
    releases = count * (_streams.STEPS - 1) + count - 1
    return paper.Bookkeeping().add(paper.step_epsilon(epsilon, DELTA, _streams.STEPS), count=releases).epsilon(TOTAL_DELTA)
