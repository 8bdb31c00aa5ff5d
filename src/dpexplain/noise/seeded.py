"""Reproducible noise for tests and experiments. Never in production."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dpexplain.arguments import quote
from dpexplain.core.arrays import Vector
from dpexplain.errors import ParameterError


class SeededNoise:
    """Noise that repeats for the same seed, from NumPy's Philox generator.

    Never in production: whoever knows or guesses the seed subtracts the noise and reads the private statistic. Its
    `secure` is False, and a service refuses it.
    """

    __slots__ = ("_generator", "_seed")

    def __init__(self, seed: int) -> None:
        if not (isinstance(seed, int | np.integer) and seed >= 0):
            raise ParameterError(f"seed must be a non-negative integer, got {quote(seed)}: for real releases use SecureNoise()")
        self._seed = int(seed)
        self._generator = np.random.Generator(np.random.Philox(self._seed))

    secure: ClassVar[bool] = False

    def uniform(self, size: int) -> Vector:
        """`size` uniforms in (0, 1); NumPy's 0 becomes 2⁻⁵⁴."""
        return np.maximum(self._generator.random(size), 2.0**-54)

    def standard_normal(self, size: int) -> Vector:
        """`size` standard normals."""
        return self._generator.standard_normal(size)

    def auxiliary_normal(self, size: int) -> Vector:
        """The same."""
        return self.standard_normal(size)

    def __repr__(self) -> str:
        return f"SeededNoise({self._seed})"
