"""Randomness: the cryptographic source that private answers need, and a seeded one for tests and experiments."""

from dpexplain.noise.secure import SecureNoise as SecureNoise
from dpexplain.noise.seeded import SeededNoise as SeededNoise
