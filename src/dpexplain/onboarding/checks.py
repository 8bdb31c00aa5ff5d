"""Checks before anything is spent, from public facts and the model. The model is asked about made-up records of the domain, never about private rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from time import perf_counter
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from dpexplain.arguments import quote
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.uniforms import Uniforms
from dpexplain.data import PrivateData
from dpexplain.domain import Date, Datetime, Domain, DomainLike, Numeric
from dpexplain.domain.columns import plain_columns
from dpexplain.domain.interface import format_list
from dpexplain.errors import DataError, DpexplainError, ParameterError, WeakBudget
from dpexplain.privacy import expected_quality
from dpexplain.privacy.budget import Budget, warn_if_weak
from dpexplain.privacy.expected_quality import ExpectedQuality
from dpexplain.release.reference_data import reference_rows

Frame: TypeAlias = Literal["pandas", "polars", "pyarrow"]
Level: TypeAlias = Literal["problem", "warning", "note", "good"]
RECORDS, PROFILES, STEPS = 512, 24, 13  # made-up records, records whose number is varied, values it takes
MOST_QUESTIONS = 60_000  # rows that profiles may ask the model about
MOST_SECONDS = 5.0  # for them, and for a first call after which the model is timed again
ALONE = 4  # records that are asked one by one
LAST_BITS = 1e-4  # change of a label beside other records that rounding errors of networks explain
FLAT = 0.02  # of the largest change of the answer that counts as no change
MANY_VALUES = 100
WIDEST = 2048
FAIR = 0.7  # cosine to the exact answer
SECONDS_PER_CUBE = 2.7e-7  # a release of n columns took about so many seconds times n³ on two cores


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of a check: its severity, the problem and the remedy."""

    level: Level
    what: str
    remedy: str = ""

    def __str__(self) -> str:
        mark = {"problem": "✗", "warning": "!", "note": "·", "good": "✓"}[self.level]
        return f"{mark} {self.what}" + (f". {self.remedy}" if self.remedy else "")


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Findings, the worst first. `ok` is False where something would fail or make an answer worthless."""

    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        return not any(one.level == "problem" for one in self.findings)

    def of(self, level: Level) -> tuple[Finding, ...]:
        return tuple(one for one in self.findings if one.level == level)

    def to_dict(self) -> dict[str, Any]:
        return {"ok": self.ok, "findings": [asdict(one) for one in self.findings]}

    def __str__(self) -> str:
        return "\n".join(map(str, self.findings))

    def __repr__(self) -> str:
        return f"<CheckReport: {len(self.of('problem'))} problems, {len(self.of('warning'))} warnings>\n{self}"


def check(
    data: PrivateData | DomainLike,
    budget: Budget | None = None,
    *,
    model: Any = None,
    rows: int | None = None,
    frame: Frame | None = None,
    **options: Any,
) -> CheckReport:
    """Check a data set, or a domain and a model, before anything is paid: from public facts and the model alone.

    `data` is registered data, or a domain with `model=` and, where it is known, the public number of `rows`; `frame` is the kind of table the
    model takes (pandas by default) and `options` are those of `PrivateData` (`target=`, `output=`, …). The model is asked about made-up
    records of the domain: whether it accepts them, whether its answer is constant, where it stops changing within the declared bounds and
    where it goes on beyond them. No private row is read, nothing is spent.
    """
    if not isinstance(data, PrivateData):
        if model is None or not hasattr(data, "encode_query"):
            raise ParameterError(
                "there is nothing to check. Pass registered data, or a domain and a model: dpx.check(domain, model=model, rows=50_000)"
            )
        return _sort_findings([*_of_domain(data), *_with_model(data, model, rows, budget, {"frame": frame, **options})])
    return _sort_findings([*_of_domain(data.domain), *_of_data(data, budget, data.size)])


def _sort_findings(findings: list[Finding]) -> CheckReport:
    order = ("problem", "warning", "note", "good")
    return CheckReport(tuple(sorted(findings, key=lambda one: order.index(one.level))))


def _with_model(
    domain: DomainLike, model: Any, rows: int | None, budget: Budget | None, options: dict[str, Any]
) -> Iterator[Finding]:
    """A model that is not registered with rows yet is registered with made-up ones, which are public."""
    import narwhals as nw

    if not isinstance(domain, Domain):
        yield Finding("note", "records of this kind cannot be made up, so the model was not asked")
        return
    kind: Frame = options.pop("frame") or ("pandas" if find_spec("pandas") else "pyarrow")
    if kind not in get_args(Frame):
        raise ParameterError(f"frame must be one of {', '.join(map(repr, get_args(Frame)))}, got {quote(kind)}")
    try:
        table = nw.from_dict(plain_columns(domain.decode(made_up_records(domain))), backend=kind).to_native()
        registered = PrivateData(table, domain, model=model, **options)
    except DpexplainError as error:
        from dpexplain.registration.declaration_check import SAYS

        # registration takes them for private rows, and says more
        yield _refused_records(str(error).partition(SAYS)[2] or str(error))
        return
    yield from _of_data(registered, budget, rows)


def _refused_records(said: str) -> Finding:
    remedy = "Declare every column that it needs, with values that it accepts"
    return Finding("problem", f"the model does not accept made-up records of the domain: {said}", remedy)


def _of_data(data: PrivateData, budget: Budget | None, rows: int | None) -> Iterator[Finding]:
    yield from _of_size(data, budget, rows)
    if data.labeller is None and data.answer_scale.kind == "label":
        yield Finding(
            "warning",
            "labels are read as numbers from -1 to 1: 0 is halfway, and what is beyond is cut",
            "Declare output='class' for 0 and 1, 'probability', or 'value' with bounds=(low, high), if they are something else",
        )
    if not isinstance(data.domain, Domain) or data.labeller is None:
        yield Finding("note", "there is no model to ask: labels were registered, or records cannot be made up")
        return
    try:
        yield from _of_model(data.domain, data.labeller, reference_rows(True, rows or data.size, data.domain.width))
    except DpexplainError as error:
        from dpexplain.registration.declaration_check import explain_refusal

        yield _refused_records(explain_refusal(error, data.labeller, data.domain))


def _of_domain(domain: DomainLike) -> Iterator[Finding]:
    if domain.width > WIDEST:
        yield Finding(
            "problem",
            f"{domain.width:,} encoded columns are more than a release takes ({WIDEST:,})",
            "Declare fewer values or features",
        )
    if not isinstance(domain, Domain):
        return
    wide = [feature.name for feature in domain.features if feature.width > MANY_VALUES]
    if wide:
        yield Finding(
            "warning",
            f"more than {MANY_VALUES} values in {format_list(wide, 5)}",
            "Join rare values: each costs accuracy for all",
        )
    strict = [feature.name for feature in domain.features if feature.substitute is None]
    if strict:
        yield Finding(
            "note",
            f"records with a missing {format_list(strict, 5)} cannot be asked about",
            "Declare missing= (or other=) to allow it",
        )


def _of_size(data: PrivateData, budget: Budget | None, rows: int | None) -> Iterator[Finding]:
    width = data.domain.width
    if width <= WIDEST:
        yield Finding(
            "note", f"a release of {width} columns takes about {max(1, round(SECONDS_PER_CUBE * width**3))} s to compute"
        )
    if budget is None or rows is None:
        yield Finding("note", f"{width} encoded columns", "Pass a budget and the number of rows to see what quality to expect")
        return
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", WeakBudget)
        warn_if_weak(budget, rows)
    yield from (Finding("warning", str(one.message)) for one in heard)
    reached = expected_quality.reach(rows, width, budget, data.setting.neighbours.multiplier)
    facts, beyond = expected_quality.Facts(model=data.column_model is not None), expected_quality.extrapolation(rows, width)
    what = f"a release of {rows:,} rows and {width} columns at ε={budget.epsilon:g}"
    yield _of_quality(what, expected_quality.release(reached, facts, beyond=beyond))


def _of_quality(what: str, expected: ExpectedQuality) -> Finding:
    """The expected quality as a finding. It is good only if the lower end of the interval is: the middle alone would claim more than is known."""
    interval = expected.cosine_interval
    ends = "not measured at so little" if interval is None else f"usually {interval[0]:.2f} to {interval[1]:.2f}"
    found = f"{what}: {expected.verdict} (cosine about {expected.cosine:.2f}, {ends})"
    if expected.cosine < FAIR:
        return Finding("warning", found, "Spend more, or declare fewer columns")
    if interval is None or interval[0] < FAIR:
        return Finding("note", found, "`dpexplain plan` narrows it with what is public about the answers")
    return Finding("good", found)


def _of_model(domain: Domain, ask: Any, wanted: int) -> Iterator[Finding]:
    """Findings from the model's answers about made-up records. `wanted` is how many records a reference would have."""
    records = made_up_records(domain)
    columns = domain.decode(records)
    answers, seconds = _ask_timed(ask, columns)
    each = _seconds_each(ask, columns, seconds)
    speed = "more than a million" if each < 1e-6 else f"about {1 / each:,.0f}"
    yield Finding("good", f"the model accepts made-up records of the domain ({speed} a second in large batches)")
    yield Finding("note", f"labelling {wanted:,} reference records takes about {max(1, round(each * wanted))} s")
    yield from _of_company(ask, columns, answers)
    spread = float(answers.max() - answers.min())
    if spread < 1e-9:
        yield Finding(
            "problem", f"the model answers the same ({answers[0]:+.3f} of [-1, 1]) for all of {RECORDS} made-up records: there is nothing to explain",
            "Check target=, output= and that column names and units are those the model was trained with",
        )  # fmt: skip
        return
    if float((np.abs(answers) >= 1).mean()) == 1.0 and len(np.unique(answers)) > 2:
        yield Finding("warning", "every answer is cut off at its bounds", "Declare output= and bounds= that fit the model")
    rare = float(min((answers > 0).mean(), (answers <= 0).mean()))
    if 0 < rare < 0.005:
        yield Finding("note", "nearly all made-up records get the same sign of answer; local answers will be close to flat")
    yield from _profiles(domain, ask, records, each)


def _of_company(ask: Any, columns: dict[str, Any], answers: Vector) -> Iterator[Finding]:
    """Findings about answers that depend on the other records of a call: the guarantee is for models whose answers do not."""
    halves = [slice(1, None), slice(None, None, -2)]  # without the first; every other one, backwards
    moved = [float(np.abs(ask(_some(columns, part)) - answers[part]).max()) for part in halves]
    try:
        moved += [float(np.abs(ask(_some(columns, slice(i, i + 1))) - answers[i]).max()) for i in range(ALONE)]
    except DataError:
        yield Finding(
            "warning",
            "the model does not answer a record that is alone in a call",
            "Let it: rows that are of a kind of their own are asked alone, and count as the middle where they have no answer",
        )
    largest = max(moved)
    if largest > LAST_BITS:
        yield Finding(
            "problem", f"the model answers the same record differently beside other records, by up to {largest / 2:.2g} of its range: no guarantee holds",
            "Let it scale, rank and impute by what it learnt in training, and put a network into evaluation mode",
        )  # fmt: skip
    elif largest > 0:
        yield Finding(
            "note",
            f"the last digits of an answer depend on the other records of a call, by up to {largest / 2:.0e} of its range",
            "Round the answers, to six digits say (docs/known-limits.md)",
        )


def _some(columns: dict[str, Any], part: slice) -> dict[str, Any]:
    return {name: column[part] for name, column in columns.items()}


def _ask_timed(ask: Any, columns: Any) -> tuple[Vector, float]:
    start = perf_counter()
    return ask(columns), perf_counter() - start


def _seconds_each(ask: Any, columns: Any, first: float) -> float:
    """Seconds for one more record of a large batch. The first call warms a model up, and each call has a fixed cost; both are left out."""
    few = first if first > MOST_SECONDS else _ask_timed(ask, columns)[1]
    if few > MOST_SECONDS / 8:
        return few / RECORDS
    repeated = {name: np.repeat(column, 8, axis=0) for name, column in columns.items()}
    return max((_ask_timed(ask, repeated)[1] - few) / (7 * RECORDS), 1e-9)


def _profiles(domain: Domain, ask: Any, records: Matrix, seconds: float) -> Iterator[Finding]:
    """Findings about how the answer follows each number, between its bounds and a quarter of its range beyond them."""
    numbers = [feature for feature in domain.features if isinstance(feature, (Numeric, Date, Datetime))]
    affordable = min(MOST_QUESTIONS, int(MOST_SECONDS / max(seconds, 1e-9)))
    base = min(PROFILES, affordable // max(len(numbers) * STEPS, 1))
    if base < 4:
        yield Finding("note", f"{len(numbers)} numbers are too many to look at one by one with a model of this speed")
        return
    unused = []
    for feature in numbers:
        changes = _changes(domain, ask, records[:base], feature)
        inside = changes[2:-2]
        if changes.max() <= 1e-12:
            unused.append(feature.name)
        elif inside.max() <= FLAT * changes.max():
            yield Finding(
                "warning",
                f"{feature.name}: the answer changes only beyond the declared bounds [{feature.low}, {feature.high}]",
                "Check their unit",
            )
        else:
            yield from _ends(feature, inside, changes)
    if unused:
        yield Finding(
            "note",
            f"the model's answer does not change with {format_list(unused, 8)}",
            "Check names and bounds, or leave out what it does not use",
        )


def _ends(feature: Any, inside: Vector, changes: Vector) -> Iterator[Finding]:
    used = np.flatnonzero(inside > FLAT * inside.max())
    low, high = used[0] / len(inside), (used[-1] + 1) / len(inside)
    if high - low < 0.5:
        yield Finding(
            "warning", f"{feature.name}: the answer changes in only {high - low:.0%} of [{_value_at(feature, 0)}, {_value_at(feature, 1)}]",
            f"Bounds near {_value_at(feature, low)} and {_value_at(feature, high)} would make explanations sharper, if no row lies beyond",
        )  # fmt: skip
    if max(changes[:2].max(), changes[-2:].max()) > 0.5 * inside.max() and isinstance(feature, Numeric):
        yield Finding(
            "note",
            f"{feature.name}: the answer goes on changing beyond [{_value_at(feature, 0)}, {_value_at(feature, 1)}]",
            "Rows out there are clamped",
        )


def _value_at(feature: Any, share: float) -> str:
    """The value at this share of a feature's range, as text."""
    if isinstance(feature, Numeric):
        value = feature.low + share * (feature.high - feature.low)
        return f"{value if share in (0, 1) else float(f'{value:.3g}'):,.6g}"
    return str(feature.read(np.array([[share]]))[0])


def _changes(domain: Domain, ask: Any, base: Matrix, feature: Any) -> Vector:
    """Mean absolute change of the answer between neighbouring values, from a quarter of the range below to a quarter above (raw values)."""
    columns, shares = domain.decode(base), np.linspace(-2 / (STEPS - 5), 1 + 2 / (STEPS - 5), STEPS)
    repeated = {name: np.repeat(column, STEPS, axis=0) for name, column in columns.items()}
    if isinstance(feature, Numeric):
        values: Any = feature.low + shares * (feature.high - feature.low)
        values = np.rint(values).astype(np.int64) if feature.integer else values
    else:
        values = feature.read(np.clip(shares, 0, 1)[:, None])
    try:
        answers = ask({**repeated, feature.name: np.tile(values, len(base))})
    except DataError:  # a model need not answer beyond the bounds
        within = np.clip(values, feature.low, feature.high) if isinstance(feature, Numeric) else values
        answers = ask({**repeated, feature.name: np.tile(within, len(base))})
    return np.asarray(np.abs(np.diff(np.reshape(answers, (len(base), STEPS)), axis=1)).mean(axis=0))


def made_up_records(domain: Domain, count: int = RECORDS) -> Matrix:
    """Encoded records drawn uniformly from the domain. They are the same in every call."""
    uniforms, rows = Uniforms(), np.zeros((count, domain.width))
    for feature, block in zip(domain.features, domain.blocks, strict=True):
        drawn = uniforms.take(count)
        if block.kind == "one-hot":
            rows[np.arange(count), block.start + (drawn * feature.width).astype(np.intp)] = 1.0
        elif block.kind == "binary":
            rows[:, block.start] = drawn < 0.5
        else:
            levels = len(feature.levels) - 1 if hasattr(feature, "levels") else 0
            rows[:, block.start] = np.rint(drawn * levels) / levels if levels else drawn
    return rows
