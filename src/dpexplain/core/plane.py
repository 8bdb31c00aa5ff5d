"""Which plane explains the model around a record z: all three minimise Σ α(‖x - z‖)(a + φ·(x - z) - y)² over φ.

| plane | a, the plane's answer at z |
|---|---|
| fitted | fitted together with φ, as LIME does: the default |
| anchored | the model's own answer f(z) |
| paper | 0, as in the paper: φ has to carry the average answer as well (docs/errata.md, 10) |
"""

from __future__ import annotations

from typing import Any, Literal, get_args

from dpexplain.arguments import quote
from dpexplain.core.ball import Ball
from dpexplain.core.weights import Weight
from dpexplain.errors import ParameterError

Plane = Literal["fitted", "anchored", "paper"]
PLANES: tuple[Plane, ...] = get_args(Plane)
# the ball ‖φ‖ ≤ 1 belongs to the paper's definition; other planes are not held in a ball unless one is asked for
PAPER_RADIUS = 1.0


def require_plane(plane: Any) -> Plane:
    """`plane` if it is one of `PLANES`; ParameterError otherwise."""
    if not (isinstance(plane, str) and plane in PLANES):
        raise ParameterError(f"plane must be 'fitted', 'anchored' or 'paper', got {quote(plane)}")
    return plane


def describe_fit(weight: Weight, plane: Any, radius: float | None) -> dict[str, Any]:
    """How local planes are fitted, in JSON's types. ParameterError for a plane or a radius that cannot be, and for a weight that cannot be stored."""
    known = require_plane(plane)
    if radius is not None:
        Ball(radius)
    return {"weight": weight.to_dict(), "plane": known, "radius": radius}


def plane_for(plane: Any, anchor: Any) -> Plane:
    """The plane that a caller asks for: an anchor alone means "anchored", neither means "fitted"."""
    chosen = require_plane(("fitted" if anchor is None else "anchored") if plane is None else plane)
    if chosen == "anchored" and anchor is None:
        raise ParameterError(
            "plane='anchored' goes through the model's answer. Pass it as anchor=, in the units of the answers, such as a probability"
        )
    if chosen != "anchored" and anchor is not None:
        raise ParameterError(f"anchor= belongs to plane='anchored'. Leave it out for plane={chosen!r}")
    return chosen
