"""The compiled loop of `estimation/reference.py` that draws codes one after another, each by regression on those before it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpexplain.core.compiling import compile_kernel, widest_registers

Array = NDArray[np.float64]
Index = NDArray[np.int64]


def panel(
    starts: Index, missing: NDArray[np.bool_], lower: Array, expected: Array, uniforms: Array, codes: Index, residuals: Array
) -> None:  # pragma: no cover
    """Fill in the codes of a panel, (codes, N), with probabilities nearest to what is expected, and L⁻¹(x - μ) of its columns, (columns, N).

    `starts` has one entry more than there are codes; `expected` has each column's expectation given earlier panels, and is changed. Where mass is
    missing, a code's number of columns stands for "all zeros".
    """
    widest_registers()
    count = codes.shape[1]
    for a in range(codes.shape[0]):
        code, uniform, total, left, step = codes[a], uniforms[a], np.zeros(count), np.ones(count), np.zeros(count)
        for j in range(starts[a], starts[a + 1]):
            here = expected[j]
            for b in range(starts[a]):
                pull, before = lower[j, b], residuals[b]
                for i in range(count):
                    here[i] += pull * before[i]
            for i in range(count):
                total[i] += max(here[i], 0.0)
                left[i] -= here[i]
        most = starts[a + 1] - starts[a] - (0 if missing[a] else 1)
        for i in range(count):
            total[i] += max(left[i], 0.0) if missing[a] else 0.0
            code[i] = 0
        for j in range(starts[a], starts[a + 1]):
            here = expected[j]
            for i in range(count):
                step[i] += max(here[i], 0.0)
                code[i] += 1 if uniform[i] * total[i] > step[i] else 0
        for j in range(starts[a], starts[a + 1]):
            here, residual, value = expected[j], residuals[j], j - starts[a]
            for i in range(count):
                residual[i] = (1.0 if min(code[i], most) == value else 0.0) - here[i]
            for b in range(starts[a], j):
                pull, before = lower[j, b], residuals[b]
                for i in range(count):
                    residual[i] -= pull * before[i]
            inverse = 1 / lower[j, j]
            for i in range(count):
                residual[i] *= inverse
        for i in range(count):
            code[i] = min(code[i], most)


draw_panel = compile_kernel(panel, fastmath={"contract", "nsz"})
