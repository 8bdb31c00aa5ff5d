"""Algorithms 1 to 3 as printed, for many noise seeds at once: each lane is one seed, and a query's (A, b) is read once for all of them.

The library runs one answer at a time and charges a ledger. Thousands of queries with ten seeds each take hours that way, so this does the same
arithmetic on matrices with one row a seed; `tests/unit/test_lanes.py` compares both step by step. Like calibration="paper" in the library, Algorithms
2 and 3 are not private.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from dpexplain.privacy import gdp, paper
from experiments.paper._cells import compiled
from experiments.paper._exact import axes
from experiments.paper._tridiagonal import Tridiagonal


def descend(A, b, start, sigma, rate, noise):
    """φ ← Proj(φ - rate/√t (2(Aφ - b) + σN)) for each row N of a lane's noise, each lane with its own σ, rate, and b if there are several.

    (A, b) are means over rows. Noise and ball look the same from all sides, so steps are taken along A's eigenvectors, where A is a list of numbers.
    """
    if isinstance(A, Tridiagonal):
        return A.descend(b, _project(start), sigma, rate, noise)
    values, vectors = axes(A)
    phi, targets = _project(start) @ vectors, np.broadcast_to(b @ vectors, start.shape)
    for lane, each in enumerate(noise):
        _walk(values, targets[lane], phi[lane], sigma[lane], rate[lane], each)
    return phi @ vectors.T


class Normal:
    """Standard normal noise of each query, (lanes, steps, width), which all algorithms take their steps with.

    Drawing it takes most of a descent's time, so it is drawn once for all of them, by a fast generator and in single precision. Each algorithm's
    errors are what they are with noise of its own; differences between algorithms have less noise.
    """

    def __init__(self, lanes, steps, width, seed):
        self.shape, self.rng = (lanes, steps, width), np.random.Generator(np.random.SFC64(seed))

    def draw(self):
        return self.rng.standard_normal(self.shape, dtype=np.float32)


def _project(phi):
    lengths = np.sqrt(np.einsum("ij,ij->i", phi, phi))
    return phi / np.maximum(lengths, 1.0)[:, None]


@compiled
def _walk(values, target, phi, sigma, rate, noise):  # pragma: no cover
    """The steps of one lane, in place."""
    for t in range(len(noise)):
        step, square = rate / np.sqrt(t + 1.0), 0.0
        for j in range(len(phi)):
            phi[j] -= step * (2 * (values[j] * phi[j] - target[j]) + sigma * noise[t, j])
        for j in range(len(phi)):
            square += phi[j] * phi[j]
        if square > 1:
            length = np.sqrt(square)
            for j in range(len(phi)):
                phi[j] /= length


class Basic:
    """Algorithm 1. `sigma` may be given instead of the printed formula's, to have the noise of another number of rows."""

    def __init__(self, size, width, epsilon, delta, steps, lanes, total_delta=1e-6, sigma=None):
        self.sigma = paper.basic_sigma(size, epsilon, delta, steps) if sigma is None else sigma
        self.rate = paper.learning_rate(width, self.sigma)
        self.steps, self.epsilon, self.lanes, self.width = steps, epsilon, lanes, width
        self.book, self.slack = paper.Bookkeeping(), total_delta
        self.each, self.mu2 = (steps - 1) / (self.sigma * size) ** 2, 0.0

    def answer(self, point, A, b, noise):
        """(one answer a lane, iterations a lane); iterations 0 means copied. Noise for more steps than these may be given."""
        del point
        same = np.ones(self.lanes)
        start = np.zeros((self.lanes, self.width))
        values = descend(A, b, start, self.sigma * same, self.rate * same, noise[:, : self.steps - 1])
        self.mu2, self.book = self.mu2 + self.each, self.book.add(self.epsilon)
        return values, np.full(self.lanes, self.steps)

    @property
    def mu(self):
        """Exact total for each lane so far."""
        return np.full(self.lanes, sqrt(self.mu2))

    @property
    def claimed(self):
        """Strong composition of what each answer claims."""
        return np.full(self.lanes, self.book.epsilon(self.slack))


class Adaptive:
    """Algorithms 2 and 3; `only_beta` is the enhanced variant."""

    def __init__(self, size, width, epsilon, delta, steps, lanes, seed, only_beta=False, total_delta=1e-6):
        self.size, self.width, self.steps, self.delta, self.lanes = size, width, steps, delta, lanes
        self.only_beta, self.slack, self.rng = only_beta, total_delta, np.random.default_rng(seed)
        self.step_epsilon = paper.step_epsilon(epsilon, delta, steps)
        self.sigma_min = paper.adaptive_sigma(size, epsilon, delta, steps)
        self.near = paper.reuse_distance(steps)
        self.points, self.sources = np.empty((0, width)), []  # computed ones; sources: which answer each history entry has
        self.answers, self.count = np.empty((64, lanes, width), np.float32), 0  # room for answers, doubled when it is full
        self.mu2, self.books = np.zeros(lanes), [paper.Bookkeeping()] * lanes
        self.betas = []

    def answer(self, point, A, b, noise):
        if self.count:
            distances = np.linalg.norm(self.points - point, axis=1)
            nearest = int(distances.argmin())
            if distances[nearest] <= self.near:
                self.sources.append(nearest)
                return self.answers[nearest], np.zeros(self.lanes, dtype=int)
        values, iterations = self._compute(A, b, noise) if self.count else self._first(A, b, noise)
        self._keep(point, values)
        return values, iterations

    def _keep(self, point, values):
        if self.count == len(self.answers):
            self.answers = np.concatenate([self.answers, np.empty_like(self.answers)])
        self.sources.append(self.count)
        self.points = np.vstack([self.points, point])
        self.answers[self.count] = values
        self.count += 1

    def _first(self, A, b, noise):
        same = np.ones(self.lanes)
        rate, counts = paper.learning_rate(self.width, self.sigma_min), np.full(self.lanes, self.steps - 1)
        start = np.zeros((self.lanes, self.width))
        values = descend(A, b, start, self.sigma_min * same, rate * same, noise[:, : self.steps - 1])
        self._book(self.sigma_min * same, counts, selected=False)
        return values, counts + 1

    def _compute(self, A, b, noise):
        start, beta = self._select(A, b)
        root = sqrt(self.width)
        sigma = np.where(beta <= root * self.sigma_min * (1 + 1e-9), self.sigma_min, beta / root)
        level = beta if self.only_beta else root * sigma
        iterations = np.array([paper.iterations(float(s), self.steps) for s in level])
        rate = np.array([paper.warm_rate(self.width, s, one, self.steps) for s, one in zip(sigma, beta, strict=True)])
        self.betas.append(beta)
        values = descend(A, b, start, sigma, rate, [each[: count - 1] for each, count in zip(noise, iterations, strict=True)])
        self._book(sigma, iterations - 1, selected=True)
        return values, iterations

    def _select(self, A, b):
        """Each lane's start, by the exponential mechanism over its own past answers (copies count again), and the gradient's exact norm there."""
        past = self.answers[: self.count]  # computed × lanes × width
        gaps = past.reshape(-1, self.width) @ A.astype(
            np.float32
        )  # most of the time on texts: thousands of past answers for each query
        gaps -= b.astype(np.float32)
        norms = 2 * np.sqrt(np.einsum("ij,ij->i", gaps, gaps)).reshape(past.shape[:2])
        times = np.bincount(self.sources, minlength=self.count)
        exponents = np.log(times)[:, None] - self.size * self.step_epsilon * norms / 2
        chosen = (exponents + self.rng.gumbel(size=exponents.shape)).argmax(axis=0)
        lanes = np.arange(self.lanes)
        return past[chosen, lanes], norms[chosen, lanes]

    def _book(self, sigma, counts, selected):
        self.mu2 = self.mu2 + counts / (sigma * self.size) ** 2 + selected * gdp.mu_of_pure(self.step_epsilon) ** 2
        for i, (s, count) in enumerate(zip(sigma, counts, strict=True)):
            book = self.books[i].add(self.step_epsilon) if selected else self.books[i]
            each = paper.gradient_epsilon(self.size, float(s), self.delta, self.steps)
            self.books[i] = book.add(each, self.delta / (2 * self.steps), int(count))

    @property
    def mu(self):
        return np.sqrt(self.mu2)

    @property
    def claimed(self):
        return np.array([book.epsilon(self.slack) for book in self.books])
