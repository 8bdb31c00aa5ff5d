"""A model card: the differential privacy guarantee of a model's training, with the parameters from which it can be computed again.

Whoever trains the model writes it (JSON); `PrivateData(…, model_card=…)` reads it, and `data.guarantees` then states the guarantee of a person
whose record trained the model, is among the explanation data, or both (`proofs/training.md`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

from dpexplain.arguments import is_number, quote, stat_file
from dpexplain.errors import ParameterError

FORMAT, VERSION = "dpexplain.model_card", 1
_REMEDY = 'Write {"epsilon": 2.0, "delta": 1e-5, …}, or "epsilon": null where training was not private'


@dataclass(frozen=True, slots=True)
class ModelCard:
    """(ε̂, δ̂) of a model's training, for one record of its training data added or removed unless `protects` says otherwise.

    `epsilon=None` states that training was not private. `trainer` names the software, `rows` the number of training records, and `parameters` what the
    accountant was given: noise multiplier, sampling rate, steps, clipping norm, name of the accountant. They are stated, not checked.
    """

    epsilon: float | None
    delta: float = 0.0
    protects: str = "one record of the training data, added or removed"
    trainer: str = ""
    rows: int | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.epsilon is not None and not (is_number(self.epsilon) and isfinite(self.epsilon) and self.epsilon >= 0):
            raise ParameterError(
                f"a model card's epsilon must be a number of at least 0, or null, got {quote(self.epsilon)}. {_REMEDY}"
            )
        if not (is_number(self.delta) and 0 <= self.delta < 1):
            raise ParameterError(f"a model card's delta must be a number from 0 to below 1, got {quote(self.delta)}. {_REMEDY}")
        object.__setattr__(self, "parameters", dict(self.parameters))

    @property
    def private(self) -> bool:
        return self.epsilon is not None

    def __str__(self) -> str:
        by = f" by {self.trainer}" if self.trainer else ""
        if self.epsilon is None:
            return f"The model was trained{by} without differential privacy, as its model card says."
        claim = f"(ε̂={self.epsilon:g}, δ̂={self.delta:g})-differential privacy for {self.protects}"
        return f"The model was trained{by} with {claim}, as its model card says."

    def to_dict(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "version": VERSION,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "protects": self.protects,
            "trainer": self.trainer,
            "rows": self.rows,
            "parameters": dict(self.parameters),
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> ModelCard:
        """Read back what `to_dict` wrote. Fields of other model cards, unknown here, are refused rather than ignored."""
        if value.get("format", FORMAT) != FORMAT or value.get("version", VERSION) != VERSION:
            raise ParameterError(f"this is not version {VERSION} of a dpexplain model card. {_REMEDY}")
        known = {name: one for name, one in value.items() if name not in ("format", "version")}
        if unknown := sorted(known.keys() - set(cls.__dataclass_fields__)):
            raise ParameterError(f"a model card has no field {unknown[0]!r}. Use only {', '.join(cls.__dataclass_fields__)}")
        if "epsilon" not in known:
            raise ParameterError(f"this model card states no epsilon. {_REMEDY}")
        return cls(**known)

    def save(self, path: str | Path) -> None:
        Path(path).write_text(json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, given: ModelCard | Mapping[str, Any] | str | Path | None) -> ModelCard | None:
        """A card as it is, from a mapping, or from a JSON file; None for None."""
        if given is None or isinstance(given, ModelCard):
            return given
        if isinstance(given, Mapping):
            return cls.from_dict(given)
        if not isinstance(given, (str, Path)):
            raise ParameterError(
                f"model_card cannot be {type(given).__name__}. Pass a ModelCard, a mapping, or the path of its JSON file"
            )
        try:
            stat_file(Path(given))
            found = json.loads(Path(given).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise ParameterError(f"the model card {str(given)!r} cannot be read. {_REMEDY}") from error
        if not isinstance(found, Mapping):
            raise ParameterError(f"the model card {str(given)!r} is not a JSON object. {_REMEDY}")
        return cls.from_dict(found)
