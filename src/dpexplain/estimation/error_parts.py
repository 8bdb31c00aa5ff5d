"""What the standard errors of a plane's slopes consist of: four parts whose squares add up to the errors' mean square. Pure post-processing.

- noise: privacy noise. Of the moments, as far as the estimate follows them, and of the tables that reference records were drawn from.
- shrinkage: what the estimate gives up to keep that noise small. Where noise hides slopes, they follow what is expected of them.
- bias: public points or records that differ from the private rows, slopes near the record that differ from those of all rows, and sources of planes
  that contradict each other.
- sampling: chance. Points or records were drawn, and few private rows are near the record.

Sources of planes have some errors in common, so that parts are kept apart by that too: a pair of rows for each query, the first for what all sources
have in common, and the second for what is a source's own. A source that cannot tell noise from shrinkage has both as shrinkage, and NaN as noise; parts
that its errors do not include are NaN.
"""

from __future__ import annotations

from math import isnan, sqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpexplain.core.arrays import Matrix, Vector

PARTS = ("noise", "shrinkage", "bias", "sampling")
NOISE, SHRINKAGE, BIAS, SAMPLING = range(4)
TOGETHER = "noise_and_shrinkage"
COMMON, APART = range(2)

Parts: TypeAlias = NDArray[np.float64]  # mean squares over the slopes, (queries, 2, 4)


def no_parts(queries: int) -> Parts:
    """Parts that are yet to be filled in."""
    return np.zeros((queries, 2, len(PARTS)))


def only_noise_and_shrinkage(errors: Matrix) -> Parts:
    """The parts of errors that include noise and shrinkage, which are not told apart, and nothing else."""
    found = no_parts(len(errors))
    found[:, COMMON] = np.nan
    found[:, COMMON, SHRINKAGE] = np.square(errors).mean(axis=1)
    return found


def split_posterior(squares: Matrix, noise_share: Vector | None, noise: Vector | float = 0.0) -> Matrix:
    """(from noise, from shrinkage): sums of `squares` over directions, of which noise has a share, and other `noise`; NaN where no share is known."""
    if noise_share is None:
        return np.stack([np.full(len(squares), np.nan), squares.sum(axis=1) + noise], axis=1)
    return np.stack([squares @ noise_share + noise, squares @ (1 - noise_share)], axis=1)


def split_records(total: float, tables: Matrix, chance: float, drawn: float) -> Vector:
    """The parts of errors from records, sums over the slopes: `total`, of which TᵀT is the noise of `tables`, and `chance` from few private rows.

    Drawing records and rows causes a share `drawn` of what is left; the rest comes from records that are wrong.
    """
    noise = float(np.square(tables).sum())
    rest = total - noise - chance
    return np.array([noise, 0.0, (1 - drawn) * rest, drawn * rest + chance])


def mix_common(share: Vector, errors: tuple[Matrix, Matrix], parts: tuple[Parts, Parts]) -> Matrix:
    """The parts of w σ + (1 - w) σ', σ and σ' the `errors` that two sources have in common: to each source as much as it adds, (queries, 4)."""
    first, second = share[:, None] * errors[0], (1 - share)[:, None] * errors[1]
    found = np.zeros_like(parts[0][:, COMMON])
    for added, error, own in zip((first, second), errors, parts, strict=True):
        square = np.maximum(np.square(error).mean(axis=1), 1e-300)
        found += own[:, COMMON] * ((added * (first + second)).mean(axis=1) / square)[:, None]
    return found


def name_parts(parts: Matrix) -> dict[str, float]:
    """The parts of one query, (2, 4), by name: root mean squares over the slopes. Those that the errors do not include are left out."""
    common, own = parts.tolist()
    found = {name: first + second for name, first, second in zip(PARTS, common, own, strict=True)}
    if isnan(found["noise"]):
        found = {TOGETHER: found["shrinkage"] + own[NOISE], "bias": found["bias"], "sampling": found["sampling"]}
    return {name: sqrt(max(square, 0.0)) for name, square in found.items() if not isnan(square)}
