"""The compiled loop of `estimation/reference.py` that draws codes one after another, each by regression on those before it."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpexplain.core import compiling
from dpexplain.core.compiling import widest_registers

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_TOGETHER = 128  # points whose numbers stay in the processor's cache
compiled = partial(compiling.compile_kernel, fastmath={"contract", "nsz"})


@compiled
def draw_panel(
    starts: Index, missing: NDArray[np.bool_], lower: Array, expected: Array, uniforms: Array, codes: Index, residuals: Array
) -> None:  # pragma: no cover
    """Fill in the codes of a panel, (codes, N), and L⁻¹(x - μ) of its columns, (columns, N).

    `starts` has one entry more than there are codes; `expected` has each column's expectation given earlier panels, and is changed.
    """
    for first in range(0, codes.shape[1], _TOGETHER):
        last = min(first + _TOGETHER, codes.shape[1])
        for a in range(codes.shape[0]):
            place = starts[a], starts[a + 1], first, last
            _draw_one(place, missing[a], lower, expected, uniforms[a], codes[a], residuals)


@compiled
def _draw_one(
    place: tuple[int, int, int, int],
    missing: bool,
    lower: Array,
    expected: Array,
    uniforms: Array,
    codes: Index,
    residuals: Array,
) -> None:  # pragma: no cover
    """One code, columns start … stop-1, of points first … last-1, with probabilities nearest to what is expected; stop - start is "all zeros"."""
    widest_registers()
    start, stop, first, last = place
    count, uniform, code = last - first, uniforms[first:last], codes[first:last]
    total, left = np.zeros(count), np.ones(count)
    for j in range(start, stop):
        here = expected[j, first:last]
        for b in range(start):
            _add_to(here, lower[j, b], residuals[b, first:last])
        for i in range(count):
            total[i] += max(here[i], 0.0)
            left[i] -= here[i]
    if missing:
        for i in range(count):
            total[i] += max(left[i], 0.0)
    step, reached = np.zeros(count), np.zeros(count, dtype=np.int64)
    for j in range(start, stop):
        here = expected[j, first:last]
        for i in range(count):
            step[i] += max(here[i], 0.0)
            reached[i] += 1 if uniform[i] * total[i] > step[i] else 0
    most = stop - start if missing else stop - start - 1
    for i in range(count):
        code[i] = min(reached[i], most)
    for j in range(start, stop):
        here, residual, value = expected[j, first:last], residuals[j, first:last], j - start
        for i in range(count):
            residual[i] = (1.0 if code[i] == value else 0.0) - here[i]
        for b in range(start, j):
            _add_to(residual, -lower[j, b], residuals[b, first:last])
        inverse = 1 / lower[j, j]
        for i in range(count):
            residual[i] *= inverse


@compiled
def _add_to(out: Array, factor: float, values: Array) -> None:  # pragma: no cover
    widest_registers()
    for i in range(len(out)):
        out[i] += factor * values[i]
