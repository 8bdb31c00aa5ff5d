"""The paper's own formulas, to the letter, for reproduction and comparison. Logarithms are natural.

*Model Explanations with Differential Privacy* (Patel, Shokri, Zick). Their noise is 17 to 20 times larger than the same claim
needs (SPEC §5), and their adaptive parameters read the exact gradient norm (SPEC §9.1): nothing here is a default.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import e, expm1, log, sqrt
from typing import Any


def basic_sigma(size: int, epsilon: float, delta: float, steps: int) -> float:
    """Algorithm 1, line 1: σ = √(16 T ln(e + √T ε/δ) ln(T/δ)) / (m ε)."""
    return sqrt(16 * steps * log(e + sqrt(steps) * epsilon / delta) * log(steps / delta)) / (size * epsilon)


def step_epsilon(epsilon: float, delta: float, steps: int) -> float:
    """Algorithm 2: ε_ite = ε_min / √(8 T ln(2/δ_min))."""
    return epsilon / sqrt(8 * steps * log(2 / delta))


def adaptive_sigma(size: int, epsilon: float, delta: float, steps: int) -> float:
    """Algorithm 2: σ_min = √(2 ln(2.5 T/δ_min)) / (m ε_ite)."""
    return sqrt(2 * log(2.5 * steps / delta)) / (size * step_epsilon(epsilon, delta, steps))


def is_exhausted(epsilon_spent: float, delta_spent: float, epsilon: float, delta: float) -> bool:
    """Algorithm 2's test after each computed answer, which is reported only if it fails: ε_spent > ε or δ_spent ≥ δ."""
    return epsilon_spent > epsilon or delta_spent >= delta


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


def iterations(level: float, steps: int) -> int:
    """The theorem on the number of iterations: T' = s^(1 - 1/(2a)) T with a = ln(1/s)/ln ln T if a > 1/2, else T; to the nearest, at least 2.

    Since s = (ln T)^-a, this is min(T, s √(ln T) T). Adaptive takes s = max(β, √n σ_min), enhanced takes s = β.
    """
    if steps < 3 or level >= 1:
        return steps
    a = log(1 / level) / log(log(steps)) if level > 0 else float("inf")
    fraction = level ** (1 - 1 / (2 * a)) if a > 0.5 else 1.0
    return min(max(round(fraction * steps), 2), steps)


def warm_rate(dimension: int, sigma: float, beta: float, steps: int) -> float:
    """The initialisation-dependent bound's step constant: c_η² = 2/(q + √(q² + 12 nσ² ln T)), q = nσ² + β²; step t uses c_η/√t."""
    noise = dimension * sigma * sigma
    q = noise + beta * beta
    return sqrt(2 / (q + sqrt(q * q + 12 * noise * log(steps))))


def gradient_epsilon(size: int, sigma: float, delta: float, steps: int) -> float:
    """The ε of one noisy gradient at δ/(2T), by the bound that σ_min comes from: √(2 ln(2.5 T/δ)) / (m σ)."""
    return sqrt(2 * log(2.5 * steps / delta)) / (size * sigma)


@dataclass(frozen=True, slots=True)
class Bookkeeping:
    """Algorithm 2's running (ε_spent, δ_spent): the sums over single releases that strong composition needs."""

    squares: float = 0.0  # Σ ε²
    products: float = 0.0  # Σ ε(e^ε - 1)
    deltas: float = 0.0  # Σ δ

    def add(self, epsilon: float, delta: float = 0.0, count: int = 1) -> Bookkeeping:
        return Bookkeeping(
            self.squares + count * epsilon * epsilon,
            self.products + count * epsilon * expm1(epsilon),
            self.deltas + count * delta,
        )

    def epsilon(self, slack: float) -> float:
        """The ε that `strong_composition` gives for everything added."""
        return sqrt(2 * log(1 / slack) * self.squares) + self.products

    def to_dict(self) -> dict[str, Any]:
        return {"squares": self.squares, "products": self.products, "deltas": self.deltas}
