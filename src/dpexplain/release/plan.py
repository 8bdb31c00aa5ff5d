"""What a release asks of private rows, planned from public numbers, and what is built from the answers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from dpexplain.core.cells import cells_of
from dpexplain.core.layout import Layout
from dpexplain.core.uniforms import Uniforms
from dpexplain.data import PrivateData
from dpexplain.domain import Domain
from dpexplain.errors import ParameterError
from dpexplain.estimation import reference as ref
from dpexplain.estimation.answer import Solver
from dpexplain.estimation.local_reference import MomentRaking, MomentTargets
from dpexplain.estimation.progress import ProgressCallback, no_progress
from dpexplain.estimation.response import normals
from dpexplain.mechanisms.door import Door
from dpexplain.mechanisms.marginals import MarginalsPlan, NoisyMarginals, plan_marginals
from dpexplain.mechanisms.sketch import NoisySketch, SketchPlan, plan_sketch
from dpexplain.privacy.events import PrivacyEvent
from dpexplain.release.reference_data import ReferenceData, columns_of, draw_records, stored_changes, trial_columns

WIDEST = 2048  # columns: a release holds n² moments, and rehearsing it takes n³ steps
REFERENCE_SHARE = 0.5  # of μ² for the marginals when reference data are wanted
STEPS = 5  # that `build_reference` announces, at most
_FAR = 1 << 48  # a place in the public numbers that drawing records does not reach
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
    layout = Layout.of(data.domain.blocks)
    if not reference:
        return ReleasePlan(plan_sketch(layout, mu, data.setting), None)
    domain = _tabular(data)
    cells = cells_of(domain.blocks, domain.levels)
    marginals = plan_marginals(cells, mu * sqrt(REFERENCE_SHARE) * _SOUND, data.setting)
    if data.labeller is not None:
        data.labeller(trial_columns(domain))
    return ReleasePlan(plan_sketch(layout, mu * sqrt(1 - REFERENCE_SHARE) * _SOUND, data.setting), marginals, reference)


def _require_narrow(data: PrivateData) -> None:
    if (width := data.domain.width) > WIDEST:
        raise ParameterError(
            f"a release of {width} columns would hold {width * width:,} noisy moments; at most {WIDEST} columns are supported. Declare "
            "fewer (a coarser grid, a smaller vocabulary), or explain one query at a time with dpx.Explainer"
        )


def _tabular(data: PrivateData) -> Domain:
    if not isinstance(data.domain, Domain):
        raise ParameterError("reference data are records of a table: leave reference= out for text and images")
    return data.domain


def build_reference(
    marginals: NoisyMarginals,
    sketch: NoisySketch,
    solver: Solver,
    data: PrivateData,
    rows: int,
    watch: ProgressCallback = no_progress,
) -> ReferenceData:
    """Records drawn from the noisy counts, labelled by the model and raked to the noisy moments."""
    domain = _tabular(data)
    drawn = draw_records(marginals, domain, rows, watch)
    plain = ReferenceData(domain, drawn.codes, None, None, solver.radius)
    if data.labeller is None:
        return plain
    watch("asking the model")
    labels = np.rint(data.labeller(columns_of(drawn.codes, domain)) * ref.LABEL_STEPS) / ref.LABEL_STEPS
    watch("raking records to the moments")
    moments = MomentRaking(plain.encoded, labels, sketch.query.weights(plain.encoded), moment_targets(solver))
    weights = moments.weights()
    shape = (len(drawn.changes), len(moments.target))
    noise = normals(Uniforms(_FAR), shape[0] * shape[1]).reshape(shape)
    changes = stored_changes(moments.changes(weights, drawn.changes, noise))
    return replace(plain, labels=labels, weights=weights, changes=changes, bias=moments.bias(drawn.changes))


def moment_targets(solver: Solver) -> MomentTargets:
    covariance = (solver.eigenvectors * solver.eigenvalues) @ solver.eigenvectors.T
    noise = solver.noise
    return MomentTargets(solver.mean, covariance, solver.t0, solver.t1, noise.s1, noise.s2, noise.t1, solver.radius)
