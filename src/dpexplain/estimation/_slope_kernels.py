"""The compiled loops of `estimation/global_slopes.py`: the posterior of slopes under many priors, for several estimates.

Priors lie next to each other in memory, so that vector instructions work on several of them at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpexplain.core.compiling import compile_kernel, widest_registers

Array = NDArray[np.float64]

_NOTHING = 1e-30  # the weight of a prior that adds nothing
_FAST = {"reassoc", "contract", "nsz"}


def _fit_noise(
    eigenvalues: Array, target: Array, middle: Array, priors: Array, errors: Array, noise: Array
) -> None:  # pragma: no cover
    """Fill in s² under each prior. `errors` are s_t², s_C², the smallest s², and how often s² is found anew, because it depends on φ."""
    widest_registers()
    count, size = len(noise), np.empty(len(noise))
    for p in range(count):
        noise[p] = max(errors[0], errors[2])
    for _ in range(int(errors[3])):
        for p in range(count):
            size[p] = 0.0
        for j in range(len(target)):
            scale, aim, start = eigenvalues[j], target[j], middle[j]
            for p in range(count):
                pull = scale * priors[j, p]
                phi = start + pull * aim / (scale * pull + noise[p])
                size[p] += phi * phi
        for p in range(count):
            noise[p] = max(errors[0] + errors[1] * size[p], errors[2])


def _add_evidence(eigenvalues: Array, target: Array, priors: Array, noise: Array, weights: Array) -> None:  # pragma: no cover
    """Add the log likelihood under each prior to its weight."""
    widest_registers()
    count = len(noise)
    misfit, product, logarithms = np.zeros(count), np.ones(count), np.zeros(count)
    for j in range(len(target)):
        squared, aim = eigenvalues[j] * eigenvalues[j], target[j] * target[j]
        for p in range(count):
            d = squared * priors[j, p] + noise[p]
            misfit[p] += aim / d
            product[p] *= d
        if j % 8 == 7:  # one logarithm for eight terms: each is between 1e-18 and 1e18
            for p in range(count):
                logarithms[p] += np.log(product[p])
                product[p] = 1.0
    for p in range(count):
        weights[p] -= 0.5 * (logarithms[p] + np.log(product[p]) + misfit[p])


def _posterior(
    eigenvalues: Array, target: Array, middle: Array, priors: Array, errors: Array, weights: Array, out: Array
) -> float:  # pragma: no cover
    """Fill in mean and variance of φ - middle, the rows of `out`; returns the log evidence of all priors, (columns, priors), together.

    `weights` has the priors' log probabilities, and gets their posterior weights.
    """
    widest_registers()
    noise = np.empty(len(weights))
    fit_noise(eigenvalues, target, middle, priors, errors, noise)
    add_evidence(eigenvalues, target, priors, noise, weights)
    most, total = weights.max(), 0.0
    for p in range(len(weights)):
        share = np.exp(weights[p] - most)
        weights[p] = share if share > _NOTHING else 0.0
        total += weights[p]
    weights /= total
    for j in range(len(target)):
        scale, aim, mean, within, squares = eigenvalues[j], target[j], 0.0, 0.0, 0.0
        for p in range(len(weights)):
            gain = 1 / (scale * scale * priors[j, p] + noise[p])
            mean += weights[p] * (scale * priors[j, p] * aim * gain)
            within += weights[p] * (priors[j, p] * noise[p] * gain)
        for p in range(len(weights)):
            apart = scale * priors[j, p] * aim / (scale * scale * priors[j, p] + noise[p]) - mean
            squares += weights[p] * apart * apart
        out[0, j], out[1, j] = mean, within + squares
    return float(most + np.log(total))


def _with_priors(
    eigenvalues: Array, targets: Array, middles: Array, priors: Array, errors: Array, weights: Array, out: Array
) -> Array:  # pragma: no cover
    """The log evidence of each estimate, whose priors are (estimates, priors, columns); fills in `weights` and `out` of each."""
    found = np.empty(len(targets))
    for k in range(len(targets)):
        across = np.ascontiguousarray(priors[k].T)
        found[k] = posterior(eigenvalues[k], targets[k], middles[k], across, errors[k], weights[k], out[k])
    return found


def _with_sizes(
    eigenvalues: Array, targets: Array, middles: Array, priors: tuple[Array, Array], errors: Array, weights: Array, out: Array
) -> Array:  # pragma: no cover
    """The same for priors that are each of some sizes times each of the usual ones, (estimates, kinds, columns)."""
    sizes, usual = priors
    found, count = np.empty(len(targets)), len(sizes)
    across = np.empty((targets.shape[1], usual.shape[1] * count))
    for k in range(len(targets)):
        for j in range(targets.shape[1]):
            for kind in range(usual.shape[1]):
                for p in range(count):
                    across[j, kind * count + p] = sizes[p] * usual[k, kind, j]
        found[k] = posterior(eigenvalues[k], targets[k], middles[k], across, errors[k], weights[k], out[k])
    return found


fit_noise = compile_kernel(_fit_noise, fastmath=_FAST)
add_evidence = compile_kernel(_add_evidence, fastmath=_FAST)
posterior = compile_kernel(_posterior, fastmath=_FAST)
find_with_priors = compile_kernel(_with_priors, fastmath=_FAST)
find_with_sizes = compile_kernel(_with_sizes, fastmath=_FAST)
