"""The tables of a rehearsal as text, for the terminal and the page alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dpexplain.evaluation.rehearsal.rehearsal_result import SHOWN_GROUPS, Quality, Rehearsal

Row = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """A table with a title and a line about it; a terminal shows the first `shown` rows, None for all."""

    title: str
    head: Row
    rows: tuple[Row, ...]
    about: str
    shown: int | None = None


def sections_of(rehearsal: Rehearsal) -> Iterator[Section]:
    """All sections that have something to show."""
    yield _distances(rehearsal)
    yield _bars(rehearsal)
    if rehearsal.worst_groups().groups:
        yield _groups(rehearsal.worst_groups())
    if rehearsal.faithfulness:
        yield _faithfulness(rehearsal)


def _distances(rehearsal: Rehearsal) -> Section:
    head = ("way", "ε", "relative excess", "worst 5 %", "cosine", "top 5 right", "plan had said", "measured is")
    rows = []
    for one in rehearsal.qualities:
        numbers = f"{one.relative_excess:.3g}", f"{one.excess_of_worst:.3g}", f"{one.cosine:.3f}", f"{one.top_5_exact:.0%}"
        rows.append((one.way, f"{one.epsilon:g}", *numbers, _describe_plan(one), one.beside_plan or "-"))
    about = "Relative excess: 0 is the exact answer, 1 is no better than the average answer."
    return Section("Distance to the exact answer", head, tuple(rows), about)


def _bars(rehearsal: Rehearsal) -> Section:
    head = (
        "way",
        "ε",
        "slopes within 2 errors",
        "contributions within 2 errors",
        "lowest column",
        "top 5 stable",
        "rows that count",
        "seconds",
        "an answer",
    )
    rows = []
    for one in rehearsal.qualities:
        lowest = "-" if one.lowest_coverage is None else f"{one.lowest_coverage:.0%} {one.lowest_column}"
        shares = _share(one.coverage), _share(one.coverage_of_contributions), lowest, _share(one.top_5_stability)
        count = "-" if one.effective_rows is None else f"{one.effective_rows:,.0f}"
        made = "-" if one.seconds is None else f"{one.seconds:.2f}"
        rows.append((one.way, f"{one.epsilon:g}", *shares, count, made, f"{1000 * one.seconds_each:.1f} ms"))
    near = rehearsal.near
    about = (
        f"In the exact answers {near.median:,.0f} rows count (5 % of the records: at most {near.fewest:,.0f}; "
        f"5 %: at least {near.most:,.0f})."
    )
    return Section("Error bars, stability, time", head, tuple(rows), about)


def _groups(shown: Quality) -> Section:
    head = ("group", "records", "relative excess", "everybody else", "difference ± error", "clearly worse")
    rows = [
        (
            one.name,
            str(one.records),
            f"{one.excess:.3g}",
            f"{one.others:.3g}",
            f"{one.excess - one.others:+.2g} ± {one.error:.2g}",
            "yes" if one.is_worse else "no",
        )
        for one in shown.groups
    ]
    title = f"Groups with the worst answers: {shown.way} at ε={shown.epsilon:g}"
    return Section(title, head, tuple(rows), "Of many groups one in forty is clearly worse by chance.", SHOWN_GROUPS)


def _faithfulness(rehearsal: Rehearsal) -> Section:
    head = ("method", "cosine to SHAP", "deletion ↓", "insertion ↑", "PGI ↑", "PGU ↓", "infidelity ↓")
    rows = []
    for one in rehearsal.faithfulness:
        numbers = one.cosine_to_shap, one.deletion, one.insertion, one.pgi, one.pgu, one.infidelity
        rows.append((one.method, *(f"{value:.3f}" for value in numbers)))
    return Section(
        "Faithfulness beside LIME and SHAP", head, tuple(rows), "Arrows say which way is better. Some of the records only."
    )


def _describe_plan(one: Quality) -> str:
    """The estimate of `plan`, as text."""
    if one.expected is None:
        return "-"
    ends = one.expected.excess_interval
    return f"{one.expected.relative_excess:.2g}" + (" (no interval)" if ends is None else f" ({ends[0]:.2g} to {ends[1]:.2g})")


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
