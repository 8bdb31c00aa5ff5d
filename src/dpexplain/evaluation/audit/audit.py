"""An empirical check of a privacy claim: runs a mechanism on two neighbouring data sets, guesses from the output which one it was, and counts errors.

The claim bounds the success of any guess from above; counting bounds it from below (`evaluation/audit/bounds.py`). If the second bound passes
the first, the claim is wrong. Otherwise nothing is proven: an audit can refute a claim, but not prove it. `proofs/audit.md`, `docs/audit.md`.

Offline only: it reads private rows without paying.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import sqrt
from typing import Any, Literal, cast

import numpy as np

from dpexplain.arguments import quote, require_method
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.data import PrivateData
from dpexplain.domain import Domain
from dpexplain.errors import ParameterError
from dpexplain.evaluation.audit.bounds import estimated_mu, mu_from_scores, noticed_factor
from dpexplain.evaluation.audit.distinguisher import Distinguisher, stack_transcripts
from dpexplain.evaluation.audit.setup import Canary, MadeUp, World, find_canary, made_up, world
from dpexplain.evaluation.audit.targets import Refining, Releasing, Subject, subject_of
from dpexplain.evaluation.audit.transcript import Ratio, Record
from dpexplain.evaluation.baselines.inputs import encoded_point
from dpexplain.evaluation.metrics.stored_moments import RememberedRows
from dpexplain.mechanisms.ports import Mechanism, Noise, Rows
from dpexplain.mechanisms.setting import AuditSetup
from dpexplain.noise.secure import SecureNoise
from dpexplain.noise.seeded import SeededNoise
from dpexplain.privacy import gdp
from dpexplain.privacy.budget import round_up
from dpexplain.privacy.events import mu_of
from dpexplain.privacy.relation import Neighbours, Relation
from dpexplain.progress import with_bar

View = Literal["transcript", "answer"]
MakeNoise = Callable[[int], Noise]
_TARGET = 1.75  # the μ of a group of canaries at which bounds from counts are tightest
_CHOOSING = 0.2  # of the runs
_ROWS = {"pull": 100, "still": 25, "spread": 400}  # for each canary: the more there are, the less a path or a centre varies
_SEEN = {"transcript": "everything that accounting assumes is seen", "answer": "what a user sees"}


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found. `mu` is a lower bound on the true μ with probability `confidence`; `estimate` is the likely μ, and bounds nothing.

    A sound mechanism fails with probability at most 1 - `confidence`. `notices` is by what factor the noise would have to be too small for an audit
    like this one to fail nine times out of ten; None where no error of the noise would be detected.
    """

    name: str
    view: View
    mu: float
    claimed_mu: float
    estimate: float
    delta: float
    confidence: float
    runs: int  # that were counted, on each data set
    copies: int  # records (or owners) in which the two data sets differ
    neighbours: Neighbours
    notices: float | None

    @property
    def epsilon(self) -> float:
        """The lower bound as the ε of its Gaussian curve at δ."""
        return gdp.epsilon(self.mu, self.delta)

    @property
    def claimed_epsilon(self) -> float:
        return gdp.epsilon(self.claimed_mu, self.delta)

    @property
    def passed(self) -> bool:
        return self.mu <= self.claimed_mu

    def __str__(self) -> str:
        found = f"{self.runs:,} runs on each of two neighbouring data sets show ε ≥ {self.epsilon:.3g} (μ ≥ {self.mu:.3g})"
        claim = f"ε = {round_up(self.claimed_epsilon)} at δ = {self.delta:g} (μ = {self.claimed_mu:.3g})"
        sure = f"with {self.confidence:.4g} confidence, from {_SEEN[self.view]}"
        if self.passed:
            return f"{self.name}: the claim of {claim} stands. {found} {sure}. {self._power}"
        return f"{self.name}: the claim of {claim} is REFUTED. {found} {sure}."

    @property
    def _power(self) -> str:
        if self.notices is None:
            return "No error in the noise would have shown here."
        return f"Noise {max(self.notices, 1.0):.2f} times too small would have been noticed nine times out of ten."

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "view": self.view,
            "passed": self.passed,
            "mu": self.mu,
            "epsilon": self.epsilon,
            "claimed_mu": self.claimed_mu,
            "claimed_epsilon": self.claimed_epsilon,
            "estimated_mu": self.estimate,
            "delta": self.delta,
            "confidence": self.confidence,
            "runs": self.runs,
            "copies": self.copies,
            **self.neighbours.to_dict(),
            "notices": self.notices,
            "statement": str(self),
        }


def audit(
    mechanism: Mechanism | Releasing | Refining,
    data: PrivateData | None = None,
    *,
    view: View = "transcript",
    runs: int = 1000,
    confidence: float = 0.99,
    domain: Domain | None = None,
    relation: Relation | str = Relation.ADD_REMOVE,
    query: Any = None,
    queries: int | None = None,
    canary: tuple[Any, float] | None = None,
    copies: int | None = None,
    seed: int | None = None,
    noise: MakeNoise | None = None,
) -> Audit:
    """An empirical lower bound on what `mechanism` really costs, against what it claims.

    - `evaluation.Releasing(ε, δ)` stands for `dpx.release`, `evaluation.Refining(ε, δ)` for `release.refine`.
    - Without `data` the audit makes up worst-case data, in `domain` if given. With `data` it uses them and a canary beside them; nothing is charged.
    - `view` is the output that guesses use: the "transcript", each released number, which is what accounting pays for; or the "answer" alone, which
      reveals less where there are many noisy steps.
    - `canary` is a record and its label; by default the record that moves the statistic most is searched. The data sets differ in `copies` of it: k
      copies of a record show kμ, and errors are detected best near kμ = 2.
    - `query` is a record or a list of records that are asked about one after another; `queries` is their number where they are made up.
    - Of the `runs` on each data set the first fifth (30 to 200) choose the guess, on noise that both share. The others are counted, on `SecureNoise`
      unless there is a `seed`. `noise` makes noise from a number instead: for tests with noise that is wrong.
    """
    require_method(
        "mechanism",
        mechanism,
        "to_dict",
        "Pass one such as dpx.Basic(epsilon=1.0, delta=1e-6), or evaluation.Releasing(1.0, 1e-6)",
    )
    _require(view, runs, confidence, data, domain)
    stage = _set_up(mechanism, data, _Scenario(domain, relation, query, queries, copies), view)
    pair, name = _pair_of(stage, subject_of(mechanism, stage.queries, view), canary), _name_of(mechanism, view)
    choosing = min(max(int(runs * _CHOOSING), 30), 200)
    counted, error, make = runs - choosing, 1 - confidence, noise or SeededNoise
    learnt = [pair.run(make(1 + i), make(1 + i)) for i in with_bar(range(choosing), f"{name}: choosing")]
    with_it, without = _outputs(learnt, view)
    telling = Distinguisher.learn_distinguisher(with_it, without, trusted=0 if view == "transcript" else None).with_threshold(
        with_it, without, counted, error / 5
    )
    sources = [_source(seed, noise, which) for which in (0, 1)]
    seen = [pair.run(*sources) for _ in with_bar(range(counted), name)]
    scores = [telling.score(side) for side in _outputs(seen, view, with_it.shape[1])]
    claimed = mu_of(max(record.quanta for both in seen for record in both))
    return _audit_result(_Evidence(scores, telling.threshold, claimed), stage, name, view, mechanism.delta, confidence)


def _name_of(mechanism: Any, view: View) -> str:
    plane, by = getattr(mechanism, "plane", None), getattr(mechanism, "by", None)
    kind = (f", {plane}" if plane in ("anchored", "paper") else "") + (f" by {by}" if by else "")
    return f"{mechanism.to_dict()['mechanism']}{kind} ({view})"


@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    """What is audited, and the two data sets that it is run on."""

    subject: Subject
    inside: World
    outside: World
    ratio: Ratio

    def run(self, first: Noise, second: Noise) -> tuple[Record, Record]:
        """One run on each data set, the first with the canary."""
        return self._run_on(self.inside, first), self._run_on(self.outside, second)

    def _run_on(self, one: World, noise: Noise) -> Record:
        return self.subject.run(one.fresh(), noise, self.ratio.with_stored_sums())


def _outputs(runs: Sequence[tuple[Record, Record]], view: View, width: int | None = None) -> list[Matrix]:
    """What the attacker sees of each data set, one row a run."""
    first = stack_transcripts([getattr(one, view) for one, _ in runs], width)
    return [first, stack_transcripts([getattr(other, view) for _, other in runs], width)]


@dataclass(frozen=True, slots=True, eq=False)
class _Scenario:
    """What the caller chose about the data sets and the questions. None leaves a choice to the audit."""

    domain: Domain | None
    relation: Relation | str
    query: Any
    queries: int | None
    copies: int | None


@dataclass(frozen=True, slots=True, eq=False)
class _Evidence:
    """What the counted runs showed: scores with the canary and without it, the threshold of the guess, and the largest price claimed."""

    scores: list[Vector]
    threshold: float
    claimed_mu: float


@dataclass(frozen=True, slots=True, eq=False)
class _Stage:
    """The data and the questions of an audit."""

    data: PrivateData
    queries: Sequence[Any]
    point: Vector  # of the last query, which depends on the longest history
    copies: int
    made: MadeUp | None  # the records themselves, where they are made up


def _set_up(mechanism: Any, data: PrivateData | None, scenario: _Scenario, view: View) -> _Stage:
    """The data, the questions and the size of the group."""
    query = scenario.query
    asked = scenario.queries or (len(query) if isinstance(query, list) else _setup_for(mechanism, view).queries)
    mu = gdp.mu(mechanism.epsilon, mechanism.delta) * sqrt(asked)
    group = scenario.copies or max(round(_TARGET / mu), 1)
    made = None
    if data is None:
        setup = _setup_for(mechanism, view)
        made, points = made_up(
            scenario.domain,
            max(200, group * _ROWS[setup.rows]),
            Relation.parse(scenario.relation).value,
            setup.rows,
            asked,
            setup.gap,
        )
        data = made.register()
        query = [_record_at(data.domain, one) for one in points] if query is None else query
    if query is None and not isinstance(mechanism, (Releasing, Refining)):
        raise ParameterError("there is no record to ask about. Pass query=, a record of the data's domain, or a list of them")
    given = query if isinstance(query, list) else [] if query is None else [query]
    point = encoded_point(data.domain, given[-1]) if given else np.full(data.domain.width, 0.0)
    return _Stage(data, given, point, min(group, max(data.size // data.setting.neighbours.rows_per_unit, 1)), made)


def _setup_for(mechanism: Any, view: View) -> AuditSetup:
    """The setup in which the mechanism's errors are largest, as it declares. A last iterate reveals most where other rows have no gradient."""
    setup: AuditSetup = getattr(mechanism, "audit_setup", AuditSetup())
    return replace(setup, rows="still") if view == "answer" and setup.rows == "pull" else setup


def _record_at(domain: Any, point: Vector) -> Any:
    return {name: column[0] for name, column in domain.decode(point[None]).items()}


def _pair_of(stage: _Stage, subject: Subject, given: tuple[Any, float] | None) -> _Pair:
    """The data with the canary, and without it, or with its opposite where a record is replaced.

    Made-up records are registered again with the canaries among them. An owner's data are registered already, so canaries are put beside them.
    """
    data, domain = stage.data, stage.data.domain
    rows = cast(Rows, RememberedRows(data.private_rows))
    make, alone = partial(world, data, rows), world(data, rows)

    def furthest_from(other: World) -> Canary:
        return find_canary(lambda one: _distance(subject, make(one), other), domain, stage.point)

    canary = furthest_from(alone) if given is None else Canary(encoded_point(domain, given[0]), given[1])
    other = None if data.setting.neighbours.relation is Relation.ADD_REMOVE else furthest_from(make(canary))
    final = make if stage.made is None else stage.made.world
    inside, outside = final(canary, stage.copies), final(other, stage.copies)
    return _Pair(subject, inside, outside, Ratio(inside.rows, outside.rows))


def _distance(subject: Subject, one: World, other: World) -> float:
    """How far apart two data sets are in what is released, in units of the noise, at the public parameters of one run on the `other`.

    The parameters must be the same: different paths are further apart than accounting allows, whatever the noise.
    """
    seen = subject.run(other.fresh(), SeededNoise(0), Ratio(one.rows, other.rows).with_stored_sums())
    if seen.released:
        return sqrt(seen.apart)
    a, b = stack_transcripts([np.concatenate(subject.run(each.fresh(), SeededNoise(0)).values) for each in (one, other)])
    return float(np.linalg.norm(a - b))


def _source(seed: int | None, noise: MakeNoise | None, which: int) -> Noise:
    if seed is None and noise is None:
        return SecureNoise()
    return (noise or SeededNoise)(((seed or 0) + 1) * (1 << 32) + which)


def _audit_result(evidence: _Evidence, stage: _Stage, name: str, view: View, delta: float, confidence: float) -> Audit:
    scores, claimed = evidence.scores, evidence.claimed_mu
    error, runs, copies = 1 - confidence, len(scores[0]), stage.copies
    likely = estimated_mu(*scores)
    return Audit(
        name=name,
        view=view,
        mu=mu_from_scores(scores[0], scores[1], evidence.threshold, error) / copies,
        claimed_mu=claimed,
        estimate=likely / copies,
        delta=delta,
        confidence=confidence,
        runs=runs,
        copies=copies,
        neighbours=stage.data.setting.neighbours,
        notices=noticed_factor(min(likely, claimed * copies), claimed * copies, runs, error),
    )


def _require(view: str, runs: int, confidence: float, data: Any, domain: Any) -> None:
    if view not in _SEEN:
        raise ParameterError(f"view must be 'transcript' or 'answer', got {quote(view)}")
    if runs < 60:
        raise ParameterError(
            f"runs must be at least 60 to show anything, got {quote(runs)}: 1000 notice noise that is 20 % too small"
        )
    if not 0.5 <= confidence < 1:
        raise ParameterError(f"confidence must lie between 0.5 and 1, got {quote(confidence)}. Try 0.99")
    if data is not None and domain is not None:
        raise ParameterError("both data= and domain= were passed, and data have a domain of their own. Leave one of them out")
