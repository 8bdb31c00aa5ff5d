"""Noise that is wrong on purpose: what a statistical test must notice."""


class Scaled:
    """A mutant: every normal is too small (or too large) by a factor."""

    secure = False

    def __init__(self, noise, factor):
        self.noise, self.factor = noise, factor

    def standard_normal(self, size):
        return self.factor * self.noise.standard_normal(size)
