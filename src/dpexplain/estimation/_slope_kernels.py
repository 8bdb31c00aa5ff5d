"""The compiled loop of `estimation/global_slopes.py`: posteriors of slopes under many priors, for one or several estimates."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpexplain.core import compiling
from dpexplain.core.compiling import widest_registers

Array = NDArray[np.float64]

_PRODUCT = 8  # terms that are multiplied before a logarithm is taken: each is between 1e-18 and 1e18
_NOTHING = 1e-30  # the weight of a prior that adds nothing
compiled = partial(compiling.compile_kernel, fastmath={"reassoc", "contract", "nsz"})


@compiled
def posteriors(
    equations: tuple[Array, Array, Array], noises: tuple[Array, Array, Array], priors: Array, before: Array, rounds: int,
    found: tuple[Array, Array, Array, Array],
) -> None:  # fmt: skip # pragma: no cover
    """Fill in (log evidence of all priors, mean, variance, each prior's weight), one row for each estimate.

    `equations` are eigenvalues, targets and the priors' middle; `noises` are s_t², s_C² and the smallest s²; `before` are log probabilities.
    """
    eigenvalues, targets, middles = equations
    likelihoods, means, variances, weights = found
    for k in range(priors.shape[0]):
        noise = np.empty(priors.shape[1])
        label, second, smallest = noises[0][k], noises[1][k], noises[2][k]
        for p in range(priors.shape[1]):
            noise[p] = max(label, smallest)
            for _ in range(rounds):
                size = _squared_size(eigenvalues[k], targets[k], middles[k], priors[k, p], noise[p])
                noise[p] = max(label + second * size, smallest)
            weights[k, p] = before[p] + _log_density(eigenvalues[k], targets[k], priors[k, p], noise[p])
        likelihoods[k] = _normalise(weights[k])
        _average(eigenvalues[k], targets[k], priors[k], noise, weights[k], means[k], variances[k])


@compiled
def _squared_size(eigenvalues: Array, target: Array, middle: Array, prior: Array, noise: float) -> float:  # pragma: no cover
    """‖φ̂‖² for noise of this size."""
    widest_registers()
    total = 0.0
    for j in range(len(target)):
        pull = eigenvalues[j] * prior[j]
        phi = middle[j] + pull * target[j] / (eigenvalues[j] * pull + noise)
        total += phi * phi
    return total


@compiled
def _log_density(eigenvalues: Array, target: Array, prior: Array, noise: float) -> float:  # pragma: no cover
    """-½ Σ (log d + target²/d), d = λ²v + s²."""
    widest_registers()
    total, logarithms = 0.0, 0.0
    for start in range(0, len(target), _PRODUCT):
        product = 1.0
        for j in range(start, min(start + _PRODUCT, len(target))):
            d = eigenvalues[j] * eigenvalues[j] * prior[j] + noise
            product *= d
            total += target[j] * target[j] / d
        logarithms += np.log(product)
    return -0.5 * (logarithms + total)


@compiled
def _normalise(weights: Array) -> float:  # pragma: no cover
    """Turn logarithms into weights that sum to one; returns the logarithm of their sum."""
    most = weights[0]
    for p in range(len(weights)):
        most = max(most, weights[p])
    total = 0.0
    for p in range(len(weights)):
        weights[p] = np.exp(weights[p] - most)
        total += weights[p]
    for p in range(len(weights)):
        weights[p] /= total
    return float(most + np.log(total))


@compiled
def _average(
    eigenvalues: Array, target: Array, priors: Array, noise: Array, weights: Array, mean: Array, variance: Array
) -> None:  # pragma: no cover
    """Mean and variance of φ - middle over all priors."""
    widest_registers()
    mean[:] = 0.0
    variance[:] = 0.0
    for p in range(len(weights)):
        if weights[p] > _NOTHING:
            for j in range(len(target)):
                pull = eigenvalues[j] * priors[p, j]
                mean[j] += weights[p] * pull * target[j] / (eigenvalues[j] * pull + noise[p])
    for p in range(len(weights)):
        if weights[p] > _NOTHING:
            for j in range(len(target)):
                pull = eigenvalues[j] * priors[p, j]
                gain = 1 / (eigenvalues[j] * pull + noise[p])
                apart = pull * target[j] * gain - mean[j]
                variance[j] += weights[p] * (priors[p, j] * noise[p] * gain + apart * apart)
