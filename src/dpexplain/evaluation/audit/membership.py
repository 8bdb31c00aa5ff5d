"""A membership inference attack on explanations of any kind: decides from explanations whether a person was in the data.

The attacker knows the population but not the sample. They draw samples of their own, with and without the person, ask for explanations of each, learn a
likelihood ratio between the two, and apply it to what they were shown: LiRA (Carlini et al. 2022) for numbers that are released instead of a model's
losses, with Gaussian laws of one covariance. Someone who knows every other record, as differential privacy assumes, would do better: `evaluation.audit`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.errors import ParameterError
from dpexplain.evaluation.audit.distinguisher import Distinguisher, stack_transcripts
from dpexplain.mechanisms.ports import Noise
from dpexplain.noise.seeded import SeededNoise

Positions: TypeAlias = NDArray[np.intp]
Explain: TypeAlias = Callable[[Matrix, Vector, int], Vector]
"""(encoded rows, labels, a number that is different each time) → every number that is shown, for whatever questions the attacker likes."""


@dataclass(frozen=True, slots=True, eq=False)
class Membership:
    """Scores of samples with the person and of samples without; larger means "was in"."""

    inside: Vector
    outside: Vector

    @property
    def auc(self) -> float:
        """The chance that a sample with the person scores higher than one without: 1/2 is guessing."""
        below = np.searchsorted(np.sort(self.outside), self.inside, side="left")
        upto = np.searchsorted(np.sort(self.outside), self.inside, side="right")
        return float((below + upto).mean() / 2 / len(self.outside))

    def hits(self, false_alarms: float) -> float:
        """The share of members that are found when at most this share of others is accused."""
        allowed = int(false_alarms * len(self.outside))
        threshold = np.sort(self.outside)[::-1][allowed] if allowed < len(self.outside) else -np.inf
        return float((self.inside > threshold).mean())

    def roc(self) -> tuple[Vector, Vector]:
        """(false alarms, hits) at every threshold."""
        thresholds = np.unique(np.concatenate([self.inside, self.outside, [np.inf]]))[::-1]
        ordered = [np.sort(side) for side in (self.outside, self.inside)]
        false_alarms, hits = (1 - np.searchsorted(side, thresholds, side="left") / len(side) for side in ordered)
        return false_alarms, hits

    @classmethod
    def pool(cls, each: Iterable[Membership]) -> Membership:
        """Attacks on several people together: one threshold for all."""
        every = list(each)
        return cls(np.concatenate([one.inside for one in every]), np.concatenate([one.outside for one in every]))


def membership(
    explain: Explain,
    rows: Matrix,
    labels: Vector,
    person: int,
    *,
    size: int,
    shadows: int = 100,
    guesses: int = 100,
    seed: int = 0,
) -> Membership:
    """Attack `explain` for the membership of row `person` in samples of `size` others from the population `rows`.

    `shadows` samples teach the attack, with and without the person in the same company; `guesses` fresh ones of each kind are guessed. Scores are in
    units of their spread without the person, so that attacks on several people can be pooled. Offline only.
    """
    if not (0 <= person < len(rows) and size >= 1 and shadows >= 20 and guesses >= 1):
        raise ParameterError("person must be a row of the population, size and guesses at least 1, and shadows at least 20")
    noise, draw = SeededNoise(seed), _MembershipDraw(rows, labels, person, size)
    fresh = count(seed * (1 << 20))

    def explain_company(member: bool, company: Positions) -> Vector:
        return explain(*draw.sample(member, company), next(fresh))

    companies = [draw.company(noise) for _ in range(shadows)]
    inside, outside = (stack_transcripts([explain_company(member, company) for company in companies]) for member in (True, False))
    telling, width = Distinguisher.learn_distinguisher(inside, outside), inside.shape[1]
    usual = telling.score(outside)
    spread = float(usual.std()) or 1.0
    scores = [
        telling.score(stack_transcripts([explain_company(member, draw.company(noise)) for _ in range(guesses)], width))
        for member in (True, False)
    ]
    return Membership(*((score - usual.mean()) / spread for score in scores))


@dataclass(frozen=True, slots=True, eq=False)
class _MembershipDraw:
    rows: Matrix
    labels: Vector
    person: int
    size: int

    def company(self, noise: Noise) -> Positions:
        """Positions of `size` others, drawn independently."""
        others = np.delete(np.arange(len(self.rows)), self.person)
        return np.asarray(others[(noise.uniform(self.size) * len(others)).astype(int)])

    def sample(self, member: bool, company: Positions) -> tuple[Matrix, Vector]:
        chosen = np.append(company, self.person) if member else company
        return self.rows[chosen], self.labels[chosen]
