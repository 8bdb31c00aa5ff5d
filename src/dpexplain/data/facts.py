"""The public facts about private data, which plans, releases and answers may use freely."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from dpexplain.core.answer_scale import AnswerScale
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.domain import DomainLike
from dpexplain.mechanisms.setting import Setting
from dpexplain.registration.labels import Labeller
from dpexplain.registration.registered import Registered


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class PublicFacts:
    """What is public about registered rows.

    `labeller` asks the black box about public rows; None where only its answers about the private ones were registered. `targets` are all classes of
    the model, where all are to be explained. `other_columns` are columns of the registered table that are not features. `declared` is what the owner
    declares answers to be.
    """

    name: str
    domain: DomainLike
    setting: Setting
    labeller: Labeller | None
    scale: AnswerScale
    other_columns: tuple[str, ...]
    targets: tuple[Any, ...] = ()
    declared: dict[str, Any] = field(default_factory=dict)
    fingerprint: str = field(init=False)  # of the domain
    column_model: Callable[[Matrix], Vector] | None = field(init=False)  # the black box as a function of encoded rows
    stated: dict[str, Any] = field(init=False)  # `declared` as a ledger stores it with every question, which it makes another one

    def __post_init__(self) -> None:
        object.__setattr__(self, "fingerprint", self.domain.fingerprint)
        object.__setattr__(self, "column_model", _of_encoded_rows(self.labeller, self.domain))
        object.__setattr__(self, "stated", {"declared": self.declared} if self.declared else {})

    @classmethod
    def of(cls, rows: Registered) -> PublicFacts:
        declared = rows.terms.answers.to_dict()
        return cls(
            rows.terms.name, rows.domain, rows.setting, rows.labeller, rows.scale, rows.other_columns, rows.classes, declared
        )


def _of_encoded_rows(labeller: Labeller | None, domain: DomainLike) -> Callable[[Matrix], Vector] | None:
    """None where there is no black box to ask, or the domain cannot be decoded."""
    decode = getattr(domain, "decode", None)
    return None if labeller is None or decode is None else partial(labeller.label_encoded, decode)
