"""Pay once, explain forever: a portable private release that answers any number of queries with no private data at hand."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from types import NoneType
from typing import Any
from uuid import uuid4

import numpy as np

from dpexplain.answers.explanation import Explanation
from dpexplain.arguments import file_errors, require_kind, require_method, require_regular_file
from dpexplain.core import weights
from dpexplain.core.arrays import Matrix
from dpexplain.core.ball import Ball
from dpexplain.core.layout import Layout
from dpexplain.core.weights import Stable, Weight
from dpexplain.data import PrivateData
from dpexplain.domain import Domain, DomainLike, QueryRules, read_queries, read_query
from dpexplain.domain.queries import Extra, Notes, OnError
from dpexplain.errors import DpexplainError, InputError, ParameterError, ReleaseCorrupt
from dpexplain.estimation import reference as ref
from dpexplain.estimation.answer import NoiseLevels, Solver
from dpexplain.estimation.calibrate import calibrate
from dpexplain.estimation.local_reference import LocalReference
from dpexplain.ledger.port import Ledger, Settled
from dpexplain.mechanisms.door import Door
from dpexplain.mechanisms.marginals import NoisyMarginals
from dpexplain.mechanisms.ports import Noise
from dpexplain.mechanisms.sketch import NoisySketch
from dpexplain.privacy.budget import SEEDED_NOISE, Budget, Guarantee, round_up
from dpexplain.privacy.events import PrivacyEvent, price
from dpexplain.privacy.relation import Neighbours
from dpexplain.progress import progress_steps
from dpexplain.registration.labels import Labeller
from dpexplain.release import file as container
from dpexplain.release.announced import with_progress
from dpexplain.release.batch import Explanations, anchors_of, free_of_charge, solve_in_batches
from dpexplain.release.model_questions import ModelQuestions
from dpexplain.release.page import OUTCOME, TITLE, publish
from dpexplain.release.reference_data import ReferenceData, largest_codes, reference_rows, restore_reference
from dpexplain.spending import Paid, Spending
from dpexplain.version import __version__

LARGEST_KEPT = 64 << 20  # bytes of a release file that a ledger keeps: 70 columns take 0.1 MB, 500 take 2
_SUBJECT = "This release, and every explanation from it,"


def release(
    data: PrivateData,
    budget: Budget,
    *,
    weight: Weight | None = None,
    anchors: int = 1,
    radius: float = 1.0,
    noise: Noise | None = None,
    ledger: Ledger | str | None = None,
    spend: Budget | None = None,
    request_id: str | None = None,
    fingerprint: str | None = None,
    reference: bool | int = False,
) -> Release:
    """Release private moments of `data` once; the result explains any number of records free of further charge.

    `budget` is the total of the account that pays and `spend` how much of it to use, by default all. Raises BudgetExhausted before a row
    is read. `weight` and `radius` define the local loss that explanations minimise. The ledger keeps the release: asking again with the
    same `request_id`, after a crash say, returns it and spends nothing. `fingerprint` is any text by which the owner
    recognises the data set later; it is stored as given, and never computed from rows. With `reference=True`, or the number of
    reference records wanted, half of what is spent goes to a private model of the records: reference data labelled by the model, and
    explanations of any locality (docs/locality.md).
    """
    from dpexplain.release.plan import plan_release  # making a release needs much that reading one does not

    _require_arguments(data, budget, weight, spend, noise)
    chosen = weight or Stable()
    chosen.to_dict()  # a weight that cannot be stored is refused before anything is spent
    _require_one_anchor(anchors)
    Ball(radius)
    plan = plan_release(data, (spend or budget).mu, reference_rows(reference))
    budgeted = spend or budget

    def make(door: Door) -> Release:
        sketch, marginals = plan.run(door)
        solver = calibrate(sketch.sums, sketch.query, sketch.sigma, radius, chosen, door.auxiliary_normal)
        labelled = marginals is not None and data.labeller is not None
        paid = Guarantee.of_quanta(
            price(plan.events), budgeted.delta, data.setting.neighbours, subject=_SUBJECT, model_answers=labelled
        )
        return Release(
            solver=solver,
            domain=data.domain,
            weight=chosen,
            guarantee=_noted(paid, data, door),
            size=data.size,
            fingerprint=fingerprint,
            library=__version__,
            other_columns=data.other_columns,
            reference=None if marginals is None else _build_reference(marginals, sketch, solver, data, plan.rows),
            labeller=data.labeller,
        )

    question = {
        "release": "moments",
        "attributes": plan.sketch.layout.attributes,
        "weight": chosen.to_dict(),
        "radius": radius,
        "reference": plan.rows,
        "fingerprint": fingerprint,
        "price": str(price(plan.events)),
    }
    spending = Spending.open(data, budget, ledger, noise, model_answers=bool(plan.rows) and data.labeller is not None)
    return _make_once(
        spending,
        request_id or f"release-{uuid4().hex}",
        question,
        Making(plan.events, make if plan.rows else with_progress(make, plan.sketch.layout)),
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
    domain: DomainLike
    weight: Weight
    guarantee: Guarantee
    size: int
    fingerprint: str | None
    library: str
    reference: ReferenceData | None = None
    other_columns: tuple[str, ...] = ()  # of the registered table; queries may have them too
    labeller: Labeller | None = None  # asks the model, in the process that made the release; a file does not have it

    @property
    def names(self) -> tuple[str, ...]:
        return self.domain.names

    def explain(
        self,
        record: Any,
        weight: Weight | None = None,
        anchor: float | None = None,
        *,
        extra: Extra = "refuse",
        clip: bool = False,
    ) -> Explanation:
        """Why the model answers as it does at `record`. Free: it reads the release only.

        Another `weight` than the release's own asks for another locality; the farther it is from uniform, the more the answer relies on
        the reference distribution. A release with labelled reference data answers from them, whatever the weight. The paper's plane
        goes through 0 at the record; with `anchor`, the model's answer there in [-1, 1], it goes through that, as LIME's does in effect.

        A value may be missing where the domain declares what stands for it; `extra="ignore"` leaves out fields that the domain does not
        know, and `clip=True` asks about the nearest value within the bounds. `.notes` of the answer says what was read how.
        """
        point, notes = read_query(self.domain, record, QueryRules(extra, clip, known_extra=self.other_columns))
        return replace(self._answer(point[None], weight, None if anchor is None else [anchor], (notes,))[0], record=record)

    def explain_many(
        self,
        records: Any,
        weight: Weight | None = None,
        anchor: Any = None,
        *,
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
        return replace(self._answer(read.points, weight, anchors, read.notes), rows=read.rows, skipped=read.skipped)

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

    def _answer(self, points: Matrix, weight: Weight | None, anchor: Any, notes: tuple[Notes, ...]) -> Explanations:
        require_kind("weight", weight, (Weight, NoneType), "pass one such as dpx.weights.Gaussian(0.8)")
        local, anchors = weight or self.weight, anchors_of(anchor, len(points))
        found = solve_in_batches(self._solver, points, local, anchors)
        return Explanations(self, points, found.values, found.errors, local, anchors, notes)

    @property
    def _solver(self) -> Solver | LocalReference:
        return (self.reference.solver if self.reference else None) or self.solver

    def payload(self) -> dict[str, Any]:
        """Every number an explanation is computed from, in JSON's types. `docs/release.md` has the formulas."""
        solver, layout = self.solver, self.solver.layout
        kinds = zip(layout.starts, layout.stops, layout.is_number, strict=True)
        return {
            "records": len(self.reference) if self.reference and self.reference.labels is not None else 0,
            "mean": solver.mean.tolist(),
            "eigenvalues": solver.eigenvalues.tolist(),
            "eigenvectors": solver.eigenvectors.tolist(),
            "t0": solver.t0,
            "t1": solver.t1.tolist(),
            "radius": solver.radius,
            "weight": self.weight.to_dict(),
            "layout": [{"start": s, "stop": e, "kind": "number" if number else "code"} for s, e, number in kinds],
            "reference": {
                "points": solver.reference.codes.tolist(),
                "labels": solver.reference.labels.tolist(),
                "inverse_weight": solver.reference.inverse_weight.tolist(),
            },
            "noise": {
                "sigma_t1": solver.noise.t1,
                "sigma_s2": solver.noise.s2,
                "sigma_s1": solver.noise.s1,
                "calibration": solver.noise.calibration.tolist(),
            },
        }

    def save(self, path: str | Path) -> None:
        """Write one file that `dpexplain.load` reads back exactly; `release/file.py` documents the format."""
        content = self._content()
        with file_errors(path, "write"):
            Path(path).write_bytes(content)

    def _content(self) -> bytes:
        return container.write(self._header(), _arrays(self.solver) | (self.reference.arrays() if self.reference else {}))

    @property
    def digest(self) -> str:
        """The SHA-256 of its file."""
        return sha256(self._content()).hexdigest()

    def _stored(self) -> dict[str, Any]:
        """What a ledger stores of it: the whole file, unless that is too large."""
        content = self._content()
        file = {"file": b64encode(content).decode()} if len(content) <= LARGEST_KEPT else {}
        return {"release": "moments", "sha256": sha256(content).hexdigest(), **file}

    def publish(self, path: str | Path, *, title: str = TITLE, outcome: str = OUTCOME) -> Path:
        """Write one self-contained interactive page; `outcome` says what a positive effect leads towards. Returns its path."""
        return publish(self, path, title=title, outcome=outcome)

    def _header(self) -> dict[str, Any]:
        noise = self.solver.noise
        return {
            "format": "dpexplain.release",
            "domain": self.domain.to_dict(),
            "weight": self.weight.to_dict(),
            "radius": self.solver.radius,
            "t0": self.solver.t0,
            "noise": {"t1": noise.t1, "s2": noise.s2, "s1": noise.s1},
            "guarantee": self.guarantee.to_dict(),
            "size": self.size,
            "fingerprint": self.fingerprint,
            "library": self.library,
            "other_columns": list(self.other_columns),
        }

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
        return _restore(header, arrays)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError, MemoryError, DpexplainError) as error:
        raise ReleaseCorrupt(
            f"this release's contents do not fit together ({type(error).__name__}): get the file again from its owner"
        ) from None


def _arrays(solver: Solver) -> dict[str, Any]:
    codes = solver.reference.codes
    return {
        "mean": solver.mean,
        "eigenvalues": solver.eigenvalues,
        "eigenvectors": solver.eigenvectors,
        "t1": solver.t1,
        "calibration": solver.noise.calibration,
        "codes": codes.astype(np.uint16 if codes.max() < 2**16 else np.uint32),
        "labels": solver.reference.labels,
        "inverse_weight": solver.reference.inverse_weight,
    }


def _restore(header: dict[str, Any], arrays: dict[str, Any]) -> Release:
    if header["format"] != "dpexplain.release":
        raise ValueError("format")
    domain = Domain.from_dict(header["domain"])
    layout, noise = Layout.of(domain.blocks), header["noise"]
    extra = {name: arrays.pop(name) for name in list(arrays) if name.startswith("reference_")}
    _require_fitting(arrays, layout)
    levels = {name: _positive(noise[name], zero=True) for name in ("t1", "s2", "s1")}
    solver = Solver(
        mean=arrays["mean"],
        eigenvalues=arrays["eigenvalues"],
        eigenvectors=arrays["eigenvectors"],
        t0=float(header["t0"]),
        t1=arrays["t1"],
        radius=_positive(header["radius"]),
        noise=NoiseLevels(**levels, calibration=arrays["calibration"]),
        layout=layout,
        reference=ref.Reference(arrays["codes"].astype(np.int64), arrays["labels"], arrays["inverse_weight"]),
    )
    paid = header["guarantee"]
    said = {"subject": _SUBJECT, "private": paid["private"], "note": paid["note"], "model_answers": "model_answers" in paid}
    guarantee = Guarantee(_positive(paid["mu"]), _positive(paid["delta"]), Neighbours.from_dict(paid), **said)
    _require_meaningful(guarantee)
    weight, reference = weights.from_dict(header["weight"]), restore_reference(extra, domain, solver)
    return Release(
        solver,
        domain,
        weight,
        guarantee,
        int(header["size"]),
        header["fingerprint"],
        str(header["library"]),
        reference,
        tuple(map(str, header.get("other_columns", ()))),
    )


def _require_meaningful(guarantee: Guarantee) -> None:
    """A file can be sealed again with anything in it: a guarantee must be one that can be stated."""
    if not isinstance(guarantee.private, bool) or not isinstance(guarantee.note, str):
        raise ValueError("guarantee")
    if not (isinstance(guarantee.neighbours.unit, str | None) and np.isfinite(guarantee.epsilon) and str(guarantee)):
        raise ValueError("guarantee")


def _require_fitting(arrays: dict[str, Any], layout: Layout) -> None:
    """Shapes, ranges and finiteness: a checksum says that bytes are whole, not that they make sense."""
    n, points = layout.width, arrays["labels"].shape[0]
    shapes = dict.fromkeys(("mean", "eigenvalues", "t1", "calibration"), (n,)) | {"eigenvectors": (n, n)}
    shapes |= {"codes": (layout.attributes, points), "labels": (points,), "inverse_weight": (points,)}
    if {name: array.shape for name, array in arrays.items()} != shapes or not points:
        raise ValueError("shapes")
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise ValueError("numbers that are not finite")
    positive = (arrays["eigenvalues"] > 0).all() and (arrays["inverse_weight"] > 0).all() and (arrays["calibration"] >= 0).all()
    if not positive or (arrays["codes"] > largest_codes(layout)[:, None]).any():
        raise ValueError("ranges")


def _positive(value: Any, *, zero: bool = False) -> float:
    number = float(value)
    if not (np.isfinite(number) and (number > 0 or (zero and number == 0))):
        raise ValueError("numbers out of range")
    return number
