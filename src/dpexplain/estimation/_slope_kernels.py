"""The compiled loop of `estimation/global_slopes.py`: the posterior of slopes under many priors.

Priors lie next to each other in memory, so that vector instructions work on several of them at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpexplain.core.compiling import compile_kernel, widest_registers

Array = NDArray[np.float64]

_NOTHING = 1e-30  # the weight of a prior that adds nothing


def posterior(
    eigenvalues: Array, target: Array, middle: Array, given: tuple[Array, Array], errors: Array, weights: Array, out: Array
) -> float:  # pragma: no cover
    """Fill in mean and variance of φ - middle, the first rows of `out`; returns the log evidence of all priors together.

    Priors are `given` as variances of each column, (columns, kinds), and the factors that each of them is tried with. `errors` are s_t², s_C²,
    the smallest s², and how often s² is found anew; `weights` has the priors' log probabilities, and gets their posterior weights.
    """
    widest_registers()
    n, count, most, total = len(target), len(weights), -np.inf, 0.0
    noise, size, product, priors = np.empty(count), np.empty(count), np.empty(count), np.empty((n, count))
    kinds, factors = given
    for j in range(n):
        for kind in range(kinds.shape[1]):
            for i in range(len(factors)):
                priors[j, kind * len(factors) + i] = kinds[j, kind] * factors[i]
    for p in range(count):
        noise[p] = max(errors[0], errors[2])
    for _ in range(int(errors[3])):
        for p in range(count):
            size[p] = 0.0
        for j in range(n):
            for p in range(count):
                pull = eigenvalues[j] * priors[j, p]
                phi = middle[j] + pull * target[j] / (eigenvalues[j] * pull + noise[p])
                size[p] += phi * phi
        for p in range(count):
            noise[p] = max(errors[0] + errors[1] * size[p], errors[2])
    for p in range(count):
        size[p], product[p] = 0.0, 1.0  # from here on the misfit, and a product of variances
    for j in range(n):
        for p in range(count):
            d = eigenvalues[j] * eigenvalues[j] * priors[j, p] + noise[p]
            size[p] += target[j] * target[j] / d
            product[p] *= d
        if j % 8 == 7 or j == n - 1:  # one logarithm for eight terms: each is between 1e-18 and 1e18
            for p in range(count):
                weights[p] -= 0.5 * np.log(product[p])
                product[p] = 1.0
    for p in range(count):
        weights[p] -= 0.5 * size[p]
        most = max(most, weights[p])
    for p in range(count):
        share = np.exp(weights[p] - most)
        weights[p] = share if share > _NOTHING else 0.0
        total += weights[p]
    for j in range(n):
        mean, spread = 0.0, 0.0
        for p in range(count):
            mean += weights[p] * priors[j, p] / (eigenvalues[j] * eigenvalues[j] * priors[j, p] + noise[p])
        mean *= eigenvalues[j] * target[j] / total
        for p in range(count):
            gain = priors[j, p] / (eigenvalues[j] * eigenvalues[j] * priors[j, p] + noise[p])
            apart = eigenvalues[j] * target[j] * gain - mean
            spread += weights[p] * (noise[p] * gain + apart * apart)
        out[0, j], out[1, j] = mean, spread / total
    for p in range(count):
        weights[p] /= total
    return float(most + np.log(total))


find_posterior = compile_kernel(posterior, fastmath={"reassoc", "contract", "nsz"})
