"""Cryptographic noise: the only source a service accepts.

Every block of at most `BLOCK` draws has its own AES-256 key and counter, fresh from the operating system. Nothing is stored between
calls, so there is no state that threads could race for, a forked child inherit or a pickle replay; and no key ever encrypts more
than 16·BLOCK = 2¹⁸ bytes, so that a keystream's lack of repeated blocks distinguishes it from randomness by less than 2⁻¹⁰⁰.
"""

from __future__ import annotations

import os
from typing import Any, ClassVar, NoReturn

import numpy as np
import scipy
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR
from numpy.typing import NDArray

from dpexplain.core.arrays import Vector

BLOCK = 1 << 14
"""Draws per key; also small enough for every intermediate array to stay in the processor's cache."""

_RANGE_SPLIT = np.exp(-2.0)  # where `ndtri` changes from its central rational function to the slower one for tails


class SecureNoise:
    """Standard normals and uniforms from AES-256 in counter mode, keyed by the operating system. There is no seed."""

    __slots__ = ()

    secure: ClassVar[bool] = True  # these draws can be neither predicted nor replayed

    def uniform(self, size: int) -> Vector:
        """`size` uniforms in (0, 1), none below 2⁻¹²⁸, each within a factor 1 ± 2⁻⁵¹ of the real number that it represents.

        The last holds down to 2⁻⁷⁵: small values are as precise as large ones, so tails computed from them are right.
        """
        out = np.empty(size)
        for block in _blocks(out):
            block[:] = uniforms(*_words(block.size))
        return out

    def standard_normal(self, size: int) -> Vector:
        """`size` standard normals by inversion, right in the tails up to |N| = 10 and never above 13.2."""
        out = np.empty(size)
        for block in _blocks(out):
            block[:] = normals(*_words(block.size))
        return out

    def auxiliary_normal(self, size: int) -> Vector:
        """`size` standard normals that protect nothing, from an ordinary generator with a fresh seed: a rehearsal of noise needs thousands."""
        return np.random.default_rng().standard_normal(size)

    def __repr__(self) -> str:
        return "SecureNoise()"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(
            "SecureNoise cannot be copied or pickled, because a draw could then be used twice. "
            "Create a new SecureNoise() in the process that releases"
        )


def uniforms(high: NDArray[np.uint64], low: NDArray[np.uint64]) -> Vector:
    """(high + (⌊low/2⌋ + ½)·2⁻⁶³)·2⁻⁶⁴: 127 random bits as a float; the lowest bit of `low` is left for a sign.

    Where float64 would round up to 1 the largest number below 1 is taken, so that the interval stays open.
    """
    fraction = ((low >> np.uint64(1)) + 0.5) * 2.0**-63
    return np.minimum((high + fraction) * 2.0**-64, 1.0 - 2.0**-53)


def normals(high: NDArray[np.uint64], low: NDArray[np.uint64]) -> Vector:
    """±Φ⁻¹(U/2): the lower half by inversion, where floats are dense, and a random sign."""
    sign = 1.0 - 2.0 * (low & np.uint64(1))
    return sign * lower_quantile(uniforms(high, low) / 2.0)


def lower_quantile(p: Vector) -> Vector:
    """Φ⁻¹(p), computed in a time that does not depend on the result.

    `ndtri` needs about three times as long in the tails. Each argument is therefore paired with a dummy from the other range, and
    every draw pays for both.
    """
    dummy = np.where(p > _RANGE_SPLIT, 0.05, 0.4)
    quantiles: Vector = scipy.special.ndtri(np.concatenate((p, dummy)))
    return quantiles[: p.size]


def _words(count: int) -> NDArray[np.uint64]:
    """Two rows of `count` random 64-bit words, under a key that is used for nothing else."""
    keystream = Cipher(AES256(os.urandom(32)), CTR(os.urandom(16))).encryptor()
    return np.frombuffer(keystream.update(bytes(16 * count)), dtype=np.uint64).reshape(2, count)


def _blocks(out: Vector) -> list[Vector]:
    """Views of `out` that one key each will fill."""
    return [out[start : start + BLOCK] for start in range(0, out.size, BLOCK)]
