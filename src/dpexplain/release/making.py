"""Making a release: the request is checked, planned and paid for once, and the result is stored before it is returned."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import NoneType
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from dpexplain.arguments import quote, require_kind, require_method, require_text
from dpexplain.core.plane import PAPER_RADIUS, Plane, describe_fit
from dpexplain.core.weights import DEFAULT_WEIGHT, Nearest, Weight
from dpexplain.data import PrivateData
from dpexplain.data.spending import PlannedRequest, buy
from dpexplain.domain import Domain
from dpexplain.errors import ParameterError
from dpexplain.estimation.answer import Solver
from dpexplain.estimation.calibrate import Calibrated, Normals, calibrate
from dpexplain.estimation.moment_planes import MomentPlanes
from dpexplain.estimation.plane_building import GUESSED, build_planes
from dpexplain.estimation.public_points import PublicModel
from dpexplain.ledger.port import Ledger
from dpexplain.mechanisms.marginals_plan import NoisyMarginals
from dpexplain.mechanisms.moments_plan import NoisySketch
from dpexplain.mechanisms.ports import Noise, Plan
from dpexplain.mechanisms.release_plan import ReleasedStatistics
from dpexplain.privacy.budget import SEEDED_NOISE, Budget, Guarantee, round_up
from dpexplain.privacy.events import price
from dpexplain.progress import progress_steps
from dpexplain.registration.labels import Labeller
from dpexplain.release.contents import SUBJECT
from dpexplain.release.reference_data import ReferenceData, reference_rows
from dpexplain.release.release import Release, release_from_ledger
from dpexplain.version import __version__

if TYPE_CHECKING:
    from dpexplain.mechanisms.release_plan import ReleasePlan
    from dpexplain.release.all_classes import LabelsOfClasses


def release(
    data: PrivateData,
    budget: Budget,
    *,
    weight: Weight | None = None,
    plane: Plane = "fitted",
    anchors: int = 1,
    radius: float | None = None,
    noise: Noise | None = None,
    ledger: Ledger | str | None = None,
    spend: Budget | None = None,
    request_id: str | None = None,
    fingerprint: str | None = None,
    reference: bool | int = False,
) -> Release:
    """Release private moments of `data` once; the result explains any number of records free of further charge.

    - `budget` is the total of the account that pays, and `spend` how much of it to use, by default all. BudgetExhausted is raised
      before a row is read.
    - `weight`, `plane` and `radius` define the local plane of explanations, unless a question has its own (`Release.explain`).
    - `reference=True`, or a number of records, spends half on synthetic records that the model labels: they give SHAP values and
      explanations of any locality (docs/locality.md).
    - `request_id`: asking again with the same one, after a crash say, returns the release that the ledger stores and spends nothing.
    - `fingerprint` is a text by which the owner recognises the data set later. It is stored as given.

    A model that the data were registered with is asked about public points too, which sharpens the answers at no cost.
    """
    _require_arguments(data, budget, weight, spend, noise)
    _require_one_anchor(anchors)
    if fingerprint is not None:
        require_text("fingerprint", fingerprint)
    chosen = weight or DEFAULT_WEIGHT
    fit = describe_fit(chosen, plane, radius)  # what cannot be stored is refused before anything is spent
    records = reference_rows(reference, data.facts.setting.size, data.facts.domain.width)
    recipe = _plan_recipe(data, spend or budget, chosen, plane, radius, fingerprint, records)
    made: dict[str, Release] = {}  # by the digest of its file

    def store(result: ReleasedStatistics | Release) -> dict[str, Any]:
        built = result if isinstance(result, Release) else recipe.build(result)
        stored = built.stored_answer()
        made[stored["sha256"]] = built
        return stored

    request = PlannedRequest(request_id or f"release-{uuid4().hex}", recipe.question | fit, recipe.plan_of_rows, store)
    settled = buy(data, budget, ledger, noise, request, model_answers=recipe.model is not None)
    digest = settled.answer["sha256"]
    return made[digest] if digest in made else release_from_ledger(settled)  # made under this id before, or by another process


@dataclass(frozen=True, slots=True, eq=False)
class ReleaseRecipe:
    """What a release will ask of private rows, and how it is computed from what was released."""

    data: PrivateData
    spend: Budget
    weight: Weight
    plane: Plane
    radius: float | None
    fingerprint: str | None
    plan: ReleasePlan
    classes: LabelsOfClasses | None

    @property
    def plan_of_rows(self) -> Plan[ReleasedStatistics | Release]:
        """The plan that asks the rows. Where all classes are explained, it builds the release on the way."""
        if self.classes is None:
            return self.plan
        from dpexplain.release.all_classes import ClassesPlan

        return ClassesPlan(self.plan, self.build, self.classes)

    @property
    def model(self) -> Labeller | None:
        """The model where there are public records to ask it about."""
        return self.data.facts.labeller if isinstance(self.data.facts.domain, Domain) else None

    @property
    def question(self) -> dict[str, Any]:
        """What the ledger stores of the request, beside how planes are fitted."""
        return {
            "release": "moments",
            "attributes": self.plan.sketch.layout.attributes,
            "reference": self.plan.rows,
            "fingerprint": self.fingerprint,
            "price": str(price(self.plan_of_rows.events)),
            **self.data.facts.stated,
        }

    @property
    def _rehearsal_weight(self) -> Weight:
        """The weight for which noise is rehearsed: a broad one where each question chooses its own."""
        return DEFAULT_WEIGHT if isinstance(self.weight, Nearest) else self.weight

    def build(self, released: ReleasedStatistics) -> Release:
        """The release, by post-processing of what was released; with a bar on a terminal where it takes long."""
        from dpexplain.release.announced import announce_draws  # as much as planning one

        with announce_draws(released.normals, self.plan) as normals:
            return self._make(released, normals)

    def _make(self, released: ReleasedStatistics, normals: Normals) -> Release:
        data, facts, sketch, marginals = self.data, self.data.facts, released.sketch, released.marginals
        ball = PAPER_RADIUS if self.radius is None else self.radius
        calibrated = calibrate(sketch, ball, self._rehearsal_weight, facts.setting.levels, normals)
        solver, planes = calibrated.solver, self._planes(sketch, calibrated, normals)
        return Release(
            solver=replace(solver, t0=planes.t0),  # with what clipping cut off of rare labels
            planes=planes,
            domain=facts.domain,
            weight=self.weight,
            guarantee=self._guarantee(released.secure),
            size=facts.setting.size,
            fingerprint=self.fingerprint,
            library=__version__,
            other_columns=facts.other_columns,
            reference=None if marginals is None else _build_reference(marginals, sketch, solver, data, self.plan.rows),
            labeller=facts.labeller,
            plane=self.plane,
            radius=self.radius,
            scale=facts.scale,
            model_card=data.model_card,
        )

    def _planes(self, sketch: NoisySketch, calibrated: Calibrated, normals: Normals) -> MomentPlanes:
        """Build the planes, with the model's answers at public points where there is one to ask."""
        model = self.data.facts.column_model
        asked = None if model is None else PublicModel(model)
        return build_planes(sketch, calibrated, asked, normals, GUESSED)

    def _guarantee(self, secure: bool) -> Guarantee:
        """What was paid, with notes on seeded noise and on the total where other releases were made from these data."""
        data, total, notes = self.data, self.data.spent, [] if secure else [SEEDED_NOISE]
        about, asked = data.facts.setting.neighbours, self.model is not None
        paid = Guarantee.of_quanta(price(self.plan_of_rows.events), self.spend.delta, about, subject=SUBJECT, model_answers=asked)
        if total.mu > paid.mu * (1 + 1e-9):
            claim = f"(ε={round_up(total.epsilon)}, δ={total.delta:g})-differential privacy"
            notes.append(f"With everything that was released from these data before, it is {claim} in total.")
        return replace(paid, note=" ".join(notes))


def _plan_recipe(
    data: PrivateData, spend: Budget, weight: Weight, plane: Plane, radius: float | None, fingerprint: str | None, records: int
) -> ReleaseRecipe:
    """Plan from public numbers only; `records` is how many synthetic records are wanted."""
    from dpexplain.release.all_classes import left_for_release, plan_classes
    from dpexplain.release.plan_for_data import plan_release  # making a release needs much that reading one does not

    classes = plan_classes(data, spend.mu)
    plan = plan_release(data, spend.mu if classes is None else left_for_release(spend.mu), records)
    if classes is not None and not plan.rows:
        raise ParameterError("target='all' labels reference records for each class. Pass reference=True")
    return ReleaseRecipe(data, spend, weight, plane, radius, fingerprint, plan, classes)


def _build_reference(
    marginals: NoisyMarginals, sketch: NoisySketch, solver: Solver, data: PrivateData, rows: int
) -> ReferenceData:
    """The reference, with a bar on a terminal: it takes half a minute."""
    from dpexplain.release.reference_building import STEPS, build_reference

    with progress_steps("building the reference", STEPS) as watch:
        return build_reference(marginals, sketch, solver, data, rows, watch)


def _require_arguments(data: Any, budget: Any, weight: Any, spend: Any, noise: Any) -> None:
    require_kind("data", data, PrivateData, "Register the rows first, dpx.PrivateData(rows, domain, model=…)")
    require_kind("budget", budget, Budget, "Write release(data, dpx.Budget(epsilon=1.0, delta=1e-6))")
    require_kind("spend", spend, (Budget, NoneType), "Pass a part of the budget, dpx.Budget(epsilon=0.1, delta=1e-7)")
    require_kind("weight", weight, (Weight, NoneType), "Pass one such as dpx.weights.Gaussian(0.8)")
    if noise is not None:
        require_method("noise", noise, "standard_normal", "Leave it out. Only tests and experiments pass a seeded one")


def _require_one_anchor(anchors: int) -> None:
    if not (isinstance(anchors, int) and anchors == 1):
        raise ParameterError(
            f"anchors must be 1, got {quote(anchors)}: several anchors share one budget, which makes the noise larger. Leave anchors out, and "
            "use reference=True for narrow weights (docs/release.md has the comparison)"
        )
