"""The result of registration: rows that answer questions, and the public facts they were registered under."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpexplain.core.answer_scale import AnswerScale
from dpexplain.core.layout import Layout
from dpexplain.domain import Domain, DomainLike
from dpexplain.mechanisms.ports import Rows, SingleRows
from dpexplain.mechanisms.setting import Setting
from dpexplain.registration.labels import Labeller
from dpexplain.registration.options import RegistrationOptions


@dataclass(frozen=True, slots=True, repr=False)
class Registered:
    """`size` is the public row count, `labeller` asks the black box about public rows, `keys` hash the owner of each row where there are owners."""

    rows: Rows
    domain: DomainLike
    terms: RegistrationOptions
    size: int
    labeller: Labeller | None
    keys: Callable[[], np.ndarray[Any, Any]] | None = None
    label_column: str | None = None  # where labels were read from, if from a column
    scale: AnswerScale = field(default_factory=AnswerScale)  # the units of answers
    classes: tuple[Any, ...] = ()  # all of the model's, where all are to be explained

    @property
    def other_columns(self) -> tuple[str, ...]:
        """Columns of the registered table that are not features: who owns a row, and its label."""
        return tuple(name for name in (self.terms.unit, self.label_column) if name is not None)

    @property
    def setting(self) -> Setting:
        """The public facts a plan may use."""
        one_hot = tuple((block.start, block.stop) for block in self.domain.blocks if block.kind == "one-hot")
        single = isinstance(self.rows, SingleRows)
        layout, error = Layout.of(self.domain.blocks), self.rows.summation_error
        levels = tuple(self.domain.levels) if isinstance(self.domain, Domain) else ()
        return Setting(self.domain.width, self.size, self.terms.neighbours, error, one_hot, single, layout, layout.scale, levels)
