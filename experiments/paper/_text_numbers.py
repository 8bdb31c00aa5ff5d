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
MEAN = "mean T'"
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
MODELS = ("depth 60", "depth 10")  # of Figure 9
SAMPLES = 3  # of Figure 9, one a third of the data
OWN_COLUMNS = {"Text": 500, "ACS": 70}  # of our encoding


def text_numbers(kept: Kept) -> list[list[str]]:
    lines = [full_steps(kept, TEXT, 94), full_steps(kept, ACS, 73)]
    lines += [better_starts(kept, TEXT, 1850), better_starts(kept, ACS, 2220)]
    lines += [spike(TEXT, 91), spike(ACS, 95)]
    lines += [count_overfitted(kept, 87, 58), totals_below(kept, "figure-2", 1.1), totals_below(kept, "figure-9", 0.4)]
    lines += [spike_of_models(kept, 95), enhanced_below(kept, 90), similar_losses(kept), larger_free_losses(kept)]
    lines += [share_of_first(kept, "ACS", 100), share_of_first(kept, "Text", 100)]
    lines += [spreads(kept, "ACS", ("1.3e-3", "6.3e-5")), spreads(kept, "Text", ("7.8e-4", "9.4e-6"), ", T = 3000")]
    lines += [
        word_variance(kept, 0.3),
        smaller_losses(kept),
        losses_below(kept, 0.004, 0.0004),
        training_accuracies(kept, 85, 98),
    ]
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
    said = f"ACS: {more} of the 500 of a sample reach T = 300 for the overfitted model, {fewer} for the other"
    counts = {
        kind: [round(_count(kept, "figure-9", kind, place)[0] / SAMPLES) for place in MODELS]
        for kind in ("adaptive, paper", "adaptive, paper's rule made private")
    }
    printed, exact = counts.values()
    outcome = _near([more, fewer], printed) if printed[0] > printed[1] else NOT
    return [said, " and ".join(map(str, printed)), f"{exact[0]} and {exact[1]} by the same rule", outcome]


def spike_of_models(kept: Kept, reported: int) -> list[str]:
    """Of Figure 9's two models; the mean is met within five iterations."""
    said = f"ACS: after 150 queries of a sample most take T' = {reported}, for both models"
    found = {
        kind: [find_row(kept["figure-9"]["rows"], mechanism=kind, **{"queries about": place})[MEAN] for place in MODELS]
        for kind in ("adaptive, paper", "adaptive, paper's rule made private")
    }
    printed, exact = (f"{over:.3g} and {other:.3g} in the mean" for over, other in found.values())
    met = all(abs(value - reported) <= 5 for value in found["adaptive, paper"])
    return [said, printed, f"{exact}, by the same rule", REPRODUCED if met else NOT]


def similar_losses(kept: Kept) -> list[str]:
    """Met where enhanced answers lose at most a quarter more than adaptive ones."""
    losses = _losses_of(kept, "adaptive", "enhanced")
    met = [enhanced <= 1.25 * adaptive for adaptive, enhanced in losses["paper"]]
    return [
        "adaptive and enhanced answers have similar losses, ACS and Text",
        *(_pairs(each, "and") for each in losses.values()),
        _outcome(met),
    ]


def larger_free_losses(kept: Kept) -> list[str]:
    losses = _losses_of(kept, "non-interactive by labels", "adaptive")
    met = [free > adaptive for free, adaptive in losses["paper"]]
    said = "the non-interactive phase loses more than adaptive answers, ACS and Text"
    return [said, *(_pairs(each, "against") for each in losses.values()), _outcome(met)]


def _losses_of(kept: Kept, *names: str) -> dict[str, list[list[float]]]:
    """Relative excess in Figures 2 and 3 of these mechanisms, by the paper's formulas and by ours."""
    return {
        kind: [
            [find_row(kept[study]["rows"], mechanism=f"{name}, {kind}")["relative excess"] for name in names]
            for study in ("figure-2", "figure-3")
        ]
        for kind in ("paper", "ours")
    }


def _pairs(each: list[list[float]], between: str) -> str:
    return "; ".join(f" {between} ".join(f"{value:.3g}" for value in pair) for pair in each)


def _outcome(met: list[bool]) -> str:
    return REPRODUCED if all(met) else PARTLY if any(met) else NOT


def totals_below(kept: Kept, study: str, limit: float) -> list[str]:
    """The axis of the figure ends there."""
    totals = [row[BOOKED] for row in kept[study]["rows"] if BOOKED in row]
    exact = [
        row["total ε, exact"] for row in kept[study]["rows"] if "total ε, exact" in row and row["mechanism"].endswith(", ours")
    ]
    number = study.removeprefix("figure-")
    texts = [f"at most {max(values):.3g}" for values in (totals, exact)]
    return [f"ACS: all totals of Figure {number} below {limit:g}", *texts, REPRODUCED if max(totals) < limit else NOT]


def enhanced_below(kept: Kept, limit: int) -> list[str]:
    """Most answers: the median."""
    said = f"most enhanced answers take fewer than {limit} iterations, ACS and Text"
    found = {
        kind: [find_row(kept["figure-5"]["rows"], data=data, mechanism=f"enhanced, {kind}")["median"] for data in ("ACS", "Text")]
        for kind in ("paper", "ours")
    }
    texts = ["medians " + " and ".join(f"{value:g}" for value in each) for each in found.values()]
    return [said, *texts, REPRODUCED if max(found["paper"]) < limit else NOT]


def share_of_first(kept: Kept, data: str, first: int) -> list[str]:
    """The paper's books are asked at ε = 0.05, which is reached after about so many queries; half of the end's total is most of it."""
    study, wanted = ("figure-2" if data == "ACS" else "figure-3"), {"data": data, "algorithm": "adaptive"}
    rows, reached = kept[study]["stops"], "ε = 0.05"
    total = find_row(rows, **wanted, **{"stopped by": "its rule"})["ε_spent at the end"]
    asked = find_row(rows, **wanted, **{"stopped by": "its test of ε alone"})[reached].split(" ±")[0]
    exact = find_row(rows, **wanted, **{"stopped by": "exact budget, ours"})[reached].split(" ±")[0]
    own = find_row(kept[study]["rows"], mechanism="adaptive, ours")["total ε, exact"]
    texts = [f"{0.05 / end:.0%} on the first {count}" for end, count in ((total, asked), (own, exact))]
    most = 0.05 / total > 0.5 and int(asked.replace(",", "")) <= FACTOR * first
    return [f"{data}: adaptive answers spend most of ε on the first {first} queries", *texts, REPRODUCED if most else NOT]


def word_variance(kept: Kept, limit: float) -> list[str]:
    """Of reviews, each of which has the mean over its seeds: single answers vary more."""
    rows = kept["table-2"]["rows"]
    chosen = [find_row(rows, explanation="paper, noise of 8.8 M reviews"), find_row(rows, explanation="exact optimum")]
    found = [[_variance(row, basis) for basis in ("LIME", "MIM, signed")] for row in chosen]
    texts = [f"{lime:.2f} and {mim:.2f}" for lime, mim in found]
    said = f"Text: words shared with LIME and MIM have a variance below {limit:g}"
    return [said, texts[0], f"{texts[1]}, without noise", REPRODUCED if max(found[0]) < limit else NOT]


def _variance(row: dict[str, Any], basis: str) -> float:
    return float(row["reviews"] * row[f"± shared with {basis}"] ** 2)


def spreads(kept: Kept, data: str, reported: tuple[str, str], steps: str = "") -> list[str]:
    """Standard deviations of losses where Table 3 is reproduced. The paper calls them variances, whose roots would be larger than any loss here."""
    place = {"data": data, "columns in": "[0, 0.3]"}
    found = {
        name: [
            sqrt(find_row(kept["table-3"]["rows"], **place, ε=epsilon, explanation=name)["variance"]) for epsilon in (0.01, 0.1)
        ]
        for name in (f"paper{steps}", "exact noise of its size" if data == "Text" else "exact noise")
    }
    texts = [" and ".join(f"{value:.1e}" for value in each) for each in found.values()]
    near = all(1 / FACTOR <= value / float(said) <= FACTOR for value, said in zip(found[f"paper{steps}"], reported, strict=True))
    said = f"{data}: losses of Table 3 spread by {' and '.join(reported)} at ε = 0.01 and 0.1"
    return [said, f"{texts[0]} with columns in [0, 0.3]{steps}", texts[1], REPRODUCED if near else NOT]


def smaller_losses(kept: Kept) -> list[str]:
    """At ε = 0.01 and 0.1, columns in [0, 1]. The paper's own Table 3 has it the other way round at ε = 0.1."""
    found = {}
    for kind, names in {"paper": ("paper, noise of its size", "paper"), "ours": ("ours, μ of its size", "ours")}.items():
        places = zip(("Text", "ACS"), names, strict=True)
        found[kind] = [
            [
                find_row(kept["table-3"]["rows"], data=data, explanation=name, **{"columns in": "[0, 1]", "ε": epsilon})[
                    "excess loss"
                ]
                for epsilon in (0.01, 0.1)
            ]
            for data, name in places
        ]
    texts = [" against ".join(" and ".join(f"{value:.1e}" for value in each) for each in pair) for pair in found.values()]
    good = all(text < acs for text, acs in zip(*found["paper"], strict=True))
    return [
        "Text is explained with less loss than ACS (Table 3, where it is so at ε = 0.01 only)",
        *texts,
        REPRODUCED if good else NOT,
    ]


def losses_below(kept: Kept, weak: float, others: float) -> list[str]:
    """Where the axes of Figure 8 end."""
    limits = {"f_0.5": weak, "f_2": others, "f_10": others}
    found = {name: find_row(kept["figure-8"]["rows"], model=name)["largest excess loss"] for name in limits}
    means = [find_row(kept["figure-7"]["rows"], model=name, mechanism="ours, ε = 1")["excess loss"] for name in limits]
    met = [found[name] < limit for name, limit in limits.items()]
    said = f"Text: excess losses of Figure 8 below {weak:g} for f_0.5, {others:g} for f_2 and f_10"
    texts = [
        f"at most {', '.join(f'{value:.2g}' for value in found.values())}",
        f"{', '.join(f'{v:.2g}' for v in means)} in the mean",
    ]
    return [said, *texts, _outcome(met)]


def training_accuracies(kept: Kept, plain: int, overfitted: int) -> list[str]:
    """As Figure 9's notes say it, "training accuracy of depth 10, 500 trees: 0.790; …". Met within two points."""
    found = [100 * float(note.partition(" trees: ")[2].partition(";")[0]) for note in kept["figure-9"]["notes"]]
    met = [abs(value - said) <= 2 for value, said in zip(found, (plain, overfitted), strict=True)]
    text = " and ".join(f"{value:.1f} %" for value in found)
    said = f"ACS: forests of depth 10 and 60 are right for {plain} and {overfitted} % of their training rows"
    return [said, f"{text}, on other data", "the same forests", _outcome(met)]


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
