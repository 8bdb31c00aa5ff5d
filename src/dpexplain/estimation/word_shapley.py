"""Shapley values of a text's words against background texts, from a model that can be asked about texts made of some words of each.

Players are the words of a vocabulary, and the rest of the text as one more. In the game with background text x, a word in which x and the text z agree
adds nothing, so only the words that differ join, in one order of the text's own and its reverse (Covert & Lee 2021); the rest joins too, as x has none.
With q_j the share of background texts that differ from z in word j, and c_j the mean of what it adds to those of a subsample that do (texts that
have the word and texts that do not are two strata, where both differ from z),

    φ_j = q_j c_j + (V_j/ΣV)(f(z) - Σ w f(x) - Σ q c),

because q and the average answer Σ w f(x) are known from all background texts: ratio estimates, and what they miss of the sum is shared out by their
variances V_j = q_j² s_j²/n_j (Deming & Stephan 1940), s_j² that of what the word adds, n_j the effective number of texts.

Errors have three parts: V, reduced by the constraint of the known sum; noise of the word's own released frequency, which moves q_j, c_j² times the
frequency's variance; and τ² Var φ_j(x), for background texts that are not distributed as
the private ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.uniforms import Uniforms

Flags: TypeAlias = NDArray[np.bool_]
Positions: TypeAlias = NDArray[np.intp]

Worth: TypeAlias = Callable[[Positions, Flags], Vector]
"""(background texts, players that joined, (k, n + 1)) → the model's answers."""

_PRIOR = 2.0  # texts' worth of evidence that a word adds as variable an amount as all words do


@dataclass(frozen=True, slots=True, eq=False)
class WordBackground:
    """Background texts as the words they have, (N, n), with weights that sum to one and the model's answers there."""

    words: Flags
    weights: Vector
    answers: Vector
    frequency_error: float
    bias: float  # τ²

    @property
    def base(self) -> float:
        return float(self.weights @ self.answers)

    def base_error(self) -> float:
        """The error of the average answer: drawing the texts, the frequencies' noise, bias."""
        centred = self.answers - self.base
        share = self.weights @ self.words
        spread = np.maximum(share * (1 - share), self.frequency_error**2)
        slopes = ((self.weights * centred) @ self.words) / spread
        variance = self.bias * float(self.weights @ np.square(centred))
        return float(np.sqrt(variance + self.frequency_error**2 * float(slopes @ slopes)))

    def differs(self, has: Flags, repeated: Flags) -> Flags:
        """Which players each background text and a text that has these words do not agree in, (N, n + 1); the last is the rest.

        A word that is repeated is never the same as in a background text, which has each word once.
        """
        return np.column_stack([(self.words != has[:-1]) | repeated[:-1], np.broadcast_to(has[-1], len(self.words))])

    def explain(self, worth: Worth, texts: Positions, has: Flags, repeated: Flags, answer: float) -> tuple[Vector, Vector]:
        """(values, standard errors) of the n words and the rest, for a text that has the words `has`; `texts` are the positions of the subsample."""
        differs = self.differs(has, repeated)
        added = walk(worth, texts, differs[texts], self.answers[texts], answer)
        present = np.column_stack([self.words, np.zeros(len(self.words), dtype=np.bool_)])
        strata = [self._stratum(added, differs & (present == one), texts) for one in (False, True)]
        values, drawn, noise, varies = (one + other for one, other in zip(*strata, strict=True))
        everything = max(float(drawn.sum()), 1e-300)
        values = values + drawn / everything * (answer - self.base - float(values.sum()))
        return values, np.sqrt(drawn * (1 - drawn / everything) + noise + self.bias * varies)

    def _stratum(self, added: Matrix, inside: Flags, texts: Positions) -> tuple[Vector, Vector, Vector, Vector]:
        """(q c, V, variance by noise, variance over the background) of each player, among the background texts that are `inside`."""
        share, weights = self.weights @ inside, inside[texts] * self.weights[texts, None]
        sums = weights.sum(axis=0)
        count = np.divide(np.square(sums), np.square(weights).sum(axis=0), out=np.zeros_like(sums), where=sums > 0)
        known = np.maximum(sums, 1e-300)
        mean, square = (weights * added).sum(axis=0) / known, (weights * np.square(added)).sum(axis=0) / known
        typical = float(count @ square) / max(float(count.sum()), 1.0)
        spread = (count * np.maximum(square - np.square(mean), 0.0) + _PRIOR * typical) / (np.maximum(count - 1, 0.0) + _PRIOR)
        drawn = np.square(share) * spread / np.maximum(count, 1.0) * (share > 0)
        own = np.append(np.full(len(share) - 1, self.frequency_error), 0.0)
        varies = np.maximum(share * (np.square(mean) + spread) - np.square(share * mean), 0.0)
        return share * mean, drawn, np.square(own * mean) * (share > 0), varies


def walk(worth: Worth, texts: Positions, differs: Flags, at_texts: Vector, answer: float) -> Matrix:
    """What each player that differs adds in the game with each of the texts, (texts, players), by an order and its reverse."""
    found, players = np.zeros(differs.shape), differs.shape[1]
    uniforms = Uniforms().take(players * len(texts)).reshape(len(texts), players)
    joining = [np.flatnonzero(row)[np.argsort(u[row], kind="stable")] for row, u in zip(differs, uniforms, strict=True)]
    coalitions = [_coalitions(order, players) for order in joining]
    lengths = [len(part) for part in coalitions]
    inner = worth(np.repeat(texts, lengths), np.concatenate(coalitions)) if sum(lengths) else np.empty(0)
    for i, (order, part) in enumerate(zip(joining, np.split(inner, np.cumsum(lengths)[:-1]), strict=True)):
        half = len(part) // 2
        if len(order):
            forth, back = (np.diff(np.concatenate([[at_texts[i]], one, [answer]])) for one in (part[:half], part[half:]))
            found[i, order] = (forth + back[::-1]) / 2
    return found


def _coalitions(order: Positions, players: int) -> Flags:
    """All but the empty and the full coalition of those who join in this order, then the same for its reverse."""
    steps = max(len(order) - 1, 0)
    joined = np.zeros((2, steps, players), dtype=np.bool_)
    before = np.tri(steps, len(order), dtype=np.bool_)
    joined[0][:, order], joined[1][:, order[::-1]] = before, before
    return joined.reshape(-1, players)
