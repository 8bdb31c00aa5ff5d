"""The paper's own formulas, to the letter, for reproduction and comparison. Logarithms are natural.

*Model Explanations with Differential Privacy* (Patel, Shokri, Zick). Their noise is 17 to 20 times larger than the same claim
needs (SPEC §5), and their adaptive parameters read the exact gradient norm (SPEC §9.1): nothing here is a default.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import e, expm1, log, sqrt


def basic_sigma(size: int, epsilon: float, delta: float, steps: int) -> float:
    """Algorithm 1, line 1: σ = √(16 T ln(e + √T ε/δ) ln(T/δ)) / (m ε)."""
    return sqrt(16 * steps * log(e + sqrt(steps) * epsilon / delta) * log(steps / delta)) / (size * epsilon)


def step_epsilon(epsilon: float, delta: float, steps: int) -> float:
    """Algorithm 2: ε_ite = ε_min / √(8 T ln(2/δ_min))."""
    return epsilon / sqrt(8 * steps * log(2 / delta))


def adaptive_sigma(size: int, epsilon: float, delta: float, steps: int) -> float:
    """Algorithm 2: σ_min = √(2 ln(2.5 T/δ_min)) / (m ε_ite)."""
    return sqrt(2 * log(2.5 * steps / delta)) / (size * step_epsilon(epsilon, delta, steps))


def reuse_distance(steps: int) -> float:
    """Algorithm 2: answers within d = ln T/√T of a computed one are copied."""
    return log(steps) / sqrt(steps)


def learning_rate(dimension: int, sigma: float, c: float = 1.0) -> float:
    """Theorem 3.2's step constant 1/G with G² = c² + nσ²; step t uses it over √t."""
    return 1 / sqrt(c * c + dimension * sigma * sigma)


def strong_composition(epsilons: Sequence[float], slack: float) -> float:
    """ε̃ of k mechanisms together: √(2 ln(1/δ̃) Σε²) + Σ ε(e^ε - 1); their δs and δ̃ = `slack` add up.

    Dwork, Rothblum & Vadhan 2010, Thm III.3, with unequal ε. It holds for parameters fixed in advance only (SPEC §9.3).
    """
    squares = sum(v * v for v in epsilons)
    return sqrt(2 * log(1 / slack) * squares) + sum(v * expm1(v) for v in epsilons)
