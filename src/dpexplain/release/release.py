"""A portable private release, which answers any number of queries without access to private data."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

from dpexplain.answers.contributions import feature_names
from dpexplain.answers.explanation import Explanation
from dpexplain.answers.shared_effects import shared_effects
from dpexplain.arguments import file_errors, require_kind, require_regular_file
from dpexplain.core.answer_scale import AnswerScale
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.ball import Ball
from dpexplain.core.plane import PAPER_RADIUS, Plane, plane_for
from dpexplain.core.weights import Gaussian, Nearest, Weight
from dpexplain.domain import DomainLike, QueryRules, read_queries, read_query
from dpexplain.domain.queries import Extra, OnError, Queries
from dpexplain.errors import DpexplainError, InputError, ReleaseCorrupt
from dpexplain.estimation.answer import Solver
from dpexplain.estimation.local_reference import LocalReference
from dpexplain.estimation.mixed_planes import MixedPlanes
from dpexplain.estimation.moment_planes import MomentPlanes
from dpexplain.estimation.nearest import choose_widths, wanted_share
from dpexplain.ledger.port import Settled
from dpexplain.privacy.budget import Guarantee
from dpexplain.privacy.model_card import ModelCard
from dpexplain.privacy.person_guarantees import PersonGuarantees
from dpexplain.registration.labels import Labeller
from dpexplain.release import file as container
from dpexplain.release.batch import Explanations, anchors_of, fit_by_width, fit_in_batches, free_of_charge
from dpexplain.release.card_section import card_section
from dpexplain.release.contents import payload_of, restore_parts, solver_arrays
from dpexplain.release.model_questions import ModelQuestions
from dpexplain.release.named import restore_named, store_named
from dpexplain.release.page import OUTCOME, TITLE, publish
from dpexplain.release.page_targets import PageTarget, PageTargets
from dpexplain.release.reference_data import ReferenceData
from dpexplain.release.release_planes import (
    BallPlanes,
    PlaneSource,
    reference_planes,
    stored_arrays,
    stored_numbers,
)

if TYPE_CHECKING:
    from dpexplain.estimation.compiled_planes import CompiledPlanes

LARGEST_KEPT = 64 << 20  # bytes of a release file that a ledger stores: 70 columns take 0.1 MB, 500 take 2


@dataclass(frozen=True, eq=False, repr=False)
class Release(ModelQuestions):
    """Noisy moments, repaired and factorised, with their domain and their guarantee. All of it is public."""

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
    model_card: ModelCard | None = None  # how private the model's training was, as declared with the data
    # of `planes`: quicker where many questions are asked one by one (`release/compiled.py`)
    compiled: CompiledPlanes | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return self.domain.names

    @property
    def unused_ranges(self) -> tuple[str, ...]:
        """Numbers that vary by less than 3 % of their declared ranges, as far as noise shows it: their slopes are hardly known.

        Declare bounds that most rows are within before paying again; values beyond them are clamped. This is read off the release, and costs nothing.
        """
        names = feature_names(self.domain)
        return tuple(names[i] for i in self.planes.idle_numbers)

    @property
    def guarantees(self) -> PersonGuarantees:
        """The guarantees for a person in the explanation data, in the model's training data (by its card), and in both."""
        return PersonGuarantees.of(self.guarantee, self.size, self.model_card)

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

        - `weight` asks for a locality that differs from the release's own. The farther it is from uniform, the more the answer relies on the
          reference distribution. `weights.Nearest(2000)` chooses the width for each record, from what is released, so that about 2,000 rows
          count; `.details["width"]` has it. A release with labelled reference data answers from them, whatever the weight.
        - `plane` is "fitted" at the record, as LIME's is; "anchored" through `anchor`, the model's answer there in its own units (`.scale`: a
          probability from 0 to 1, a value within its bounds, or a label from -1 to 1 where only labels were registered); or "paper",
          through 0, in a ball of radius 1.
        - `radius` holds the slopes in a ball, and `.details["cap"]` states where it binds. How strongly slopes are shrunk is chosen from the
          released moments and their noise in any case.
        - `target` is one of `.targets`: another class, or another model that was added to this release by name.
        - `extra="ignore"` leaves out fields that the domain does not declare, and `clip=True` asks about the nearest value within the bounds. A
          value may be missing where the domain declares a substitute. `.notes` of the answer states how values were read.
        """
        if target is not None:
            found = self.of(target).explain(record, weight, anchor, plane=plane, radius=radius, extra=extra, clip=clip)
            return replace(found, details=found.details | self.target_details)
        point, notes = read_query(self.domain, record, self.other_columns, extra, clip)
        read = Queries(point[None], (record,), (notes,), ())
        return self._answer(read, weight, None if anchor is None else [anchor], plane, radius).explanation_at(
            0, record, self.target_details
        )

    @property
    def target_details(self) -> dict[str, Any]:
        """The entries about other targets in the details of an answer."""
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
        `.skipped` has their positions and the reasons.
        """
        read = read_queries(self.domain, records, QueryRules(extra, clip, on_error, self.other_columns))
        anchors = _select_anchors(anchor, read.rows, len(read.rows) + len(read.skipped))
        return self._answer(read, weight, anchors, plane, radius)

    def influence(self, record: Any, weight: Weight | None = None) -> Explanation:
        """The signed influence sum (1/m) Σ α y (x - z) at `record`. `dpx.Influence(others="against")` pays for it; here it is free.

        The sum for equal weights follows from the moments; the change due to a local weight is estimated from the reference distribution, and
        that estimate's own bias is not in the error bars (docs/baselines.md states its size).
        """
        local = weight or self.weight
        point, notes = read_query(self.domain, record, self.other_columns)
        widths = self._widths(point[None], local)
        values, error = self.solver.influence(point, local if widths is None else Gaussian(float(widths[0])))
        details = {
            **({} if widths is None else {"width": float(widths[0])}),
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
            details=details,
        )

    def _answer(
        self,
        read: Queries,
        weight: Weight | None,
        anchor: Any,
        plane: Plane | None,
        radius: float | None,
    ) -> Explanations:
        asked = plane_for(self.plane if plane is None and anchor is None else plane, anchor)
        anchors, ball = anchors_of(anchor, len(read.points), self.scale), self._ball(asked, radius)
        return self.explain_from(self._source(asked, ball), read, weight, asked, ball, anchors)

    def explain_from(
        self,
        source: PlaneSource,
        read: Queries,
        weight: Weight | None,
        plane: Plane = "fitted",
        ball: float | None = None,
        anchors: Vector | None = None,
    ) -> Explanations:
        """Explanations of records by planes that are fitted to `source`."""
        require_kind("weight", weight, (Weight, NoneType), "Pass one such as dpx.weights.Gaussian(0.8)")
        points, local = read.points, weight or self.weight
        widths = self._widths(points, local)
        if widths is None:
            found = fit_in_batches(source, points, local, anchors, ball)
        else:
            found = fit_by_width(source, points, widths, anchors, ball)
        return Explanations(self, points, found, local, plane, ball, anchors, read.notes, read.rows, read.skipped, widths)

    def _widths(self, points: Matrix, weight: Weight) -> Vector | None:
        """The width of each question where it is to be chosen; None where the weight has its own. Reads what is released alone."""
        if not isinstance(weight, Nearest):
            return None
        mixed, planes = self._reference_planes, self.planes
        records, base = (
            (planes.points, planes.inverse_weight) if mixed is None else (mixed.reference.points, mixed.reference.weights)
        )
        return choose_widths(records, base, points, wanted_share(weight.rows, self.size, *records.shape), planes.layout.metric)

    def _ball(self, plane: Plane, radius: float | None) -> float | None:
        """The radius that holds the slopes: the one asked for, the release's own, or the paper's for its plane."""
        chosen = self.radius if radius is None else Ball(radius).radius
        return PAPER_RADIUS if chosen is None and plane == "paper" else chosen

    def _source(self, plane: Plane, radius: float | None) -> PlaneSource:
        if plane == "fitted" or radius is None:
            return self._reference_planes or self._own_planes
        return BallPlanes(self._solver, radius, self.planes.average, self.solver.layout)

    @cached_property
    def shared_effects(self) -> dict[str, Any]:
        """The entries about features that go together in the details of an answer: a plane shares their effects."""
        return shared_effects(self.planes.related, self.domain)

    @property
    def _own_planes(self) -> PlaneSource:
        return self.compiled if self.compiled is not None and self.compiled.given is self.planes else self.planes

    @cached_property
    def _reference_planes(self) -> MixedPlanes | None:
        return None if self.reference is None else reference_planes(self.reference, self.planes, self.size)

    @cached_property
    def _solver(self) -> Solver | LocalReference:
        return (self.reference.solver(self.size) if self.reference else None) or self.solver

    def payload(self) -> dict[str, Any]:
        """Every number an explanation is computed from, in JSON's types. `docs/release.md` has the formulas."""
        labelled = self.reference is not None and self.reference.labels is not None
        records = len(self.reference) if labelled and self.reference else 0
        found = payload_of(self.solver, self.planes, self.weight, self.plane, self.radius, self.scale) | {"records": records}
        found |= self.shared_effects
        if isinstance(self.weight, Nearest):
            found["weight"]["share"] = wanted_share(self.weight.rows, self.size, *self.planes.points.shape)
        return found

    def save(self, path: str | Path) -> None:
        """Write one file that `dpexplain.load` reads back exactly; `release/file.py` documents the format."""
        content = self._content()
        with file_errors(path, "write"):
            Path(path).write_bytes(content)

    def _content(self) -> bytes:
        header, arrays = own = self._contents()
        more, others = store_named(own, {name: one._contents() for name, one in self.named.items()})
        return container.write(header | more, arrays | others)

    def _contents(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The header and the arrays of this release alone."""
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

    def stored_answer(self) -> dict[str, Any]:
        """The answer that a ledger stores: the whole file, unless that is too large."""
        content = self._content()
        file = {"file": b64encode(content).decode()} if len(content) <= LARGEST_KEPT else {}
        return {"release": "moments", "sha256": sha256(content).hexdigest(), **file}

    def publish(self, path: str | Path, *, title: str = TITLE, outcome: str = OUTCOME, surrogate: Any = False) -> Path:
        """Write one self-contained interactive page; `outcome` says what a positive effect leads towards. Returns its path.

        With `surrogate=True` the page has a surrogate of the model and shows its answer and SHAP values for any record: whoever reads
        the page can then evaluate the model approximately. A release from a file takes the model itself, `surrogate=model`, to measure its error.
        Where there are `.targets`, the reader chooses among them.
        """
        asked, model = surrogate is not False and surrogate is not None, None if surrogate is True else surrogate
        stand_in = self.surrogate(model).payload() if asked else None
        of_class = model if self.targets_kind == "class" else None  # another model's errors are measured by that one alone
        choices = tuple(
            PageTarget(name, one.payload(), self.surrogate(of_class, target=name).payload() if asked else None)
            for name, one in self.named.items()
        )
        targets = PageTargets(self.targets_kind, choices) if choices else None
        return publish(self, path, title=title, outcome=outcome, surrogate=stand_in, targets=targets)

    def model_card_section(self) -> str:
        """Markdown for a model card: the guarantee, what was declared public, and what is not protected."""
        return card_section(self)

    def _header(self) -> dict[str, Any]:
        noise = self.solver.noise
        return {
            "format": "dpexplain.release",
            "guarantee": self.guarantee.to_dict(),
            "domain": self.domain.to_dict(),
            "weight": self.weight.to_dict(),
            "plane": self.plane,
            "radius": self.radius,
            "scale": self.scale.to_dict(),
            "planes": stored_numbers(self.planes),
            "t0": self.solver.t0,
            "noise": {"t1": noise.t1, "s2": noise.s2, "s1": noise.s1},
            "size": self.size,
            "fingerprint": self.fingerprint,
            "library": self.library,
            "other_columns": list(self.other_columns),
            "model_card": None if self.model_card is None else self.model_card.to_dict(),
        } | ({} if self.first is None else {"first": self.first.mu})

    def __repr__(self) -> str:
        return f"<Release: {self.domain.width} columns, {self.weight.kind} weight. {self.guarantee}>"


def _select_anchors(anchor: Any, rows: Sequence[int], count: int) -> Any:
    """The anchors of the records that are left, where some of `count` were skipped."""
    return anchor if anchor is None or len(rows) == count else [one for i, one in enumerate(anchor) if i in set(rows)]


def load(path: str | Path) -> Release:
    """Read a release; ReleaseCorrupt unless the file is whole. Needs no private data and no ledger, and executes nothing."""
    if require_regular_file(path) > container.LARGEST:
        raise ReleaseCorrupt("this file is larger than any release. Get the file again from its owner")
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
            f"this release's contents do not fit together ({type(error).__name__}). Get the file again from its owner"
        ) from None


def release_from_ledger(settled: Settled) -> Release:
    """The release that a ledger stores."""
    if "file" not in settled.answer:
        raise InputError(
            f"the release {settled.request_id!r} was made and paid for, but it is larger than a ledger keeps. Load the file that was "
            "saved from it (its SHA-256 is in the ledger), or choose a new request id and pay again"
        )
    return _parse(b64decode(settled.answer["file"]))
