"""The compiled loop of `estimation/global_slopes.py`: the posterior of slopes under many priors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpexplain.core.compiling import compile_kernel, widest_registers

Array = NDArray[np.float64]

_NOTHING = 1e-30  # the weight of a prior that adds nothing


def posterior(
    eigenvalues: Array, target: Array, middle: Array, priors: Array, errors: Array, weights: Array, out: Array
) -> float:  # pragma: no cover
    """Fill in mean and variance of φ - middle, the rows of `out`; returns the log evidence of all priors together.

    `errors` are s_t², s_C², the smallest s², and how often s² is found anew; `weights` has the priors' log probabilities, and gets their posterior weights.
    """
    widest_registers()
    n, noise, most = len(target), np.empty(len(weights)), -np.inf
    for p in range(len(weights)):
        s2 = max(errors[0], errors[2])
        for _ in range(int(errors[3])):
            size = 0.0
            for j in range(n):
                pull = eigenvalues[j] * priors[p, j]
                phi = middle[j] + pull * target[j] / (eigenvalues[j] * pull + s2)
                size += phi * phi
            s2 = max(errors[0] + errors[1] * size, errors[2])
        noise[p], misfit, logarithms, product = s2, 0.0, 0.0, 1.0
        for j in range(n):
            d = eigenvalues[j] * eigenvalues[j] * priors[p, j] + s2
            misfit += target[j] * target[j] / d
            product *= d
            if j % 8 == 7:  # one logarithm for eight terms: each is between 1e-18 and 1e18
                logarithms += np.log(product)
                product = 1.0
        weights[p] -= 0.5 * (logarithms + np.log(product) + misfit)
        most = max(most, weights[p])
    total = 0.0
    for p in range(len(weights)):
        weights[p] = np.exp(weights[p] - most)
        total += weights[p]
    out[:] = 0.0
    for second in range(2):
        for p in range(len(weights)):
            share = weights[p] / total
            if share > _NOTHING:
                for j in range(n):
                    pull = eigenvalues[j] * priors[p, j]
                    gain = 1 / (eigenvalues[j] * pull + noise[p])
                    moved = pull * target[j] * gain
                    if second:
                        out[1, j] += share * (priors[p, j] * noise[p] * gain + (moved - out[0, j]) ** 2)
                    else:
                        out[0, j] += share * moved
    weights /= total
    return float(most + np.log(total))


find_posterior = compile_kernel(posterior, fastmath={"reassoc", "contract", "nsz"})
