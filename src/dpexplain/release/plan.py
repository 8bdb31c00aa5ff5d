"""What a release asks of private rows, planned from public numbers, and what is built from the answers."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from dpexplain.core.cells import cells_of
from dpexplain.core.layout import Layout
from dpexplain.data import PrivateData
from dpexplain.domain import Domain
from dpexplain.errors import ParameterError
from dpexplain.mechanisms.door import Door
from dpexplain.mechanisms.marginals import MarginalsPlan, NoisyMarginals, plan_marginals
from dpexplain.mechanisms.sketch import NoisySketch, SketchPlan, plan_sketch
from dpexplain.privacy.events import PrivacyEvent
from dpexplain.release.reference_data import trial_columns

WIDEST = 2048  # columns: a release holds n² moments, and rehearsing it takes n³ steps
REFERENCE_SHARE = 0.5  # of μ² for the marginals when reference data are wanted
_SOUND = 1 - 2.0**-40  # both shares rounded down


@dataclass(frozen=True, slots=True)
class ReleasePlan:
    """The moments, and the marginals where reference data are wanted; one reservation pays for both."""

    sketch: SketchPlan
    marginals: MarginalsPlan | None
    rows: int = 0  # how many reference records will be drawn

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        return self.sketch.events + (self.marginals.events if self.marginals else ())

    def run(self, door: Door) -> tuple[NoisySketch, NoisyMarginals | None]:
        return self.sketch.run(door), self.marginals.run(door) if self.marginals else None


def plan_release(data: PrivateData, mu: float, reference: int) -> ReleasePlan:
    """A plan that costs at most `mu`; `reference` is how many records to draw, 0 for none.

    Too wide a domain, or a model that cannot answer, is found out here, before anything is spent.
    """
    _require_narrow(data)
    facts = data.facts
    layout = facts.setting.layout or Layout.of(facts.domain.blocks)
    if not reference:
        return ReleasePlan(plan_sketch(layout, mu, facts.setting), None)
    domain = require_tabular(data)
    if facts.labeller is not None:
        facts.labeller(trial_columns(domain))
    cells = cells_of(domain.blocks, domain.levels)
    marginals = plan_marginals(cells, mu * sqrt(REFERENCE_SHARE) * _SOUND, facts.setting)
    return ReleasePlan(plan_sketch(layout, mu * sqrt(1 - REFERENCE_SHARE) * _SOUND, facts.setting), marginals, reference)


def _require_narrow(data: PrivateData) -> None:
    if (width := data.facts.domain.width) > WIDEST:
        raise ParameterError(
            f"a release of {width} columns would hold {width * width:,} noisy moments; at most {WIDEST} columns are supported. Declare "
            "fewer (a coarser grid, a smaller vocabulary), or explain one query at a time with dpx.Explainer"
        )


def require_tabular(data: PrivateData) -> Domain:
    if not isinstance(data.facts.domain, Domain):
        raise ParameterError("reference data are records of a table: leave reference= out for text and images")
    return data.facts.domain
