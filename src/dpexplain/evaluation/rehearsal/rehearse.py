"""`rehearse`: noise draws of a release at several ε on the owner's own rows, compared with the exact answers. Offline only.

Nothing here is private: exact answers, coverage and groups are computed from private rows without noise. Rehearsals run on a copy of the
data's public facts with an account of its own, so that nothing is spent from the owner's ledgers and budgets.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from time import perf_counter
from typing import Any, Literal, get_args

import numpy as np

from dpexplain.arguments import is_finite, quote, require_kind
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.plane import Plane, require_plane
from dpexplain.core.release_moments import WIDEST_PAID
from dpexplain.core.weights import Stable, Weight
from dpexplain.data import PrivateData
from dpexplain.domain import Domain
from dpexplain.errors import ParameterError, WeakBudget
from dpexplain.evaluation.metrics.agreement import strongest
from dpexplain.evaluation.metrics.fidelity import compare
from dpexplain.evaluation.rehearsal.faithfulness_comparison import MOST, measure_faithfulness
from dpexplain.evaluation.rehearsal.groups import Members, compare_groups, form_groups, require_features
from dpexplain.evaluation.rehearsal.questions import ExactAnswers, Questions, anchors_for, choose_questions
from dpexplain.evaluation.rehearsal.rehearsal_result import NearRows, Quality, Rehearsal
from dpexplain.explainer import Explainer
from dpexplain.mechanisms.registry import Adaptive, Basic
from dpexplain.noise.seeded import SeededNoise
from dpexplain.privacy import expected_quality
from dpexplain.privacy.budget import Budget
from dpexplain.progress import ProgressCallback, progress_steps
from dpexplain.release.making import release

Way = Literal["release", "reference", "basic", "adaptive"]
WAYS: tuple[Way, ...] = get_args(Way)
_PAID_EACH: dict[str, Any] = {"basic": Basic, "adaptive": Adaptive}
_PLENTY = 1e6  # the ε of the account that a rehearsal draws on: it is thrown away with it
_ERRORS = 2.0
_TOP = 5


@dataclass(frozen=True, slots=True, eq=False)
class _Draw:
    """Answers of one draw of the noise, one row for each record; errors are None where the way has none."""

    slopes: Matrix
    errors: Matrix | None
    added: Matrix
    added_errors: Matrix | None
    rows: Vector | None
    weights: tuple[Weight, ...]
    seconds: tuple[float | None, float]  # making it, where it is made once, and one answer


def rehearse(
    data: PrivateData,
    epsilons: Sequence[float] = (0.1, 0.3, 1.0),
    *,
    delta: float = 1e-6,
    ways: Sequence[Way] = ("release",),
    records: Any = None,
    queries: int = 40,
    draws: int = 5,
    weight: Weight | None = None,
    plane: Plane = "fitted",
    groups: Sequence[str] | None = None,
    seed: int = 0,
) -> Rehearsal:
    """Measure the quality of answers at each total ε, before anything is published. For the data's owner only.

    Reads private rows without paying, spends nothing and stores nothing. `ways` are "release", "reference" (a release with reference
    records), "basic" (where ε is the price of each answer) and "adaptive" (of the first). `records` are asked about, or else `queries` private rows.
    `draws` is how often the noise is drawn for each ε, `groups` the features by which people are grouped (all, unless given).
    """
    _require_arguments(data, epsilons, delta, ways, queries, draws, weight)
    require_plane(plane)
    require_features(data.domain, groups)
    local, total = weight or Stable(), len(ways) * len(epsilons) * draws
    questions = choose_questions(data, records, queries, seed)
    anchors = anchors_for(plane, questions, data.answer_scale)
    asked, exact = _Asked(data, questions, anchors, local, plane, delta, draws, seed), ExactAnswers(data, questions, plane)
    steps = len(questions) + total + min(MOST, len(questions))
    with progress_steps("rehearsing", steps) as watch, warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakBudget)
        return _run(asked, exact, [(way, epsilon) for way in ways for epsilon in epsilons], groups, watch)


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    data: PrivateData
    questions: Questions
    anchors: Sequence[float] | None
    weight: Weight
    plane: Plane
    delta: float
    draws: int
    seed: int

    def draw(self, way: Way, epsilon: float, seed: int) -> _Draw:
        """One draw of the noise, on a copy of the data that shares their rows and nothing that is spent."""
        copy = self.data.with_rows(self.data.private_rows)
        return self._paid_each(copy, way, epsilon, seed) if way in _PAID_EACH else self._release_copy(copy, way, epsilon, seed)

    def _release_copy(self, copy: PrivateData, way: Way, epsilon: float, seed: int) -> _Draw:
        start = perf_counter()
        made = release(copy, Budget(epsilon, self.delta), reference=way == "reference", noise=SeededNoise(seed))
        between = perf_counter()
        found = made.explain_many(self.questions.records, self.weight, self.anchors, plane=self.plane)
        seconds = between - start, (perf_counter() - between) / len(self.questions)
        planes = found.found
        known = not np.isnan(planes.added_errors).any()
        rows = None if np.isnan(planes.share).any() else planes.share * copy.size
        errors = planes.added_errors if known else None
        weights = tuple(found.weight_of(i) for i in range(len(found)))
        return _Draw(planes.values, planes.errors, planes.added, errors, rows, weights, seconds)

    def _paid_each(self, copy: PrivateData, way: Way, epsilon: float, seed: int) -> _Draw:
        mechanism = _PAID_EACH[way](epsilon, self.delta, weight=self.weight, plane=self.plane)
        start = perf_counter()
        explainer = Explainer(copy, Budget(_PLENTY, self.delta), mechanism, noise=SeededNoise(seed))
        answers = [explainer.explain(record) for record in self.questions.records]
        seconds = None, (perf_counter() - start) / len(self.questions)
        slopes, weights = np.array([one.values for one in answers]), (self.weight,) * len(answers)
        if answers[0].error is None:
            return _Draw(slopes, None, slopes, None, None, weights, seconds)
        errors, half = np.array([one.error for one in answers]), copy.answer_scale.half_range
        added = [one.contributions() for one in answers]
        values, known = np.array([one.values for one in added]) / half, np.array([one.error for one in added]) / half
        rows = np.array([one.details["effective_rows"] for one in answers], dtype=np.float64)
        return _Draw(slopes, errors, values, known, rows, weights, seconds)


def _run(
    asked: _Asked, exact: ExactAnswers, tried: list[tuple[Way, float]], groups: Sequence[str] | None, watch: ProgressCallback
) -> Rehearsal:
    data, questions = asked.data, asked.questions
    drawn: dict[tuple[Way, float], list[_Draw]] = {}
    for way, epsilon in tried:
        for number in range(asked.draws):
            watch(f"{way} at ε={epsilon:g}")
            drawn.setdefault((way, epsilon), []).append(asked.draw(way, epsilon, asked.seed + number))
    truth = []
    for i, weight in enumerate(drawn[tried[0]][0].weights):
        watch("exact answers")
        truth.append(exact.answer_at(i, weight))
    near = np.array([one.effective_rows for one in truth])
    members = form_groups(data.domain, questions.points, questions.labels, near, groups)
    qualities = [_judge(asked, exact, way, epsilon, each, members) for (way, epsilon), each in drawn.items()]
    first = {f"{way}, ε={epsilon:g}": each[0].slopes for (way, epsilon), each in drawn.items()}
    faithful, notes = measure_faithfulness(data, exact, first, np.array([one.slopes for one in truth]), asked.seed, watch)
    return Rehearsal(
        rows=data.size,
        columns=data.domain.width,
        plane=asked.plane,
        weight=asked.weight.kind,
        delta=asked.delta,
        records=len(questions),
        draws=asked.draws,
        seed=asked.seed,
        qualities=tuple(qualities),
        near=NearRows(*(float(one) for one in np.quantile(near, (0.05, 0.5, 0.95)))),
        faithfulness=faithful,
        notes=(*notes, *_unknown_to_plan(asked)),
    )


def _judge(
    asked: _Asked, exact: ExactAnswers, way: Way, epsilon: float, draws: Sequence[_Draw], groups: dict[str, Members]
) -> Quality:
    """The quality of one way at one ε, over all draws and records."""
    size, names = asked.data.size, asked.data.domain.names
    count = len(asked.questions)
    truths = [[exact.answer_at(i, draw.weights[i]) for i in range(count)] for draw in draws]
    pairs = [(draw.slopes[i], truths[d][i]) for d, draw in enumerate(draws) for i in range(count)]
    scores = [compare(slopes, truth.slopes, truth.moments, size, _TOP) for slopes, truth in pairs]
    excess = np.array([one.relative_excess for one in scores]).reshape(len(draws), count)
    slopes = [
        (draw.slopes, draw.errors, np.array([one.slopes for one in each])) for draw, each in zip(draws, truths, strict=True)
    ]
    added = [
        (draw.added, draw.added_errors, np.array([one.added for one in each])) for draw, each in zip(draws, truths, strict=True)
    ]
    by_column, by_feature = _coverage(slopes), _coverage(added)
    lowest = None if by_column is None else int(np.argmin(by_column))
    rows = [draw.rows for draw in draws if draw.rows is not None]
    return Quality(
        way=way,
        epsilon=epsilon,
        relative_excess=float(excess.mean()),
        excess_of_worst=float(np.quantile(excess, 0.95)),
        cosine=float(np.mean([one.cosine for one in scores])),
        top_5_exact=float(np.mean([one.top_k_overlap for one in scores])),
        top_5_stability=_stability([draw.slopes for draw in draws]),
        coverage=None if by_column is None else float(by_column.mean()),
        coverage_of_contributions=None if by_feature is None else float(by_feature.mean()),
        lowest_column=None if lowest is None else names[lowest],
        lowest_coverage=None if by_column is None or lowest is None else float(by_column[lowest]),
        effective_rows=float(np.median(rows)) if rows else None,
        seconds=None if way in _PAID_EACH else float(np.mean([draw.seconds[0] or 0.0 for draw in draws])),
        seconds_each=float(np.mean([draw.seconds[1] for draw in draws])),
        expected=_expected_quality(asked, way, epsilon),
        groups=compare_groups(groups, excess.mean(axis=0)),
    )


def _coverage(answers: list[tuple[Matrix, Matrix | None, Matrix]]) -> Vector | None:
    """For each column, how often the exact value lies within two errors."""
    inside = [np.abs(found - truth) <= _ERRORS * errors for found, errors, truth in answers if errors is not None]
    return np.concatenate(inside).mean(axis=0) if inside else None


def _stability(slopes: list[Matrix]) -> float | None:
    """Mean share of the five strongest columns that two draws have in common."""
    shared = [
        len(set(strongest(one, _TOP)) & set(strongest(other, _TOP))) / min(_TOP, len(one))
        for first, second in combinations(slopes, 2)
        for one, other in zip(first, second, strict=True)
    ]
    return float(np.mean(shared)) if shared else None


def _expected_quality(asked: _Asked, way: Way, epsilon: float) -> expected_quality.ExpectedQuality | None:
    """The estimate of `plan` for such a table; None for kinds of tables that it was not fitted to."""
    if asked.plane != "fitted" or asked.weight != Stable() or way not in ("release", "basic"):
        return None
    data, facts = asked.data, _facts(asked)
    reach = expected_quality.reach(data.size, data.domain.width, Budget(epsilon, asked.delta), data.setting.neighbours.multiplier)
    beyond = expected_quality.extrapolation(data.size, data.domain.width)
    by_moments = way == "release" or data.domain.width <= WIDEST_PAID
    return (expected_quality.release if by_moments else expected_quality.basic)(reach, facts, beyond=beyond)


def _facts(asked: _Asked) -> expected_quality.Facts:
    """What is public about the answers; how rare positive ones are is not."""
    labels = asked.questions.labels
    return expected_quality.Facts(
        asked.data.column_model is not None, None, None if labels is None else bool((np.abs(labels) == 1).all())
    )


def _unknown_to_plan(asked: _Asked) -> tuple[str, ...]:
    if asked.plane != "fitted" or asked.weight != Stable():
        return ("plan says nothing about this plane or weight.",)
    unknown = expected_quality.unknowns(asked.data.size, asked.data.domain.width, _facts(asked))
    return tuple(f"Not known to plan: {one}." for one in unknown)


def _require_arguments(data: Any, epsilons: Any, delta: Any, ways: Any, queries: Any, draws: Any, weight: Any) -> None:
    require_kind("data", data, PrivateData, "Register the rows first, dpx.PrivateData(rows, domain, model=…)")
    require_kind("weight", weight, (Weight, type(None)), "Pass one such as dpx.weights.Gaussian(0.8)")
    if data.targets:
        raise ParameterError("target='all' is rehearsed one class at a time. Register the data with target= one of them")
    if not _is_nonempty_list(epsilons) or not all(is_finite(one) and one > 0 for one in epsilons):
        raise ParameterError(f"epsilons must be a list of positive numbers, such as [0.1, 1], got {quote(epsilons)}")
    for one in epsilons:
        Budget(one, delta)
    if not _is_nonempty_list(ways) or any(one not in WAYS for one in ways):
        raise ParameterError(f"ways must be a list of {', '.join(map(repr, WAYS))}, got {quote(ways)}")
    if "reference" in ways and not (isinstance(data.domain, Domain) and data.labeller is not None):
        raise ParameterError("reference records are for tables that were registered with model=. Leave the way 'reference' out")
    for name, value in (("queries", queries), ("draws", draws)):
        if not (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
            raise ParameterError(f"{name} must be a whole number of at least 1, got {quote(value)}")


def _is_nonempty_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 0
