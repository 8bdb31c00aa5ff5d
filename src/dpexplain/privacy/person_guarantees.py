"""The guarantee of a person, by where their records are: in the explanation data, in the model's training data, or in both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpexplain.errors import ParameterError
from dpexplain.privacy.budget import Guarantee
from dpexplain.privacy.model_card import ModelCard
from dpexplain.privacy.training import AmplifiedGuarantee, CombinedGuarantee, PostProcessedGuarantee, Unconditional, guarantee

Training = PostProcessedGuarantee | AmplifiedGuarantee | Unconditional
_NOTHING = "nothing can be promised: the model's own answers were published, and its training was not private"
_UNKNOWN = "nothing is promised: no model card says how the model was trained"


@dataclass(frozen=True, slots=True)
class PersonGuarantees:
    """Three statements. `training` and `both` are None where nothing can be guaranteed, and the printed sentence gives the reason."""

    explained: Guarantee
    training: Training | None
    both: CombinedGuarantee | None
    card: ModelCard | None = None

    @classmethod
    def of(cls, explained: Guarantee, rows: int, card: ModelCard | None) -> PersonGuarantees:
        """The statements that follow from what was spent on the explanation data, their public size, and the model's card."""
        found = _training_guarantee(explained, rows, card)
        both = None if found is None or not explained.private else CombinedGuarantee(found, explained)
        return cls(explained, found, both, card)

    def __str__(self) -> str:
        none = _UNKNOWN if self.card is None else _NOTHING
        lines = [f"In the explanation data only: {self.explained}"]
        trained = f"{none}." if self.training is None else str(self.training)
        by_card = "" if self.card is None else f" {self.card}"
        lines += [f"In the model's training data only: {trained}{by_card}"]
        if self.both is None:
            why = none if self.training is None else "nothing is promised, as for the explanation data"
            return "\n".join([*lines, f"In both: {why}."])
        return "\n".join([*lines, f"In both: {self.both}"])

    def to_dict(self) -> dict[str, Any]:
        return {
            "explanation": self.explained.to_dict(),
            "training": None if self.training is None else self.training.to_dict(),
            "both": None if self.both is None else self.both.to_dict(),
            "model_card": None if self.card is None else self.card.to_dict(),
            "statement": str(self),
        }


def _training_guarantee(explained: Guarantee, rows: int, card: ModelCard | None) -> Training | None:
    if card is None:
        return None
    try:
        return guarantee(explained, rows, model_epsilon=card.epsilon, model_delta=card.delta)
    except ParameterError:  # a model that is not private, and answers of its own were published
        return None
