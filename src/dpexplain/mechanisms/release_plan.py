"""Everything that a release asks of private rows: its moments, and the counts that reference data are drawn from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import sqrt

from dpexplain.core.arrays import Vector
from dpexplain.core.cells import Cells
from dpexplain.core.layout import Layout
from dpexplain.estimation.public_points import PublicModel
from dpexplain.mechanisms.door import Door
from dpexplain.mechanisms.marginals_plan import MarginalsPlan, NoisyMarginals, plan_marginals
from dpexplain.mechanisms.moments_plan import NoisySketch, SketchPlan, plan_sketch
from dpexplain.mechanisms.setting import Setting
from dpexplain.privacy.events import PrivacyEvent

REFERENCE_SHARE = 0.5  # of μ² for the marginals when reference data are wanted
_SOUND = 1 - 2.0**-40  # both shares rounded down


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedStatistics:
    """What was released, and what post-processing of it needs: the rest of a release is computed from this alone."""

    sketch: NoisySketch
    marginals: NoisyMarginals | None
    secure: bool  # whether the noise came from a cryptographic source
    normals: Callable[[int], Vector]  # standard normal numbers for rehearsals of the noise: `Door.auxiliary_normal`


@dataclass(frozen=True, slots=True)
class ReleasePlan:
    """The moments, and the marginals where reference data are wanted; one reservation pays for both."""

    sketch: SketchPlan
    marginals: MarginalsPlan | None
    rows: int = 0  # how many reference records will be drawn
    events: tuple[PrivacyEvent, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", (self.marginals.events if self.marginals else ()) + self.sketch.events)

    def run(self, door: Door) -> ReleasedStatistics:
        marginals = self.marginals.run(door) if self.marginals else None
        sketch = self.sketch.run(door, margins=None if marginals is None else marginals.numbers(self.sketch.size))
        return ReleasedStatistics(sketch, marginals, door.secure, door.auxiliary_normal)


def plan_moments(layout: Layout, mu: float, setting: Setting, model: PublicModel | None) -> ReleasePlan:
    """A plan without reference data that costs at most `mu`."""
    return ReleasePlan(plan_sketch(layout, mu, setting, model), None)


def plan_with_reference(
    layout: Layout,
    cells: tuple[Cells, ...],
    rows: int,
    mu: float,
    setting: Setting,
    model: PublicModel | None,
    *,
    labelled: bool,
) -> ReleasePlan:
    """A plan that costs at most `mu`, with the counts of `cells` from which `rows` reference records will be drawn; `labelled` as for the marginals."""
    marginals = plan_marginals(cells, mu * sqrt(REFERENCE_SHARE) * _SOUND, setting, labelled=labelled)
    moments = plan_sketch(layout, mu * sqrt(1 - REFERENCE_SHARE) * _SOUND, setting, model, margins_known=True)
    return ReleasePlan(moments, marginals, rows)
