"""A public probability for every short text, and the thresholds it gives an unbounded histogram. Proof: `proofs/discover.md`.

P is a mixture of three public models: texts that the caller lists as candidates, numbers (an optional sign and digits), and words (letters by
their frequency in English, other characters rarer). It decides only how much evidence a text needs, never whether it is private: a text that
nobody has passes its threshold with probability η·P(text) by noise alone, so all of them together are at most η in expectation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from math import exp, log, log1p
from string import ascii_lowercase, ascii_uppercase, digits

import numpy as np
import scipy

from dpexplain.core.arrays import Vector

LONGEST = 64  # characters; longer texts are not counted as categories
CODE_POINTS = 1 << 21
LETTERS = (
    8.2,
    1.5,
    2.8,
    4.3,
    12.7,
    2.2,
    2.0,
    6.1,
    7.0,
    0.2,
    0.8,
    4.0,
    2.4,
    6.7,
    7.5,
    1.9,
    0.1,
    6.0,
    6.3,
    9.1,
    2.8,
    1.0,
    2.4,
    0.2,
    2.0,
    0.1,
)
SHARES = (("lower", 0.72), ("upper", 0.10), ("digits", 0.05), ("joints", 0.10), ("other", 0.03))  # of the characters of a word
JOINTS = " -_/&."
Uniform = Callable[[int], Vector]
Chance = Callable[[float], float]


def _characters() -> dict[str, float]:
    """The probability of each common character of a word; every other code point shares what is left alike."""
    share = dict(SHARES)
    lower = {one: share["lower"] * part / sum(LETTERS) for one, part in zip(ascii_lowercase, LETTERS, strict=True)}
    upper = {one: share["upper"] * part / sum(LETTERS) for one, part in zip(ascii_uppercase, LETTERS, strict=True)}
    return lower | upper | dict.fromkeys(digits, share["digits"] / 10) | dict.fromkeys(JOINTS, share["joints"] / len(JOINTS))


CHARACTERS = _characters()
RARE = 1.0 - sum(CHARACTERS.values())
_LOG_RARE = log(RARE / CODE_POINTS)
_LOG = {one: log(part + RARE / CODE_POINTS) for one, part in CHARACTERS.items()}


def _log_length(length: int) -> float:
    """log of 1/(l(l+1)), made to sum to one over 1 … LONGEST."""
    return -log(length * (length + 1)) - log(LONGEST / (LONGEST + 1))


def _tail(threshold: float) -> float:
    """P(N(0, 1) > threshold)."""
    return float(scipy.special.ndtr(-threshold))


@dataclass(frozen=True, slots=True)
class TextPrior:
    """P over texts of 1 to LONGEST characters; `candidates` share half of it where there are any."""

    candidates: tuple[str, ...] = ()
    expected_spurious: float = 0.01  # η
    _known: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_known", frozenset(self.candidates))

    def log_probability(self, text: str) -> float:
        """log P(text), for a text of 1 to LONGEST characters."""
        body = text.removeprefix("-")
        parts = [sum(_LOG.get(one, _LOG_RARE) for one in text) + _log_length(len(text)) + log(0.5)]
        if body and all(one in digits for one in body):
            sign = log(0.1) if len(body) < len(text) else log(0.9)
            parts.append(-len(body) * log(10) + _log_length(len(body)) + sign + log(0.5))
        mixed = float(scipy.special.logsumexp(parts))
        if not self.candidates:
            return mixed
        listed = -log(len(self._known)) if text in self._known else -np.inf
        return float(np.logaddexp(mixed, listed)) + log(0.5)

    def threshold(self, text: str) -> float:
        """T with Φ(-T) = η·P(text): in standard deviations of the noise on one count."""
        return -float(scipy.special.ndtri_exp(self.log_probability(text) + log(self.expected_spurious)))

    def spurious(self, uniform: Uniform, seen: frozenset[str], chance: Chance = _tail) -> list[str]:
        """Texts outside `seen` that noise alone lifts above their thresholds T, each with probability `chance(T)` ≈ η·P, independently.

        A Poisson number of draws from P at rate η(1 + η) dominates the rates -log(1 - chance) that make "at least one draw of this text"
        have that probability; each draw is accepted with the ratio of the two.
        """
        eta = self.expected_spurious
        found: dict[str, None] = {}
        for _ in range(_poisson(eta * (1 + eta), float(uniform(1)[0]))):
            text = self._draw(uniform)
            if text is None:
                continue
            rate = -log1p(-chance(self.threshold(text)))
            accepted = rate / (eta * (1 + eta) * exp(self.log_probability(text)))
            if float(uniform(1)[0]) < accepted and text not in seen:
                found[text] = None
        return list(found)

    def _draw(self, uniform: Uniform) -> str | None:
        """A text drawn from P; None for the share of P that falls on numbers that are not code points."""
        if self.candidates and uniform(1)[0] < 0.5:
            return sorted(self._known)[int(uniform(1)[0] * len(self._known))]
        numeric = uniform(1)[0] < 0.5
        length = _length(float(uniform(1)[0]))
        if numeric:
            body = "".join(str(int(10 * u)) for u in uniform(length))
            return f"-{body}" if uniform(1)[0] < 0.1 else body
        characters = [_character(float(u), uniform) for u in uniform(length)]
        return None if "" in characters else "".join(characters)


def _character(u: float, uniform: Uniform) -> str:
    for one, part in CHARACTERS.items():
        u -= part
        if u < 0:
            return one
    drawn = int(float(uniform(1)[0]) * CODE_POINTS)
    return chr(drawn) if drawn <= sys.maxunicode else ""


def _length(u: float) -> int:
    """The smallest l whose share 1 - 1/(l + 1), scaled to end at LONGEST, reaches u."""
    scaled = u * LONGEST / (LONGEST + 1)
    return min(max(int(np.ceil(1 / (1 - scaled) - 1)), 1), LONGEST)


def _poisson(rate: float, u: float) -> int:
    """A Poisson number by inversion of the distribution function."""
    count, term = 0, exp(-rate)
    total = term
    while u > total and count < 100:
        count += 1
        term *= rate / count
        total += term
    return count
