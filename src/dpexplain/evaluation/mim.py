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

from typing import Any, Literal

from dpexplain.core.arrays import Vector
from dpexplain.core.moments import RawMoments
from dpexplain.core.weights import Stable, Weight
from dpexplain.data import PrivateData
from dpexplain.errors import ParameterError
from dpexplain.evaluation.asking import column_model, encoded_point

Others = Literal["ignored", "against"]


def mim(
    data: PrivateData,
    query: Any,
    *,
    weight: Weight | None = None,
    others: Others = "ignored",
    label: float | None = None,
    model: Any = None,
    target: Any = 1,
) -> Vector:
    """s·MIM(query)/m̄, one number for each encoded column.

    `label` is the model's answer at the query (its sign counts); None asks `model`, or the model that the data were registered with.
    """
    if others not in ("ignored", "against"):
        raise ParameterError(f"others must be 'ignored' or 'against', got {others!r}")
    point = encoded_point(data.domain, query)
    sums = data._rows.raw(RawMoments(point, weight or Stable()))
    if others == "against":
        return sums.t1 / data.size
    if label is None:
        label = float(column_model(data, model, target=target)(point[None])[0])
    sign = 1.0 if label >= 0 else -1.0
    return (sign * sums.S1 + sums.t1) / (2 * data.size)
