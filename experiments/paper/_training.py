"""A small network trained with differential privacy, in NumPy: noisy gradient descent on all rows, each row's gradient clipped.

One hidden layer, p = sigmoid(w·tanh(Vx)). A row's gradient is an outer product, so its norm is known without forming it,
‖g‖² = (p - y)² (‖tanh‖² + ‖x‖² ‖w·tanh'‖²); clipped to 1, the sum has sensitivity 1. S steps with noise √S/μ(ε, δ) each are (ε, δ)-DP exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt

import numpy as np

from dpexplain import ModelCard
from dpexplain.privacy import gdp

HIDDEN, STEPS, RATE, MOMENTUM = 16, 100, 2.0, 0.8


@dataclass(frozen=True)
class Network:
    """x → ±1. `scale` is public and brings rows to a length near 1."""

    V: np.ndarray
    w: np.ndarray
    scale: float
    card: ModelCard = field(default_factory=lambda: ModelCard(None))

    def __call__(self, rows):
        return np.where(np.tanh(rows @ self.V * self.scale) @ self.w > 0, 1.0, -1.0)

    def accuracy(self, rows, truth):
        return float((self(rows) == truth).mean())


def train(rows, truth, epsilon, delta=1e-5, scale=0.1, seed=0):
    """(ε, δ)-DP for add/remove of a row; epsilon=None trains without noise or clipping."""
    rng = np.random.default_rng(seed)
    V, w = rng.standard_normal((rows.shape[1], HIDDEN)) / sqrt(rows.shape[1]), rng.standard_normal(HIDDEN) / sqrt(HIDDEN)
    noise = 0.0 if epsilon is None else sqrt(STEPS) / gdp.mu(epsilon, delta)
    lengths = scale**2 * np.asarray((rows.multiply(rows) if hasattr(rows, "multiply") else rows * rows).sum(axis=1)).ravel()
    moved = [np.zeros_like(V), np.zeros_like(w)]
    for _ in range(STEPS):
        gradients = _clipped_sums(rows, truth, V, w, scale, lengths, clip=epsilon is not None)
        noisy = [g + noise * rng.standard_normal(g.shape) for g in gradients]
        moved = [MOMENTUM * before + g / len(truth) for before, g in zip(moved, noisy, strict=True)]
        V, w = V - RATE * moved[0], w - RATE * moved[1]
    stated = {"noise_multiplier": noise, "sample_rate": 1.0, "steps": STEPS, "clip": 1.0, "batch": len(truth)}
    return Network(V, w, scale, ModelCard(epsilon, delta, trainer="our own", rows=len(truth), parameters=stated))


def _clipped_sums(rows, truth, V, w, scale, lengths, clip):
    hidden = np.tanh(rows @ V * scale)
    error = 1 / (1 + np.exp(-np.clip(hidden @ w, -30, 30))) - (truth > 0)
    back = w * (1 - hidden**2)
    norms = np.abs(error) * np.sqrt((hidden**2).sum(axis=1) + lengths * (back**2).sum(axis=1))
    kept = error * (np.minimum(1, 1 / np.maximum(norms, 1e-12)) if clip else 1)
    return scale * (rows.T @ (kept[:, None] * back)), hidden.T @ kept
