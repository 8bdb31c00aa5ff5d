"""Pay once, explain forever: a portable private release that answers any number of queries with no private data at hand."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from types import NoneType
from typing import Any
from uuid import uuid4

from dpexplain.answers.explanation import Explanation
from dpexplain.arguments import file_errors, require_kind, require_method, require_regular_file
from dpexplain.core.answer_scale import AnswerScale
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.ball import Ball
from dpexplain.core.plane import PAPER_RADIUS, Plane, plane_for, require_plane
from dpexplain.core.weights import Stable, Weight
from dpexplain.data import PrivateData
from dpexplain.domain import Domain, DomainLike, QueryRules, read_queries, read_query
from dpexplain.domain.queries import Extra, Notes, OnError
from dpexplain.errors import DpexplainError, InputError, ParameterError, ReleaseCorrupt
from dpexplain.estimation.answer import Solver
from dpexplain.estimation.calibrate import calibrate
from dpexplain.estimation.local_reference import LocalReference
from dpexplain.estimation.moment_planes import MomentPlanes
from dpexplain.estimation.reference_planes import ReferencePlanes
from dpexplain.ledger.port import Ledger, Settled
from dpexplain.mechanisms.door import Door
from dpexplain.mechanisms.marginals import NoisyMarginals
from dpexplain.mechanisms.ports import Noise
from dpexplain.mechanisms.sketch import NoisySketch
from dpexplain.privacy.budget import SEEDED_NOISE, Budget, Guarantee, round_up
from dpexplain.privacy.events import PrivacyEvent, price
from dpexplain.progress import progress_steps
from dpexplain.registration.labels import Labeller
from dpexplain.release import file as container
from dpexplain.release.announced import with_progress
from dpexplain.release.batch import Explanations, anchors_of, fit_in_batches, free_of_charge
from dpexplain.release.contents import SUBJECT, payload_of, restore_parts, solver_arrays
from dpexplain.release.model_questions import ModelQuestions
from dpexplain.release.named import restore_named, stored_named
from dpexplain.release.page import OUTCOME, TITLE, publish
from dpexplain.release.planes import (
    BallPlanes,
    PlaneSource,
    build_planes,
    move_to_levels,
    reference_planes,
    stored_arrays,
    stored_numbers,
)
from dpexplain.release.reference_data import ReferenceData, reference_rows
from dpexplain.spending import Paid, Spending
from dpexplain.version import __version__

LARGEST_KEPT = 64 << 20  # bytes of a release file that a ledger keeps: 70 columns take 0.1 MB, 500 take 2


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

    `budget` is the total of the account that pays and `spend` how much of it to use, by default all. Raises BudgetExhausted before a row
    is read. `weight`, `plane` and `radius` say which local plane explanations fit, unless a question says otherwise (`Release.explain`).
    A model that the data were registered with is asked about a few thousand public points, which sharpens the answers and costs nothing.
    The ledger keeps the release: asking again with the same `request_id`, after a crash say, returns it and spends nothing.
    `fingerprint` is any text by which the owner recognises the data set later; it is stored as given, and never computed from rows.
    With `reference=True`, or the number of reference records wanted, half of what is spent goes to a private model of the records:
    reference data labelled by the model, and explanations of any locality (docs/locality.md).
    """
    from dpexplain.release.all_classes import left_for_release, plan_classes
    from dpexplain.release.plan import plan_release  # making a release needs much that reading one does not

    _require_arguments(data, budget, weight, spend, noise)
    chosen = weight or Stable()
    chosen.to_dict()  # a weight that cannot be stored is refused before anything is spent
    _require_one_anchor(anchors)
    require_plane(plane)
    if radius is not None:
        Ball(radius)
    budgeted = spend or budget
    classes = plan_classes(data, budgeted.mu)
    plan = plan_release(data, budgeted.mu if classes is None else left_for_release(budgeted.mu), reference_rows(reference))
    events = plan.events + (() if classes is None else classes.events)
    if classes is not None and not plan.rows:
        raise ParameterError("target='all' labels reference records for each class: pass reference=True")
    model = data.labeller if isinstance(data.domain, Domain) else None

    def make(door: Door) -> Release:
        sketch, marginals = plan.run(door)
        ball = PAPER_RADIUS if radius is None else radius
        calibrated = calibrate(sketch.sums, sketch.query, sketch.sigma, ball, chosen, door.auxiliary_normal)
        solver = move_to_levels(calibrated, data.domain)
        planes = build_planes(sketch, solver, data.domain, model, door.auxiliary_normal)
        paid = Guarantee.of_quanta(
            price(events), budgeted.delta, data.setting.neighbours, subject=SUBJECT, model_answers=model is not None
        )
        made = Release(
            solver=solver,
            planes=planes,
            domain=data.domain,
            weight=chosen,
            guarantee=_noted(paid, data, door),
            size=data.size,
            fingerprint=fingerprint,
            library=__version__,
            other_columns=data.other_columns,
            reference=None if marginals is None else _build_reference(marginals, sketch, solver, data, plan.rows),
            labeller=data.labeller,
            plane=plane,
            radius=radius,
            scale=data.answer_scale,
        )
        return made if classes is None else classes.run(door, made)

    question = {
        "release": "moments",
        "attributes": plan.sketch.layout.attributes,
        "weight": chosen.to_dict(),
        "plane": plane,
        "radius": radius,
        "reference": plan.rows,
        "fingerprint": fingerprint,
        "price": str(price(events)),
    }
    spending = Spending.open(data, budget, ledger, noise, model_answers=model is not None)
    return _make_once(
        spending,
        request_id or f"release-{uuid4().hex}",
        question,
        Making(events, make if plan.rows else with_progress(make, plan.sketch.layout)),
    )


def _build_reference(
    marginals: NoisyMarginals, sketch: NoisySketch, solver: Solver, data: PrivateData, rows: int
) -> ReferenceData:
    """The reference, with a bar on a terminal: it takes half a minute."""
    from dpexplain.release.reference_building import STEPS, build_reference

    with progress_steps("building the reference", STEPS) as watch:
        return build_reference(marginals, sketch, solver, data, rows, watch)


def _noted(paid: Guarantee, data: PrivateData, door: Door) -> Guarantee:
    """What was paid, with a word about seeded noise, and about the total where more than this was ever released from these data."""
    total, notes = data.spent, [] if door.secure else [SEEDED_NOISE]
    if total.mu > paid.mu * (1 + 1e-9):
        claim = f"(ε={round_up(total.epsilon)}, δ={total.delta:g})-differential privacy"
        notes.append(f"With everything that was released from these data before, it is {claim} in total.")
    return replace(paid, note=" ".join(notes))


def _require_arguments(data: Any, budget: Any, weight: Any, spend: Any, noise: Any) -> None:
    require_kind("data", data, PrivateData, "register the rows first, dpx.PrivateData(rows, domain, model=…)")
    require_kind("budget", budget, Budget, "write release(data, dpx.Budget(epsilon=1.0, delta=1e-6))")
    require_kind("spend", spend, (Budget, NoneType), "pass a part of the budget, dpx.Budget(epsilon=0.1, delta=1e-7)")
    require_kind("weight", weight, (Weight, NoneType), "pass one such as dpx.weights.Gaussian(0.8)")
    if noise is not None:
        require_method("noise", noise, "standard_normal", "leave it out; tests and experiments pass a seeded one")


def _require_one_anchor(anchors: int) -> None:
    if anchors != 1:
        raise ParameterError(
            f"anchors must be 1, got {anchors}: K anchors share one budget, so each gets √K times the noise. Locality comes from "
            "the reference distribution instead, which costs nothing (docs/release.md has the comparison)"
        )


@dataclass(frozen=True, slots=True)
class Making:
    """The plan of a whole release: what it will release, and how the release is made from that."""

    events: tuple[PrivacyEvent, ...]
    make: Callable[[Door], Release]

    def run(self, door: Door) -> Release:
        return self.make(door)


def _make_once(spending: Spending, request_id: str, question: dict[str, Any], plan: Making) -> Release:
    """Nothing leaves before it is paid for and stored, and what was stored under this id before is returned as it is."""
    reserved = spending.reserve(request_id, question, plan)
    if isinstance(reserved, Settled):
        return _release_from_ledger(reserved)
    stored: dict[str, Any] = {}

    def store(_: Paid[Release], result: Release) -> dict[str, Any]:
        stored.update(result._stored())
        return stored

    ((made, settled),) = spending.run([reserved], store)
    return (
        made if settled.answer["sha256"] == stored["sha256"] else _release_from_ledger(settled)
    )  # another process may have been first


def _release_from_ledger(settled: Settled) -> Release:
    """The release that a ledger keeps."""
    if "file" not in settled.answer:
        raise InputError(
            f"the release {settled.request_id!r} was made and paid for, but it is larger than a ledger keeps: load the file that was "
            "saved from it (its SHA-256 is in the ledger), or choose a new request id and pay again"
        )
    return _parse(b64decode(settled.answer["file"]))


@dataclass(frozen=True, eq=False, repr=False)
class Release(ModelQuestions):
    """Public: noisy moments, repaired and factorised, with what they are about and what was paid."""

    solver: Solver
    planes: MomentPlanes
    domain: DomainLike
    weight: Weight
    guarantee: Guarantee
    size: int
    fingerprint: str | None
    library: str
    reference: ReferenceData | None = None
    other_columns: tuple[str, ...] = ()  # of the registered table; queries may have them too
    labeller: Labeller | None = None  # asks the model, in the process that made the release; a file does not have it
    plane: Plane = "fitted"
    radius: float | None = None  # of the ball that holds slopes; None leaves them free, but for the paper's plane
    scale: AnswerScale = field(default_factory=AnswerScale)
    named: Mapping[str, Release] = field(default_factory=dict)  # the same records for other models or classes, by name
    first: Guarantee | None = None  # what was paid before others were added

    @property
    def names(self) -> tuple[str, ...]:
        return self.domain.names

    def explain(
        self,
        record: Any,
        weight: Weight | None = None,
        anchor: float | None = None,
        *,
        plane: Plane | None = None,
        radius: float | None = None,
        target: Any = None,
        extra: Extra = "refuse",
        clip: bool = False,
    ) -> Explanation:
        """Why the model answers as it does at `record`. Free: it reads the release only.

        Another `weight` than the release's own asks for another locality; the farther it is from uniform, the more the answer relies on
        the reference distribution. A release with labelled reference data answers from them, whatever the weight.

        The plane is "fitted" at the record, as LIME's is; "anchored" goes through `anchor`, the model's answer there in [-1, 1]; "paper" goes
        through 0, in a ball of radius 1. How strongly slopes are shrunk is chosen from the released moments and their noise; a `radius` holds
        them in a ball as well, and `.details["cap"]` says where it binds.

        A value may be missing where the domain declares what stands for it; `extra="ignore"` leaves out fields that the domain does not
        know, and `clip=True` asks about the nearest value within the bounds. `.notes` of the answer says what was read how.

        `target` is one of `.targets`: another class, or another model that was added to this release by name.
        """
        if target is not None:
            found = self.of(target).explain(record, weight, anchor, plane=plane, radius=radius, extra=extra, clip=clip)
            return replace(found, details=found.details | self._offered)
        point, notes = read_query(self.domain, record, QueryRules(extra, clip, known_extra=self.other_columns))
        anchors = None if anchor is None else [anchor]
        found = replace(self._answer(point[None], weight, anchors, plane, radius, (notes,))[0], record=record)
        return replace(found, details=found.details | self._offered) if self.named else found

    @property
    def _offered(self) -> dict[str, Any]:
        return {"targets": list(self.named)} if self.named else {}

    def explain_many(
        self,
        records: Any,
        weight: Weight | None = None,
        anchor: Any = None,
        *,
        plane: Plane | None = None,
        radius: float | None = None,
        extra: Extra = "refuse",
        clip: bool = False,
        on_error: OnError = "raise",
    ) -> Explanations:
        """The same for many records: a data frame, a list of dicts, a dict of columns, or an array where all is numeric. `anchor`, where
        it is given, has the model's answer for each. With `on_error="skip"` records that cannot be asked about are left out, and
        `.skipped` says which and why.
        """
        read = read_queries(self.domain, records, QueryRules(extra, clip, on_error, self.other_columns))
        anchors = _chosen(anchor, read.rows, len(read.rows) + len(read.skipped))
        return replace(
            self._answer(read.points, weight, anchors, plane, radius, read.notes), rows=read.rows, skipped=read.skipped
        )

    def influence(self, record: Any, weight: Weight | None = None) -> Explanation:
        """The signed influence sum (1/m) Σ α y (x - z) at `record`, what `dpx.Influence(others="against")` pays for; here it is free.

        Rows that count alike are known from the moments; what a local weight changes is estimated from the reference distribution, and
        that estimate's own bias is not in the error bars (docs/baselines.md has how large it is).
        """
        local = weight or self.weight
        point, notes = read_query(self.domain, record, QueryRules(known_extra=self.other_columns))
        values, error = self.solver.influence(point, local)
        told = {
            "source": "release",
            "quantity": "influence",
            "others": "against",
            "weight": local.kind,
            "fingerprint": self.fingerprint,
            **({"read_as": notes} if notes else {}),
        }
        return Explanation(
            values,
            self.names,
            point,
            free_of_charge(self.guarantee),
            self.guarantee,
            error,
            domain=self.domain,
            record=record,
            details=told,
        )

    def _answer(
        self,
        points: Matrix,
        weight: Weight | None,
        anchor: Any,
        plane: Plane | None,
        radius: float | None,
        notes: tuple[Notes, ...],
    ) -> Explanations:
        require_kind("weight", weight, (Weight, NoneType), "pass one such as dpx.weights.Gaussian(0.8)")
        asked = plane_for(self.plane if plane is None and anchor is None else plane, anchor)
        local, anchors = weight or self.weight, anchors_of(anchor, len(points))
        ball = self._ball(asked, radius)
        found = fit_in_batches(self._source(asked, ball), points, local, anchors, ball)
        return Explanations(self, points, found, local, asked, ball, anchors, notes)

    def _ball(self, plane: Plane, radius: float | None) -> float | None:
        """The radius that holds the slopes: the one asked for, the release's own, or the paper's for its plane."""
        chosen = self.radius if radius is None else Ball(radius).radius
        return PAPER_RADIUS if chosen is None and plane == "paper" else chosen

    def _source(self, plane: Plane, radius: float | None) -> PlaneSource:
        if plane == "fitted" or radius is None:
            return self._reference_planes or self.planes
        return BallPlanes(self._solver, radius, self.planes.average, self.solver.layout)

    @cached_property
    def _reference_planes(self) -> ReferencePlanes | None:
        return None if self.reference is None else reference_planes(self.reference, self.planes)

    @property
    def _solver(self) -> Solver | LocalReference:
        return (self.reference.solver if self.reference else None) or self.solver

    def payload(self) -> dict[str, Any]:
        """Every number an explanation is computed from, in JSON's types. `docs/release.md` has the formulas."""
        labelled = self.reference is not None and self.reference.labels is not None
        records = len(self.reference) if labelled and self.reference else 0
        return payload_of(self.solver, self.planes, self.weight, self.plane, self.radius, self.scale) | {"records": records}

    def save(self, path: str | Path) -> None:
        """Write one file that `dpexplain.load` reads back exactly; `release/file.py` documents the format."""
        content = self._content()
        with file_errors(path, "write"):
            Path(path).write_bytes(content)

    def _content(self) -> bytes:
        header, arrays = own = self._contents()
        more, others = stored_named(own, {name: one._contents() for name, one in self.named.items()})
        return container.write(header | more, arrays | others)

    def _contents(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """(header, arrays) of its own."""
        arrays = solver_arrays(self.solver) | stored_arrays(self.planes) | (self.reference.arrays() if self.reference else {})
        return self._header(), arrays

    @property
    def average(self) -> Vector:
        """The noisy means of the encoded columns: the average record that contributions are compared with."""
        return self.planes.average.values

    @property
    def digest(self) -> str:
        """The SHA-256 of its file."""
        return sha256(self._content()).hexdigest()

    def _stored(self) -> dict[str, Any]:
        """What a ledger stores of it: the whole file, unless that is too large."""
        content = self._content()
        file = {"file": b64encode(content).decode()} if len(content) <= LARGEST_KEPT else {}
        return {"release": "moments", "sha256": sha256(content).hexdigest(), **file}

    def publish(self, path: str | Path, *, title: str = TITLE, outcome: str = OUTCOME, surrogate: Any = False) -> Path:
        """Write one self-contained interactive page; `outcome` says what a positive effect leads towards. Returns its path.

        With `surrogate=True` the page has a compact stand-in for the model and shows its answer and SHAP values for any record: whoever reads
        the page then knows how the model behaves. A release from a file takes the model itself, `surrogate=model`, to measure it by.
        """
        stand_in = None
        if surrogate is not False and surrogate is not None:
            stand_in = self.surrogate(None if surrogate is True else surrogate).payload()
        return publish(self, path, title=title, outcome=outcome, surrogate=stand_in)

    def _header(self) -> dict[str, Any]:
        noise = self.solver.noise
        return {
            "format": "dpexplain.release",
            "domain": self.domain.to_dict(),
            "weight": self.weight.to_dict(),
            "plane": self.plane,
            "radius": self.radius,
            "scale": self.scale.to_dict(),
            "planes": stored_numbers(self.planes),
            "t0": self.solver.t0,
            "noise": {"t1": noise.t1, "s2": noise.s2, "s1": noise.s1},
            "guarantee": self.guarantee.to_dict(),
            "size": self.size,
            "fingerprint": self.fingerprint,
            "library": self.library,
            "other_columns": list(self.other_columns),
        } | ({} if self.first is None else {"first": self.first.mu})

    def __repr__(self) -> str:
        return f"<Release: {self.domain.width} columns, {self.weight.kind} weight. {self.guarantee}>"


def _chosen(anchor: Any, rows: Sequence[int], count: int) -> Any:
    """The anchors of the records that are left, where some of `count` were skipped."""
    return anchor if anchor is None or len(rows) == count else [one for i, one in enumerate(anchor) if i in set(rows)]


def load(path: str | Path) -> Release:
    """Read a release; ReleaseCorrupt unless the file is whole. Needs no private data and no ledger, and executes nothing."""
    if require_regular_file(path) > container.LARGEST:
        raise ReleaseCorrupt("this file is larger than any release: get the file again from its owner")
    with file_errors(path, "read"):
        content = Path(path).read_bytes()
    return _parse(content)


def _parse(content: bytes) -> Release:
    header, arrays = container.read(content)
    try:
        (first, own), others = restore_named(header, arrays)
        named = {name: Release(**restore_parts(*contents)) for name, contents in others}
        made = Release(**restore_parts(first, own), named=named)
        return made if "first" not in first else replace(made, first=replace(made.guarantee, mu=float(first["first"])))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError, MemoryError, DpexplainError) as error:
        raise ReleaseCorrupt(
            f"this release's contents do not fit together ({type(error).__name__}): get the file again from its owner"
        ) from None
