"""Verdicts on the paper's tables and figures, by rules from the measured numbers. Each also says what would have changed it.

A number of the paper is *met* by one within a factor of FACTOR, an order by a difference of SURE standard errors. A rule sees rows of the study only,
so that a verdict changes when and only when numbers do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import erfc, hypot, log, sqrt
from typing import Any, NamedTuple

FACTOR, SURE, VISIBLE = 2.0, 2.0, 0.5  # the last is a cosine from which maps are alike to the eye
LIMIT = 3.9 - 0.5  # words shared with LIME: half a word below the paper's
MEAN, BOOKED, EXACT, LOST = "mean T'", "ε by the paper's bookkeeping", "total ε, exact", "relative excess"
REPRODUCED, PARTLY, NOT = "reproduced", "in part", "not reproduced"
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Verdict:
    outcome: str
    because: str
    otherwise: str  # what would have changed it

    def __str__(self) -> str:
        return f"{self.outcome}: {self.because}. It would be different {self.otherwise}."

    @classmethod
    def of(cls, outcome: str, because: str, condition: str) -> Verdict:
        """`condition` is what reproducing takes: it would be different *if* it held, or, where it does, *unless* it did."""
        return cls(outcome, because, f"{'unless' if outcome == REPRODUCED else 'if'} {condition}")


def verdict(found: dict[str, Any]) -> Verdict | None:
    """The verdict on a study's result; None where there is no rule, or too little was measured."""
    rule = RULES.get(found["study"])
    try:
        return rule(found["rows"]) if rule else None
    except (KeyError, StopIteration, ZeroDivisionError, IndexError):
        return None


def find_row(rows: Rows, **wanted: Any) -> dict[str, Any]:
    """The first row with these entries."""
    found = next((row for row in rows if all(row.get(key) == value for key, value in wanted.items())), None)
    if found is None:
        raise KeyError(f"no row has {wanted}")
    return found


def less(first: dict[str, Any], second: dict[str, Any], key: str) -> bool:
    """Whether the first is smaller by SURE standard errors."""
    return second[key] - first[key] > SURE * hypot(first.get(f"± {key}", 0.0), second.get(f"± {key}", 0.0))


def table_2(rows: Rows) -> Verdict:
    """At every scale of the columns, with every model behind LIME and every reading of MIM that was tried: within half a word of both numbers?"""
    printed = [row for row in rows if row["explanation"].startswith("paper, noise of")]
    exact = [row for row in rows if row["explanation"].startswith("exact optimum")]
    hits = {kind: [pair for row in some for pair in _half_a_word(row)] for kind, some in (("printed", printed), ("exact", exact))}
    noisy, best = _most_shared(printed), _most_shared(exact)
    because = f"of 3.9 words that the paper shares with LIME, its algorithm at the printed noise shares at most {_shares(noisy)}"
    because += f", and the optimum without noise at most {_shares(best)}; within half a word is 3.4"
    if hits["printed"]:
        return Verdict(
            REPRODUCED, f"{because}. Both numbers are met by {'; '.join(hits['printed'])}", "unless both numbers were met"
        )
    met_by = f". Without noise both numbers are met by {'; '.join(hits['exact'])}" if hits["exact"] else ""
    margin = abs(best.words - LIMIT)
    side = f"less ({NOT})" if hits["exact"] else f"more ({PARTLY})"
    otherwise = (
        f"if 3.4 words were shared at the printed noise, {LIMIT - noisy.words:.2f} more, and 2.1 to 3.1 with MIM ({REPRODUCED})"
    )
    if best.words >= LIMIT and not hits["exact"]:  # LIME is met alone
        return Verdict(
            NOT, f"{because}. It does not share 2.1 to 3.1 with MIM", f"{otherwise}; or the same without noise ({PARTLY})"
        )
    otherwise += f"; or if the optimum shared {margin:.2f} words, {margin / best.error:.1f} standard errors, {side}"
    return Verdict(PARTLY if hits["exact"] else NOT, because + met_by + _narrowly(best), otherwise)


class Shared(NamedTuple):
    words: float
    error: float
    basis: str
    explanation: str


def _most_shared(rows: Rows) -> Shared:
    """The pair of an explanation and a model behind LIME that share most words."""
    every = ((row, name) for row in rows for name in _names_after(row, "LIME"))
    return max(
        Shared(row[f"shared with {name}"], row.get(f"± shared with {name}") or 1e-9, name, row["explanation"])
        for row, name in every
    )


def _shares(found: Shared) -> str:
    return f"{found.words:.3g} ± {found.error:.1g} ({found.basis}; {found.explanation})"


def _narrowly(best: Shared) -> str:
    """How sure it is that the optimum is on this side of the limit."""
    if abs(best.words - LIMIT) > SURE * best.error:
        return ""
    above = 0.5 * erfc((LIMIT - best.words) / best.error / sqrt(2))
    return f". That is narrow: on as many other reviews the optimum would share 3.4 or more in {above:.0%} of the cases"


def _names_after(row: dict[str, Any], start: str) -> list[str]:
    return [key.removeprefix("shared with ") for key in row if key.startswith(f"shared with {start}")]


def _half_a_word(row: dict[str, Any]) -> list[str]:
    """The pairs of a model behind LIME and a reading of MIM for which both of the paper's numbers are met."""
    near = [
        [name for name in _names_after(row, start) if abs(row[f"shared with {name}"] - said) <= 0.5]
        for start, said in (("LIME", 3.9), ("MIM", 2.6))
    ]
    return [f"{row['explanation']} with {lime} and {mim}" for lime in near[0] for mim in near[1]]


def table_3(rows: Rows) -> Verdict:
    """Each data set at every scale and T that was tried."""
    usual = {row["data"]: "paper, noise of its size" if row["data"] == "Text" else "paper" for row in rows}
    printed = [row for row in rows if row["explanation"] == usual[row["data"]] or row["explanation"].startswith("paper, T = ")]
    ratios: dict[tuple[str, str], list[float]] = {}
    for row in printed:
        other = row["explanation"].removeprefix("paper").removeprefix(", noise of its size")
        ratios.setdefault((row["data"], f"{row['columns in']}{other}"), []).append(row["excess loss"] / row["in the paper"])
    misses = {place: max(abs(log(value)) for value in each) for place, each in ratios.items()}
    said, good = [], 0
    for data in dict.fromkeys(name for name, _ in ratios):
        own = [place for place in ratios if place[0] == data]
        closest, hits = min(own, key=misses.__getitem__), [where for _, where in own if misses[data, where] <= log(FACTOR)]
        times = " and ".join(f"{value:.2g}" for value in ratios[closest])
        good += bool(hits)
        verb = "reproduced at columns in " if hits else "cannot be reproduced at any of "
        tried = hits or [where for _, where in own if ", T = " not in where]
        steps = sorted({int(where.split("T = ")[1]) for _, where in own if ", T = " in where})
        others = f", also with T = {', '.join(map(str, steps))}" if steps and not hits else ""
        said.append(f"{data} {verb}{'; '.join(tried)}{others} (closest {closest[1]}: {times} times the reported loss)")
    outcome = REPRODUCED if good == len(said) else PARTLY if good else NOT
    return Verdict.of(
        outcome, ". ".join(said), f"at some scale and T both losses of each data set were within a factor of {FACTOR:g}"
    )


def figure_1(rows: Rows) -> Verdict:
    pixels = [row for row in rows if row["superpixels"] == rows[0]["superpixels"]]
    printed = [row for row in pixels if row["explanation"].startswith("paper")]
    best, exact = max(row["cosine"] for row in printed), max(row["cosine"] for row in pixels if row not in printed)
    coarse = max((row["cosine"] for row in rows if row not in pixels and not row["explanation"].startswith("paper")), default=0.0)
    because = f"single pixels reach a cosine of {best:.2g} by the printed formulas and {exact:.2g} by exact noise"
    because += f"; superpixels with exact noise {coarse:.2g}"
    outcome = REPRODUCED if best >= VISIBLE else PARTLY if max(exact, coarse) >= VISIBLE else NOT
    return Verdict.of(outcome, because, f"maps at the printed noise had a cosine of {VISIBLE:g} to the exact one")


def stream(rows: Rows) -> Verdict:
    """At every scale of the columns that was tried: does adaptive spend less than half of basic, counted exactly, and lose hardly more?"""
    basic, adaptive, enhanced = (find_row(rows, mechanism=f"{kind}, paper") for kind in ("basic", "adaptive", "enhanced"))
    ours = [find_row(rows, mechanism=f"{kind}, ours") for kind in ("basic", "adaptive", "enhanced")]
    books = less(adaptive, basic, BOOKED) and less(enhanced, adaptive, BOOKED)
    order = less(ours[1], ours[0], EXACT) and less(ours[2], ours[1], EXACT)
    savings = _savings(rows)
    good = [one for one in savings if one.cheap < min(0.5, 1.25 * one.fresh)]
    printed = (basic, adaptive, enhanced)
    because = f"basic, adaptive and enhanced answers spend {_three(printed, BOOKED, 3)} by the paper's bookkeeping, {_three(printed, EXACT)} "
    because += f"counted exactly, and lose {_three(printed, LOST)} of what there is to explain. "
    because += f"Ours spend {_three(ours, EXACT, 3)} and lose {_three(ours, LOST)}"
    if savings:
        best = min(savings, key=lambda one: one.cheap / one.fresh)
        because += (
            f". With columns in {best.scale} adaptive spends {best.share:.2g} of basic and loses {best.cheap:.2g} where basic "
        )
        because += f"loses {best.fresh:.2g}"
    condition = (
        "adaptive spent less than half of basic, counted exactly, lost at most a quarter more, and less than half of the signal"
    )
    return Verdict.of(REPRODUCED if books and good else PARTLY if books or order else NOT, because, condition)


def _three(rows: Sequence[dict[str, Any]], key: str, digits: int = 2) -> str:
    first, second, third = (f"{row[key]:.{digits}g}" for row in rows)
    return f"{first}, {second} and {third}"


class Saving(NamedTuple):
    """A scale at which adaptive answers spend less than half of basic ones, counted exactly, and what both lose."""

    scale: str
    share: float
    fresh: float
    cheap: float


def _savings(rows: Rows) -> list[Saving]:
    found = []
    for scale in dict.fromkeys(row.get("columns in") for row in rows):
        own = [row for row in rows if row.get("columns in") == scale]
        basic, adaptive = (find_row(own, mechanism=f"{kind}, paper") for kind in ("basic", "adaptive"))
        found.append(Saving(scale or "[0, 1]", adaptive[EXACT] / basic[EXACT], basic[LOST], adaptive[LOST]))
    return [one for one in found if one.share < 0.5]


def figure_4(rows: Rows) -> Verdict:
    printed = find_row(rows, mechanism="adaptive, paper")
    start, worst, end = (printed[key] for key in ("at the start", "at worst", "at the end"))
    because = f"from {start:.2g} up to {worst:.2g} and back to {end:.2g} by the printed formulas (medians of the relative excess)"
    good = worst > 1.1 * start and end < 1.1 * start
    return Verdict.of(
        REPRODUCED if good else NOT, because, "noise raised the loss by a tenth, and the end were no worse than the start"
    )


def figure_5(rows: Rows) -> Verdict:
    printed = [row for row in rows if row["mechanism"].endswith(", paper")]
    hits = [row for row in printed if abs(row[MEAN] / row["mean in the paper"] - 1) <= 0.25]
    said = ", ".join(
        f"{row['data']} {row['mechanism'].split(',')[0]} {row[MEAN]:.3g} of {row['mean in the paper']}" for row in printed
    )
    outcome = REPRODUCED if len(hits) == len(printed) else PARTLY if hits else NOT
    return Verdict.of(outcome, f"mean iterations: {said}", "all means were within a quarter of those reported")


def figure_6(rows: Rows) -> Verdict:
    """Is the weakest model's map unlike f's, and is f's map visible at the printed noise?"""
    exact, printed = ([row for row in rows if row["explanation"].startswith(kind)] for kind in ("ours", "paper"))
    weak, strong = min(exact, key=lambda row: row["test accuracy"]), max(exact, key=lambda row: row["test accuracy"])
    alike, seen = "optimum like f's", find_row(printed, model=strong["model"])["cosine to its own optimum"]
    because = f"the exact map of {weak['model']} ({weak['test accuracy']:.0%} right) correlates with f's by {weak[alike]:.2g}"
    because += f"; by the printed formulas the map of {strong['model']} is found with a cosine of {seen:.2g}"
    differ = weak[alike] < VISIBLE < strong[alike]
    if not differ:
        return Verdict.of(NOT, because, f"the weakest model's map correlated with f's by less than {VISIBLE:g}")
    return Verdict.of(REPRODUCED if seen >= VISIBLE else PARTLY, because, f"that cosine were at least {VISIBLE:g}")


def figure_7(rows: Rows) -> Verdict:
    """Some f_0.5 against f_10 of the same trainer, by the printed formulas: farther from f, and more excess loss?"""
    printed = [row for row in rows if row["mechanism"].startswith("paper") and row["model"] != "f"]
    printed = [row for row in printed if row["mechanism"] == printed[0]["mechanism"]]
    key, base = "distance from f's optimum", next(row for row in printed if row["model"].endswith("f_10"))
    others = [row for row in printed if row["model"].startswith("own ") == base["model"].startswith("own ") and row is not base]
    farther, losing = ([row["model"] for row in others if less(base, row, what)] for what in (key, "excess loss"))
    both = [name for name in farther if name in losing and "f_0.5" in name]
    said = "; ".join(
        f"{row['model']} {row[key]:.3g} ± {row[f'± {key}']:.1g} and {row['excess loss']:.2e} ({row['test accuracy']:.0%} right)"
        for row in (base, *others)
    )
    because = (
        f"distances from f and excess losses: {said}. Farther than {base['model']} by two standard errors: {_list_names(farther)}"
    )
    outcome = REPRODUCED if both else PARTLY if farther or losing else NOT
    condition = "an f_0.5 were both farther from f than f_10 and lost more, by two standard errors"
    return Verdict.of(outcome, f"{because}. With more excess loss: {_list_names(losing)}", condition)


def _list_names(names: list[str]) -> str:
    return " and ".join(names) or "none"


def figure_8(rows: Rows) -> Verdict:
    above, below = [row for row in rows if row["from"] > 0], [row for row in rows if row["to"] < 0]
    said = ", ".join(f"{row['model']} {row['correlation']:.2f} ({row['from']:.2f} to {row['to']:.2f})" for row in rows)
    outcome = REPRODUCED if len(above) == len(rows) else PARTLY if above else NOT
    because = f"correlations {said} on {rows[0]['reviews']:,} reviews; {len(above)} of {len(rows)} intervals lie above 0 and {len(below)} below"
    which = "all models, or of none," if outcome == PARTLY else "all models"
    return Verdict.of(outcome, because, f"the intervals of {which} lay above 0")


def figure_9(rows: Rows) -> Verdict:
    said, results = [], []
    for kind, name, key in (("printed formulas", "adaptive, paper", BOOKED), ("ours", "adaptive, ours", EXACT)):
        dense, random, sparse, plain, over = (
            find_row(rows, mechanism=name, **{"queries about": place})
            for place in ("dense", "random", "sparse", "depth 10", "depth 60")
        )
        results.append((less(dense, random, key) and not less(sparse, random, key), less(plain, over, key)))
        said.append(
            f"{kind}: dense {dense[key]:.3g}, random {random[key]:.3g}, sparse {sparse[key]:.3g}; "
            f"overfitted model {over[key]:.4g} ± {over[f'± {key}']:.1g}, the other {plain[key]:.4g} ± {plain[f'± {key}']:.1g}"
        )
    hits = sum(value for pair in results for value in pair)
    outcome = REPRODUCED if all(results[0]) else PARTLY if hits else NOT
    condition = "dense regions cost less than random ones, and the overfitted model more than the other, by two standard errors"
    return Verdict.of(outcome, "; ".join(said), f"{condition}, by the printed formulas")


def minorities(rows: Rows) -> Verdict:
    name = next(key for key in rows[0] if key.startswith("paper"))
    worse = [row["group"] for row in rows[1:] if less(rows[0], row, name)]
    said = ", ".join(f"{row['group']} {row[name]:.3g} ± {row[f'± {name}']:.1g}" for row in rows)
    outcome = REPRODUCED if len(worse) == len(rows) - 1 else PARTLY if worse else NOT
    return Verdict.of(outcome, f"relative excess {said}", "every group lost more than the majority, by two standard errors")


RULES: dict[str, Callable[[Rows], Verdict]] = {
    "table-2": table_2,
    "table-3": table_3,
    "figure-1": figure_1,
    "figure-2": stream,
    "figure-3": stream,
    "figure-4": figure_4,
    "figure-5": figure_5,
    "figure-6": figure_6,
    "figure-7": figure_7,
    "figure-8": figure_8,
    "figure-9": figure_9,
    "minorities": minorities,
}
