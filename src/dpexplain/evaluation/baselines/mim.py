"""MIM, the monotone influence measure of Sliwinski, Strobel & Zick (AAAI 2019), without privacy. `dpx.Influence` is its private form.

With u = x - z, α a weight and s the label of z, +1 or -1, MIM is a sum over the rows,

    MIM(z) = Σ α(‖u‖) u · 1[f(x) = f(z)]:

a direction from z towards rows that the model treats like z. Rows of the other class are *ignored* (1[…] is 0 for them) or count *against*
(1[…] is -1 for them): both readings are offered. For labels y = ±1 these are

    ignored     Σ α (1 + sy)/2 · u          against     Σ α sy · u.

A soft label y = 2p - 1 enters the same formulas: (1 + sy)/2 is then the probability of z's class at x. We return s·MIM(z)/m̄, so that positive
means "towards the explained class", as everywhere in dpexplain. The signed form is then Σ α y u / m̄ = b_z, and does not need s at all.
"""

from __future__ import annotations

from typing import Any

from dpexplain.arguments import quote
from dpexplain.core.arrays import Vector
from dpexplain.core.moments import LocalMoments
from dpexplain.core.weights import Stable, Weight
from dpexplain.data import PrivateData
from dpexplain.errors import DataError, ParameterError
from dpexplain.evaluation.baselines.inputs import column_model, column_scales, encoded_point
from dpexplain.mechanisms.influence import Others, influence_sum


def mim(
    data: PrivateData,
    query: Any,
    *,
    weight: Weight | None = None,
    others: Others | None = None,
    label: float | None = None,
    model: Any = None,
    target: Any = 1,
) -> Vector:
    """s·MIM(query)/m̄, one number for each encoded column.

    `label` is the model's answer at the query (its sign counts); None asks `model`, or the model that the data were registered with.
    `others=None` is "ignored" where that is possible, and "against" where only labels were registered: the same rule as `dpx.Influence`.
    """
    if others not in (None, "ignored", "against"):
        raise ParameterError(f"others must be 'ignored' or 'against', got {quote(others)}")
    point = encoded_point(data.domain, query)
    known = label is not None or model is not None or data.column_model is not None
    if others == "ignored" and not known:
        raise DataError("others='ignored' needs the label of the query. Pass label= or model=, or use others='against'")
    sign = 0.0
    if others != "against" and known:
        answer = column_model(data, model, target=target)(point[None])[0] if label is None else label
        sign = 1.0 if answer >= 0 else -1.0
    return influence_sum(data.private_rows.local(LocalMoments(point, weight or Stable(), column_scales(data))), sign) / data.size
