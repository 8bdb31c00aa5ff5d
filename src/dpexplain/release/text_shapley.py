"""SHAP values of the words of a text: what each adds to a model's answer, compared with background texts of a release. Free, any number of times.

A release of texts has no reference records, but it has a few thousand public points with the released word frequencies and pair moments (`MomentPlanes`):
texts as sets of words. The model is shown texts made of two parts: of the text in question the words that joined, in their places, with everything
that is not in the vocabulary as one more player; then the background's words, in the vocabulary's order. With all players joined it is the text
itself, with none the background text, so values add up to f(text) minus the average answer over the background.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dpexplain.answers.contributions_batch import ContributionsBatch
from dpexplain.core.answer_scale import AnswerScale
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.uniforms import Uniforms
from dpexplain.domain import TextDomain
from dpexplain.estimation.word_shapley import Flags, Positions, WordBackground
from dpexplain.privacy.budget import Guarantee
from dpexplain.progress import with_bar
from dpexplain.registration.labels import Labeller
from dpexplain.release.reference_shapley import FEWEST_RECORDS, TRAINING, checked_count

if TYPE_CHECKING:
    from dpexplain.release.release import Release

OTHER_WORDS = "(other words)"
QUESTIONS = 1 << 15  # about how many the model is asked for one text
MOST_TEXTS = 1 << 10
_TOGETHER = 1 << 11  # texts that the model is shown at once
_FAR = 1 << 48  # a position in the public sequence that orders do not reach
_MANY = 4  # texts from which a progress bar is shown


@dataclass(frozen=True, slots=True, eq=False)
class WordReference:
    """One model and the background texts that it is compared on: prepared once, for any number of texts."""

    domain: TextDomain
    labeller: Labeller
    background: WordBackground
    same_model: bool  # whether it is the one that labelled the release

    def explain(
        self, texts: Sequence[str], scale: AnswerScale, guarantee: Guarantee, fingerprint: str | None, records: int | None = None
    ) -> ContributionsBatch:
        """Contributions of each text's words; `records` is how many background texts to compare with."""
        # One question for all: a model that cannot answer raises before anything is computed.
        answers = ask_texts(self.labeller, self.domain, list(texts))
        each = with_bar(range(len(texts)), "explaining", len(texts)) if len(texts) >= _MANY else range(len(texts))
        shown = [ShownText.of(text, self.domain) for text in texts]
        chosen = [self._positions(text, records) for text in shown]
        found = [self._explain_one(shown[i], chosen[i], float(answers[i])) for i in each]
        size = len(self.domain.names) + 1
        values, errors = (np.array([one[k] for one in found]).reshape(-1, size) for k in (0, 1))
        own, answer = scale.slopes(values), scale.answers(answers)
        return ContributionsBatch(
            names=(*self.domain.names, OTHER_WORDS),
            values=own,
            base=answer - own.sum(axis=1),
            answer=answer,
            error=scale.slopes(errors),
            scale=scale,
            record=[tuple(bool(flag) for flag in text.has) for text in shown],
            base_error=np.full(len(texts), float(scale.slopes(self.background.base_error()))),
            answer_error=np.zeros(len(texts)),
            guarantee=guarantee,
            titles=(*self.domain.titles, OTHER_WORDS),
            details=self._details([len(one) for one in chosen]) | {"fingerprint": fingerprint},
        )

    def _explain_one(self, text: ShownText, chosen: Positions, answer: float) -> tuple[Vector, Vector]:
        return self.background.explain(partial(self._ask_mixtures, text), chosen, text.has, text.repeated, answer)

    def _ask_mixtures(self, text: ShownText, chosen: Positions, joined: Flags) -> Vector:
        words = self.background.words
        mixtures = [text.mix(words[i], one) for i, one in zip(chosen.tolist(), joined, strict=True)]
        return ask_texts(self.labeller, self.domain, mixtures)

    def _positions(self, text: ShownText, records: int | None) -> Positions:
        """The background texts to walk from: as many as asked for, or as the questions allow. At random, as they are points of a lattice."""
        available = len(self.background.words)
        if records is None:
            players = self.background.differs(text.has, text.repeated).mean(axis=0).sum()
            records = int(np.clip(QUESTIONS / max(2 * (players - 1), 1), FEWEST_RECORDS, MOST_TEXTS))
        return np.argsort(Uniforms(_FAR).take(available), kind="stable")[: checked_count(records, available)]

    def _details(self, records: list[int]) -> dict[str, Any]:
        return {
            "quantity": "shapley",
            "source": "words",
            "method": "paired orders",
            "records": max(records, default=0),
            "same_model": self.same_model,
            "training_data": TRAINING.format(asked="text", background="background texts"),
        }


@dataclass(frozen=True, slots=True, eq=False)
class ShownText:
    """A text cut into words of the vocabulary and what is between them, so that some of its words can be left out."""

    pieces: tuple[tuple[int, str], ...]  # (position in the vocabulary, or -1; characters), in order
    has: Flags  # the n words, and last whether there is anything else
    repeated: Flags  # words that it has more than once: a background text has each once
    vocabulary: Sequence[str]

    @classmethod
    def of(cls, text: str, domain: TextDomain) -> ShownText:
        pieces, counts, reached = [], np.zeros(domain.width + 1, dtype=np.int64), 0
        for start, stop, word in domain.spans(text):
            j = domain.position(word)
            pieces += [(-1, text[reached:start]), (j, text[start:stop])]
            counts[j] += 1
            reached = stop
        pieces.append((-1, text[reached:]))
        counts[-1] = any(part.strip() for j, part in pieces if j < 0)
        return cls(tuple(piece for piece in pieces if piece[1]), counts > 0, counts > 1, domain.vocabulary)

    def mix(self, background: Flags, joined: Flags) -> str:
        """This text with the players that joined, followed by the background's words that did not.

        A word that both have once keeps its place, joined or not.
        """
        kept = joined[:-1] | (background & ~self.repeated[:-1])
        stays = np.append(kept & self.has[:-1], joined[-1]).tolist()
        own = [part for j, part in self.pieces if stays[j]]
        added = [self.vocabulary[j] for j in np.flatnonzero(background & ~joined[:-1] & ~np.array(stays[:-1])).tolist()]
        return " ".join(["".join(own) if stays[-1] else " ".join(own), *added]).strip()


def prepare_words(release: Release, labeller: Labeller) -> WordReference:
    """Ask the model about the release's background texts; DataError where it cannot answer."""
    domain, planes = release.domain, release.planes
    if not isinstance(domain, TextDomain):
        raise TypeError("SHAP values of words need a release of texts")
    words = planes.points > 0.5
    weights = planes.inverse_weight * planes.raked
    known = release.labeller
    same = known is not None and labeller.model is known.model and labeller.target == known.target
    vocabulary = np.array(domain.vocabulary, dtype=object)
    answers = ask_texts(labeller, domain, [" ".join(vocabulary[text]) for text in words])
    background = WordBackground(words, weights / weights.sum(), answers, release.solver.noise.s1, pair_miss(release))
    return WordReference(domain, labeller, background, same)


def ask_texts(labeller: Labeller, domain: TextDomain, texts: list[str]) -> Vector:
    """Labels of texts, shown as the registered ones were."""
    column, starts = domain.column or "text", range(0, len(texts), _TOGETHER)
    parts = [np.array(texts[start : start + _TOGETHER], dtype=object) for start in starts]
    return np.concatenate([labeller({column: part}) for part in parts] or [np.empty(0)])


def pair_miss(release: Release) -> float:
    """τ²: the mean squared difference between correlations of words in the background texts and the released ones, beyond that of a sample."""
    solver, planes = release.solver, release.planes
    released = (solver.eigenvectors * solver.eigenvalues) @ solver.eigenvectors.T
    if len(released) < 2:
        return 0.0
    scale = np.sqrt(np.diag(released))
    miss: Matrix = (np.cov(planes.points.T, aweights=planes.raked) - released) / np.outer(scale, scale)
    return max(float(np.square(miss[~np.eye(len(miss), dtype=bool)]).mean()) - 1 / len(planes.points), 0.0)
