"""The same records for another model: a release that explains it, free from the reference alone, or with label moments bought for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256
from types import NoneType
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from dpexplain.arguments import require_kind
from dpexplain.core.arrays import Matrix
from dpexplain.core.label_moments import LabelMoments
from dpexplain.core.layout import Layout
from dpexplain.core.release_moments import NormalisedMoments
from dpexplain.core.uniforms import Uniforms
from dpexplain.data import PrivateData
from dpexplain.data.spending import PlannedRequest, buy
from dpexplain.errors import DataError, ParameterError
from dpexplain.estimation.answer import Solver
from dpexplain.estimation.global_slopes import NoisyEquations, Slopes, guessed_slopes
from dpexplain.estimation.local_reference import MomentRaking
from dpexplain.estimation.moment_planes import MomentPlanes
from dpexplain.estimation.plane_building import moment_targets
from dpexplain.estimation.public_points import ask, public_points
from dpexplain.estimation.relabelled_moments import BoughtMoments, FoundMoments, LabelledRecords, found_moments, rake_to_bought
from dpexplain.estimation.response import normals
from dpexplain.ledger.port import Ledger
from dpexplain.mechanisms.label_moments_plan import LabelMomentsPlan, plan_label_moments
from dpexplain.mechanisms.ports import Noise
from dpexplain.privacy.budget import SEEDED_NOISE, Budget, Guarantee
from dpexplain.privacy.events import price, quanta_up
from dpexplain.registration.labels import Labeller
from dpexplain.release.reference_data import CHANGE_STEPS, ReferenceData, columns_of, stored_changes, trial_columns

if TYPE_CHECKING:
    from dpexplain.release.release import Release

_COMPARED = 256  # records whose answers tell models apart
_FAR = 3 << 48  # a position in the public sequence that nothing else reaches


def relabel(release: Release, labeller: Labeller, bought: BoughtMoments | None = None) -> Release:
    """A release for the model that `labeller` asks; raked to its label moments where they were bought."""
    reference = release.reference
    if reference is None:
        raise ParameterError("this release has no reference records to label. Make it with dpx.release(…, reference=True)")
    records = _label_records(reference, labeller)
    if bought is not None:
        shape = (len(records.changes), 1 + 2 * release.solver.layout.width)
        noise = normals(Uniforms(_FAR), shape[0] * shape[1]).reshape(shape)
        records = rake_to_bought(records, bought, release.solver.noise.s1, noise)
    return _from_records(release, reference, records, labeller)


def _label_records(reference: ReferenceData, labeller: Labeller) -> LabelledRecords:
    """Every record with the model's answer, and the weights that it has."""
    labeller(trial_columns(reference.domain))  # a model that cannot answer raises before it is asked about all
    weights = np.ones(len(reference)) if reference.weights is None else reference.weights
    changes = np.zeros((0, len(reference))) if reference.changes is None else reference.changes / CHANGE_STEPS
    return LabelledRecords(
        reference.encoded,
        ask(labeller, columns_of(reference.codes, reference.domain)),
        weights / weights.mean(),
        changes,
        reference.bias,
    )


def _from_records(release: Release, reference: ReferenceData, records: LabelledRecords, labeller: Labeller) -> Release:
    solver = release.solver
    covariance = (solver.eigenvectors * solver.eigenvalues) @ solver.eigenvectors.T
    base = _weights_of_moments(release, covariance)(records.points)
    found = found_moments(records, base, solver.mean, covariance)
    public = public_points(solver)
    public = replace(public, labels=ask(labeller, reference.domain.decode(public.points)))
    small = public.labels[: len(solver.reference.labels)]
    moved = replace(
        solver,
        t0=found.t0,
        t1=found.t1,
        noise=replace(solver.noise, t1=found.t1_error),
        reference=replace(solver.reference, labels=small),
    )
    equations = NoisyEquations(
        solver.eigenvalues, solver.eigenvectors, found.t1, found.t1_error, solver.noise.s2, solver.layout.numbers
    )
    labelled = replace(
        reference,
        labels=records.labels,
        weights=records.weights,
        changes=stored_changes(records.changes),
        bias=records.bias,
        slopes=equations.slopes(guessed_slopes(records.points, records.labels, base * records.weights)),
    )
    planes = _planes(release, moved, equations.slopes(public.guess()), found)
    card = release.model_card if release.labeller is not None and release.labeller.model is labeller.model else None
    return replace(release, solver=moved, planes=planes, reference=labelled, labeller=labeller, model_card=card)


def _planes(release: Release, solver: Solver, slopes: Slopes, found: FoundMoments) -> MomentPlanes:
    points, labels = solver.reference.points(solver.layout), solver.reference.labels
    raked = MomentRaking(points, labels, np.ones(len(points)), moment_targets(solver, slopes.values)).weights()
    return replace(release.planes, t0=found.t0, slopes=slopes, labels=labels, raked=raked, t0_error=found.t0_error)


def _weights_of_moments(release: Release, covariance: Matrix) -> Callable[[Matrix], Any]:
    """w(x) of the release's moments, as far as it is known from the release itself."""
    layout = Layout.of(release.domain.blocks)
    return NormalisedMoments(layout, release.planes.average.values, np.maximum(np.diag(covariance), 0.0)).weights


def refine(
    release: Release,
    data: PrivateData,
    labeller: Labeller,
    spend: Budget,
    *,
    budget: Budget | None = None,
    ledger: Ledger | str | None = None,
    noise: Noise | None = None,
    request_id: str | None = None,
) -> Release:
    """Buy the model's label moments on the private rows, n + 1 numbers, and make the release that they sharpen."""
    require_kind("data", data, PrivateData, "Register the rows that the release was made from")
    require_kind("spend", spend, Budget, "Write spend=dpx.Budget(epsilon=0.05, delta=1e-6)")
    require_kind(
        "budget", budget, (Budget, NoneType), "Pass the total of the account that pays, dpx.Budget(epsilon=1.0, delta=1e-6)"
    )
    if release.domain.fingerprint != data.domain.fingerprint:
        raise ParameterError("these data have a different domain from the release. Register the rows that it was made from")
    if release.guarantee.neighbours != data.setting.neighbours:
        raise ParameterError(
            "these data have a different relation or privacy unit from the release. Register them with the same relation= and unit="
        )
    if release.reference is None:
        raise ParameterError("this release has no reference records to label. Make it with dpx.release(…, reference=True)")
    plan = plan_refinement(release, data, labeller, spend.mu)
    question = {
        "release": "refinement",
        "columns": release.domain.width,
        "price": str(price(plan.events)),
        "model": _answers_name(release.reference, labeller),
    }
    request = PlannedRequest(request_id or f"refine-{uuid4().hex}", question, plan, _encode_stored)
    settled = buy(data, budget or spend, ledger, noise, request, model_answers=True)
    released = np.array(settled.answer["moments"])
    made = relabel(release, labeller, BoughtMoments(plan.asked, released, plan.mechanism.sigma, data.size))
    secure = noise is None or noise.secure
    return replace(made, guarantee=_combined_guarantee(release.guarantee, price(plan.events), secure=secure))


def _answers_name(reference: ReferenceData, labeller: Labeller) -> str:
    """A hash of the model's answers about some records, which are public: a request that is repeated with another model is another question."""
    answers = labeller(reference.columns_at(np.arange(min(len(reference), _COMPARED))))
    return sha256(np.rint(1000 * np.asarray(answers)).astype(np.int64).tobytes()).hexdigest()[:16]


def label_moments_of(release: Release) -> LabelMoments:
    """The question about label moments around the centre and with the spread that a release states."""
    solver = release.solver
    variance = np.maximum(np.square(solver.eigenvectors) @ solver.eigenvalues, 0.0)
    return LabelMoments(Layout.of(release.domain.blocks), solver.mean, variance)


def plan_refinement(release: Release, data: PrivateData, labeller: Labeller, mu: float) -> LabelMomentsPlan:
    """The query for label moments, centred at the released mean of the rows."""
    query = label_moments_of(release)
    if data.labeller is not None and data.labeller.model is labeller.model and data.labeller.target == labeller.target:
        return plan_label_moments(query, mu, data.setting)
    decode = getattr(data.domain, "decode", None)
    if decode is None or not data.relabellable:
        raise DataError("rows of this kind cannot be shown to another model. Register them with model= this one, then refine")
    return plan_label_moments(query, mu, data.setting, lambda rows: labeller(decode(rows))[:, None])


def _encode_stored(released: Any) -> dict[str, Any]:
    return {"release": "refinement", "moments": released.tolist()}


def _combined_guarantee(first: Guarantee, quanta: int, *, secure: bool) -> Guarantee:
    """The guarantee of release and refinement together."""
    total = Guarantee.of_quanta(quanta_up(Fraction(first.mu) ** 2) + quanta, first.delta, first.neighbours)
    seeded = "" if secure or SEEDED_NOISE in first.note else SEEDED_NOISE
    return replace(first, mu=total.mu, note=" ".join(filter(None, [first.note, seeded])), model_answers=True)
