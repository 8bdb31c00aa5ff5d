"""The numbers that the paper states in its text, beside what was measured: one line and one outcome each, from results.json and the printed formulas.

A count is met within a factor of FACTOR, a bound by staying below it, a spike T' at the number of columns that the paper states or, where it states
none, at some number of columns.
"""

from __future__ import annotations

from math import log, sqrt
from typing import Any, NamedTuple

from dpexplain.privacy import gdp, paper
from experiments.paper._overview import UNKNOWN
from experiments.paper._verdicts import FACTOR, NOT, PARTLY, REPRODUCED, find_row
from experiments.paper.figure_5 import DELTA, MOST_COLUMNS, STEPS, at_least

HEADER = ("the paper says", "by its printed formulas", "with exact noise", "outcome")
FULL, BOOKED, COMPUTED = "at full T", "ε by the paper's bookkeeping", "computed, with T' = T"
Kept = dict[str, Any]


class Setting(NamedTuple):
    """A third of a data set, as the paper has it."""

    data: str
    rows: int
    epsilon: float
    columns: int | None  # where the paper states them
    study: str

    @property
    def printed(self) -> float:
        return paper.adaptive_sigma(self.rows, self.epsilon, DELTA, STEPS)

    @property
    def exact(self) -> float:
        return sqrt(STEPS - 1) / (gdp.mu(self.epsilon, DELTA) * self.rows)


TEXT = Setting("Text", 8_815_568 // 3, 0.006, 500, "figure-3")
ACS = Setting("ACS", 1_494_974 // 3, 0.01, None, "figure-2")
OWN_COLUMNS = {"Text": 500, "ACS": 70}  # of our encoding


def text_numbers(kept: Kept) -> list[list[str]]:
    lines = [full_steps(kept, TEXT, 94), full_steps(kept, ACS, 73)]
    lines += [better_starts(kept, TEXT, 1850), better_starts(kept, ACS, 2220)]
    lines += [spike(TEXT, 91), spike(ACS, 95)]
    lines += [count_overfitted(kept, 87, 58), totals_below(kept, "figure-2", 1.1), totals_below(kept, "figure-9", 0.4)]
    return lines


def full_steps(kept: Kept, setting: Setting, reported: int) -> list[str]:
    """In part where it is met with smaller columns, of which more answers are copied: the paper speaks of better starts instead."""
    said = f"{setting.data}: {reported} of 4,500 queries reach T = 300"
    printed, ours = (_count(kept, setting.study, f"adaptive, {kind}") for kind in ("paper", "ours"))
    outcome, scaled = _near([reported], [printed[0]]), _closest_scale(kept, setting.study, reported)
    if scaled is None or outcome == REPRODUCED:
        return [said, _of(printed), _of(ours), outcome]
    place, count = scaled
    outcome = PARTLY if _near([reported], [count]) == REPRODUCED else outcome
    return [said, f"{_of(printed)}; {count:,} with columns in {place}", _of(ours), outcome]


def _closest_scale(kept: Kept, study: str, reported: int) -> tuple[str, int] | None:
    """The scale of the columns, and the answers that take all T iterations at it, closest to what the paper reports."""
    counts = {row["columns in"]: _first_number(row[COMPUTED]) for row in kept[study].get("copies", ())}
    return min(counts.items(), key=lambda item: abs(log(item[1] / reported)), default=None)


def better_starts(kept: Kept, setting: Setting, reported: int) -> list[str]:
    """β < √n·σ_min, which distinguishes some queries. Gradients are at most 1: where √n·σ_min is larger, it holds for every computed answer."""
    said = f"{setting.data}: {reported:,} of 4,500 start with β < √n·σ_min"
    columns = OWN_COLUMNS[setting.data]
    limit, exact = sqrt(columns) * setting.printed, sqrt(columns) * setting.exact
    count = _count(kept, setting.study, "adaptive, paper")[0]
    printed = f"{count:,}, every one that is not copied: √n·σ_min = {limit:.2g}, β ≤ 1"
    return [said, printed, f"√n·σ_min = {exact:.2g}", NOT if limit >= 1 else UNKNOWN]


def spike(setting: Setting, reported: int) -> list[str]:
    """Such queries take T' = ⌈√n·σ_min √ln T · T⌉, whatever the data."""
    said = f"{setting.data}: these take T' = {reported}, the spike of Figure 5"
    texts, outcomes = zip(*(_spikes(setting, sigma, reported) for sigma in (setting.printed, setting.exact)), strict=True)
    return [said, *texts, REPRODUCED if outcomes[0] else PARTLY if outcomes[1] else NOT]


def _spikes(setting: Setting, sigma: float, reported: int) -> tuple[str, bool]:
    """T' by this noise, and whether it is the reported one at the stated or at some number of columns."""
    if setting.columns is not None:
        found = at_least(setting.columns, sigma)
        return f"{found} at {setting.columns} columns", found == reported
    closest = min(range(1, MOST_COLUMNS + 1), key=lambda n: abs(at_least(n, sigma) - reported))
    found = at_least(closest, sigma)
    return (f"{found} at n = {closest}" if found == reported else f"at least {at_least(1, sigma)}, at any n"), found == reported


def count_overfitted(kept: Kept, more: int, fewer: int) -> list[str]:
    said = f"ACS: {more} of 1,500 reach T = 300 for the overfitted model, {fewer} for the other"
    counts = {
        kind: [_count(kept, "figure-9", kind, place)[0] for place in ("depth 60", "depth 10")]
        for kind in ("adaptive, paper", "adaptive, paper's rule made private")
    }
    printed, exact = counts.values()
    outcome = _near([more, fewer], printed) if printed[0] > printed[1] else NOT
    return [said, " and ".join(map(str, printed)), f"{exact[0]} and {exact[1]} by the same rule", outcome]


def totals_below(kept: Kept, study: str, limit: float) -> list[str]:
    """The axis of the figure ends there."""
    totals = [row[BOOKED] for row in kept[study]["rows"] if BOOKED in row]
    exact = [
        row["total ε, exact"] for row in kept[study]["rows"] if "total ε, exact" in row and row["mechanism"].endswith(", ours")
    ]
    number = study.removeprefix("figure-")
    texts = [f"at most {max(values):.3g}" for values in (totals, exact)]
    return [f"ACS: all totals of Figure {number} below {limit:g}", *texts, REPRODUCED if max(totals) < limit else NOT]


def _count(kept: Kept, study: str, mechanism: str, about: str | None = None) -> tuple[int, int]:
    """(queries that took all T iterations, queries)."""
    wanted = {"mechanism": mechanism} | ({} if about is None else {"queries about": about})
    reached, asked = find_row(kept[study]["rows"], **wanted)[FULL].split(" of ")
    return int(reached), int(asked)


def _first_number(text: str) -> int:
    return int(text.split(" of ")[0].replace(",", ""))


def _of(counts: tuple[int, int]) -> str:
    return f"{counts[0]:,} of {counts[1]:,}"


def _near(reported: list[int], found: list[int]) -> str:
    return REPRODUCED if all(one / FACTOR <= other <= one * FACTOR for one, other in zip(reported, found, strict=True)) else NOT
