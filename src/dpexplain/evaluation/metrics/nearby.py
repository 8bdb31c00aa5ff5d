"""Valid records near a query, on which faithfulness and stability are measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.domain.interface import Block, DomainLike
from dpexplain.evaluation.baselines.inputs import on_levels
from dpexplain.noise.seeded import SeededNoise

Mask = NDArray[np.bool_]
"""One entry for each feature."""


@dataclass(frozen=True, slots=True)
class Nearby:
    """How records near a query are drawn, feature by feature (OpenXAI's perturbation, with categories kept whole).

    A number gets normal noise of deviation `scale`, clamped to [0, 1]; a yes/no feature flips, and a category changes to another one, with
    probability `flip`.
    """

    scale: float = 0.1
    flip: float = 0.3
    samples: int = 200
    seed: int = 0

    def draw(self, point: Vector, domain: DomainLike, movable: Mask | None = None) -> Matrix:
        """(samples, n); features that are not `movable` stay as they are."""
        noise, out = SeededNoise(self.seed), np.tile(point, (self.samples, 1))
        for i, block in enumerate(domain.blocks):
            # also where unused: the others' draws stay the same
            drawn = self._feature(point[block.start : block.stop], block, noise)
            if movable is None or movable[i]:
                out[:, block.start : block.stop] = drawn
        return on_levels(out, domain)

    def _feature(self, own: Vector, block: Block, noise: SeededNoise) -> Matrix:
        if block.kind == "numeric":
            return np.clip(own + self.scale * noise.standard_normal(self.samples)[:, None], 0.0, 1.0)
        changed, place = noise.uniform(self.samples) < self.flip, noise.uniform(self.samples)
        if block.kind == "binary":
            return np.where(changed[:, None], 1.0 - own, own)
        others = np.flatnonzero(own == 0)
        if len(others) == 0:
            return np.tile(own, (self.samples, 1))
        chosen = np.eye(len(own))[others[np.minimum((place * len(others)).astype(int), len(others) - 1)]]
        return np.where(changed[:, None], chosen, own)
