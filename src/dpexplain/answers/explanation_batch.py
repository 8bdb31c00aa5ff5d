"""What every batch of explanations offers: the contributions of all records together, as frames, pictures, shap objects and HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dpexplain.answers.contributions import Contributions, frame_of
from dpexplain.answers.contributions_batch import ContributionsBatch
from dpexplain.answers.explanation import Explanation
from dpexplain.core.arrays import Vector
from dpexplain.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHOWN = 5  # explanations that a notebook shows of many


class ExplanationBatch(Sequence[Explanation]):
    """A sequence of explanations of one model, with views of all of them at once."""

    def contributions(self, baseline: Any = None) -> ContributionsBatch:
        """The contributions of all records, compared as those of one; InputError where there are none, or no record."""
        if not len(self):
            raise InputError("there are no explanations to add up. Explain at least one record")
        return batch_of([one.contributions(baseline) for one in self])

    def to_frame(self, backend: str | None = None) -> Any:
        """One row for each record: answer, base and contributions by feature; slopes by encoded column where there are none."""
        if self._add_up:
            return self.contributions().to_frame(backend)
        names: tuple[str, ...] = self[0].names if len(self) else ()
        values = np.array([one.values for one in self]).reshape(len(self), len(names))
        return frame_of({name: values[:, i].tolist() for i, name in enumerate(names)}, backend)

    def to_shap(self) -> Any:
        """All contributions as one `shap.Explanation` with true base values and raw feature values (extra `[baselines]`)."""
        return self.contributions().to_shap()

    def plot(self, top: int = 10, *, kind: Literal["beeswarm", "bar"] = "beeswarm", **look: Any) -> Figure:
        """A dot for each record and feature ("beeswarm"), or mean absolute contributions ("bar")."""
        return self.contributions().plot(top, kind=kind, **look)

    def _repr_html_(self) -> str:
        if self._add_up:
            return self.contributions()._repr_html_()
        items = "".join(f"<li>{escape(repr(one))}</li>" for one in self[:_SHOWN])
        return f"<p>{len(self):,} explanations</p><ol start='0'>{items}</ol>"

    @property
    def _add_up(self) -> bool:
        return len(self) > 0 and self[0].added is not None


def batch_of(items: Sequence[Contributions]) -> ContributionsBatch:
    """Contributions of several records as one batch; they must be of the same features and units."""
    first = items[0]
    if any(one.names != first.names or one.scale != first.scale for one in items):
        raise InputError("these contributions have different features or units and cannot be combined. Use them one by one")
    if any(one.average != first.average for one in items):
        raise InputError("these contributions are compared with different things. Pass one baseline=, or use them one by one")
    return ContributionsBatch(
        first.names,
        np.array([one.values for one in items]),
        np.array([one.base for one in items]),
        np.array([one.answer for one in items]),
        _all_or_none([one.error for one in items]),
        first.scale,
        None if any(one.record is None for one in items) else [one.record or () for one in items],
        first.average,
        _all_or_none([one.base_error for one in items]),
        _all_or_none([one.answer_error for one in items]),
        first.guarantee,
        first.titles,
        first.details,
    )


def _all_or_none(parts: Sequence[Any]) -> Vector | None:
    return None if any(part is None for part in parts) else np.array(parts)
