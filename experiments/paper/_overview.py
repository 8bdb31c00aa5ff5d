"""One line for each artefact of the paper: the verdict, its number, and ours in four ways. Made from results.json, for docs/reproduction.md."""

from __future__ import annotations

from collections.abc import Callable
from math import hypot
from typing import Any

from experiments.paper._verdicts import verdict

Kept = dict[str, Any]
HEADER = ("artefact", "verdict", "what", "the paper", "its formulas here", "exact accounting", "fitted plane, paid", "release")
UNKNOWN = "not measured"
NO_STEPS = "not applicable: takes no steps"  # sums and releases are paid for before a record is known
DATA = {"ACS": "ACS", "Text": "Text", "faces": "Face"}  # Table 3's, as its rows call them
FREE = {"labels": ", as in the paper", "regression": ", our default for such planes", "neighbour": ""}
SHARED, BOOKED, EXACT, LOST = "shared with LIME", "ε by the paper's bookkeeping", "total ε, exact", "relative excess"


def overview(kept: Kept) -> list[list[str]]:
    return [[link(artefact), outcome(kept, artefact), what, *make(kept)] for artefact, what, make in LINES]


def study_of(artefact: str) -> str:
    """The study that an artefact is in: table-3 for "Table 3, faces"."""
    return artefact.split(",")[0].lower().replace(" ", "-")


def link(artefact: str) -> str:
    return f"[{artefact}](#{study_of(artefact)})"


def outcome(kept: Kept, artefact: str) -> str:
    """By the rules of `_verdicts.py`; a line about one data set has the verdict on its rows alone."""
    found = kept.get(study_of(artefact), {"study": "", "rows": []})
    if data := DATA.get(artefact.partition(", ")[2]):
        found = found | {"rows": [row for row in found["rows"] if row["data"].split(",")[0] == data]}
    told = verdict(found)
    return told.outcome + _where(told.because) if told else UNKNOWN


def _where(because: str) -> str:
    """The choice at which Table 3's verdict holds, as it says it: "… (closest [0, 0.3]: 1.4 and …)"."""
    _, found, rest = because.partition("(closest ")
    return f" at {rest.partition(':')[0]}" if found and " cannot be " not in because else ""


FREE_HEADER = ("free answers by", "ACS, printed noise", "ACS, exact noise", "Text, printed noise", "Text, exact noise")


def free_answers(kept: Kept) -> list[list[str]]:
    """Relative excess of the non-interactive phase from adaptive answers of Figures 2 and 3, and of those answers themselves."""
    names = {f"{method}{note}": f"non-interactive by {method}" for method, note in FREE.items()} | {
        "(paid: adaptive)": "adaptive"
    }
    places = [(study, kind) for study in ("figure-2", "figure-3") for kind in ("paper", "ours")]
    return [
        [title, *(pick(kept, study, LOST, 2, mechanism=f"{name}, {kind}") for study, kind in places)]
        for title, name in names.items()
    ]


def pick(kept: Kept, study: str, key: str, digits: int = 3, **wanted: Any) -> str:
    """A number of the first row with these entries; a text is the beginning of an entry."""
    for row in kept.get(study, {}).get("rows", ()):
        if key in row and all(str(row.get(name.replace("_", " "))) == value for name, value in wanted.items()):
            return number(row, key, digits)
    return UNKNOWN


def number(row: dict[str, Any], key: str, digits: int) -> str:
    """A value with its standard error, unless that is below half a percent."""
    error = row.get(f"± {key}") or 0.0
    return f"{row[key]:.{digits}g}" + (f" ± {error:.1g}" if error > 0.005 * abs(row[key]) else "")


def words(kept: Kept) -> list[str]:
    def value(name: str) -> str:
        return pick(kept, "table-2", SHARED, explanation=name)

    exact = next((row["explanation"] for row in kept["table-2"]["rows"] if row["explanation"].startswith("ours, μ of")), "")
    paid = f"{value('fitted plane, ε = 1')} at ε = 1"
    release = f"ε = 1 once: {value('release, ε = 1 in total')}; fitted {value('fitted plane, release, ε = 1 in total')}"
    size = "at 8.8 M reviews"
    return ["3.9", f"{value('paper, noise of 8.8 M reviews')} {size}", f"{value(exact)} {size}", paid, release]


def losses(data: str, reported: str, other: str, fitted: tuple[str, str, str], grid: str = "") -> Callable[[Kept], list[str]]:
    """Excess loss at ε = 0.1 with columns in [0, 1], relative excess behind it; `other` is a scale of the columns, with another T where one is named.
    `fitted` names the data, the paid answers and the release among fitted planes; `grid` are their superpixels."""
    columns, _, steps = other.partition(", T = ")

    def make(kept: Kept) -> list[str]:
        def value(columns: str, *kinds: str) -> str:
            for kind in kinds:
                wanted = {"data": data, "columns_in": columns, "ε": "0.1", "explanation": kind}
                if (loss := pick(kept, "table-3", "excess loss", 2, **wanted)) != UNKNOWN:
                    return f"{loss} ({pick(kept, 'table-3', LOST, 2, **wanted)})"
            return UNKNOWN

        printed = ("paper, noise of its size", "paper")
        walk = (f"paper, T = {steps}",) if steps else printed
        formulas = f"{value('[0, 1]', *printed)}; in {other} {value(columns, *walk)}"
        exact = value("[0, 1]", "ours, μ of its size", "ours", "exact noise")
        paid, once = (pick(kept, "fitted-planes", LOST, 2, data=fitted[0], explanation=name) for name in fitted[1:])
        return [reported, formulas, exact, f"{grid}({paid})", f"{grid}({once})"]

    return make


def maps(kept: Kept) -> list[str]:
    def value(grid: str, name: str) -> str:
        return pick(kept, "figure-1", "cosine", 2, superpixels=grid, explanation=name)

    exact = f"{value('48×48', 'ours, ε = 1')}; 12×12 {value('12×12', 'ours, ε = 1')}"
    fitted, release = (
        f"12×12 {pick(kept, 'fitted-planes', 'cosine', 2, data='Faces, 12×12', explanation=name)}"
        for name in ("basic, ε = 1", "release, ε = 1 once")
    )
    return ["good to the eye from ε = 0.07", value("48×48", "paper, ε = 1"), exact, fitted, release]


def spending(study: str, said: str, fitted: str, release: str) -> Callable[[Kept], list[str]]:
    """Total ε and relative excess of adaptive answers."""

    def make(kept: Kept) -> list[str]:
        def value(key: str, name: str) -> str:
            return pick(kept, study, key, 2, mechanism=name)

        printed = f"{value(BOOKED, 'adaptive, paper')} by its books, {value(EXACT, 'adaptive, paper')} exactly ({value(LOST, 'adaptive, paper')})"
        exact = f"{value(EXACT, 'adaptive, ours')} ({value(LOST, 'adaptive, ours')})"
        rows = [row for row in kept.get("fitted-planes", {}).get("rows", ()) if row["data"] == fitted]
        paid, once = (
            next((_with_total(row) for row in rows if row["explanation"].startswith(kind)), UNKNOWN)
            for kind in ("adaptive", "release")
        )
        released = pick(kept, study, LOST, 2, mechanism=f"release, ε = {release} once")
        return [said, printed, exact, paid, f"{release} once ({released}); fitted {once}"]

    return make


def _with_total(row: dict[str, Any]) -> str:
    """Relative excess in brackets, behind what was spent in all."""
    return (f"{number(row, 'total ε', 2)} " if "total ε" in row else "") + f"({number(row, LOST, 2)})"


def paths(kept: Kept) -> list[str]:
    def value(name: str) -> str:
        places = ("at the start", "at worst", "at the end")
        return " to ".join(pick(kept, "figure-4", key, 2, mechanism=name) for key in places)

    return ["up, and back", value("adaptive, paper"), value("adaptive, ours"), NO_STEPS, NO_STEPS]


def iterations(kept: Kept) -> list[str]:
    def value(name: str) -> str:
        return " and ".join(pick(kept, "figure-5", "mean T'", data=data, mechanism=name) for data in ("ACS", "Text"))

    text = next(iter(plane_numbers(kept, "mean T'", "Text, a third", "adaptive")), UNKNOWN)
    return ["121 and 149", value("adaptive, paper"), value("adaptive, ours"), f"none (by sums) and {text}", NO_STEPS]


def plane_numbers(kept: Kept, key: str, data: str, kind: str, digits: int = 3) -> list[str]:
    """Numbers of the fitted planes' rows about these data whose explanation begins so."""
    rows = [row for row in kept.get("fitted-planes", {}).get("rows", ()) if row["data"] == data and key in row]
    return [number(row, key, digits) for row in rows if row["explanation"].startswith(kind)]


def of_models(kept: Kept, key: str, data: str, models: tuple[str, ...], kind: str, digits: int = 3) -> str:
    """The same about several models of our own trainer."""
    return " and ".join(next(iter(plane_numbers(kept, key, f"{data}, own {model}", kind, digits)), UNKNOWN) for model in models)


def likeness(kept: Kept) -> list[str]:
    def value(name: str) -> str:
        key = "cosine to its own optimum"
        return " and ".join(pick(kept, "figure-6", key, 2, model=model, explanation=name) for model in ("f", "f_0.5, weak"))

    return [
        "f's map shows the mouth, f_0.5's nothing",
        value("paper, pixels, ε = 0.1"),
        f"12×12 {value('ours, 12×12, ε = 1')}",
        *(
            f"12×12, own f and f_0.02: {of_models(kept, 'cosine', 'Faces, 12×12', ('f', 'f_0.02'), kind, 2)}"
            for kind in ("basic", "release")
        ),
    ]


def distances(kept: Kept) -> list[str]:
    def value(name: str) -> str:
        key = "distance from f's optimum"
        return " and ".join(pick(kept, "figure-7", key, model=model, mechanism=name) for model in ("f_10", "f_0.5"))

    key, own = "distance from f's optimum", ("f_10", "f_0.5")
    paid, once = (f"own models: {of_models(kept, key, 'Text', own, kind)}" for kind in ("basic", "release"))
    return ["f_0.5 farther than f_10", value("paper, T=200"), value("ours, ε = 1"), paid, once]


def correlations(kept: Kept) -> list[str]:
    rows = kept.get("figure-8", {}).get("rows", [])
    fitted = [row for row in kept.get("fitted-planes", {}).get("rows", ()) if "from" in row and not row["data"].endswith("own f")]
    by_kind = ([row for row in fitted if row["explanation"].startswith(kind)] for kind in ("basic", "release"))
    printed, exact = _count_above(rows), _count_above(rows, "from, ours", "reviews of ours")
    return ["above 0, every model", printed, exact, *(f"own models: {_count_above(each, reviews='queries')}" for each in by_kind)]


def _count_above(rows: list[dict[str, Any]], key: str = "from", reviews: str = "reviews") -> str:
    known = [row for row in rows if key in row]
    above = sum(row[key] > 0 for row in known)
    return f"{above} of {len(known)} intervals ({known[0][reviews]:,} reviews)" if known else UNKNOWN


def regions(kept: Kept) -> list[str]:
    def value(name: str, key: str) -> str:
        places = ("dense", "random", "sparse", "depth 10", "depth 60")
        found = [pick(kept, "figure-9", key, queries_about=place, mechanism=name) for place in places]
        return f"{', '.join(found[:3])}; {' and '.join(found[3:])}"

    total = next(iter(plane_numbers(kept, "total ε", "ACS, a third", "adaptive", 2)), UNKNOWN)
    paid = f"the same for all: sums are bought once ({total} for any queries and labels)"
    return ["rising; rising", value("adaptive, paper", BOOKED), value("adaptive, ours", EXACT), paid, "the same for all"]


def minorities(kept: Kept) -> list[str]:
    """As the study's notes say it, "NAME: worst group 1.50 ± 0.02 times …"."""
    notes = dict(note.split(": worst group ") for note in kept.get("minorities", {}).get("notes", ()))

    def value(name: str) -> str:
        return notes[name].split(" times")[0] if name in notes else UNKNOWN

    paid, once = (_worst_group(kept, kind) for kind in ("adaptive", "release"))
    return [
        "said, not measured",
        value("paper, ε = 0.1"),
        value("ours, ε = 0.1"),
        paid,
        f"{value('release, ε = 0.1 once')}; fitted {once}",
    ]


def _worst_group(kept: Kept, kind: str) -> str:
    """The worst group's relative excess over the majority's, by fitted planes, with an error as if groups shared no noise."""
    rows = [
        row
        for row in kept.get("fitted-planes", {}).get("rows", ())
        if row["data"].startswith("ACS, ") and "third" not in row["data"]
    ]
    first, *others = [row for row in rows if row["explanation"].startswith(kind)] or [None]
    if first is None or not others:
        return UNKNOWN
    worst = max(others, key=lambda row: row[LOST])
    ratio = worst[LOST] / first[LOST]
    return f"{ratio:.2f} ± {ratio * hypot(*(row[f'± {LOST}'] / row[LOST] for row in (worst, first))):.2f}"


LINES: tuple[tuple[str, str, Callable[[Kept], list[str]]], ...] = (
    ("Table 2", "words shared with LIME", words),
    (
        "Table 3, ACS",
        "excess loss, ε = 0.1",
        losses("ACS", "2.6e-4", "[0, 0.3]", ("ACS", "basic, ε = 0.1", "release, ε = 0.1 once")),
    ),
    (
        "Table 3, Text",
        "excess loss, ε = 0.1",
        losses("Text", "4.3e-4", "[0, 0.3], T = 3000", ("Text", "basic, ε = 0.1, μ of 8.8 M", "release, ε = 1 once")),
    ),
    (
        "Table 3, faces",
        "excess loss, ε = 0.1",
        losses("Face", "2.2e-3", "[0, 0.025]", ("Faces, 12×12", "basic, ε = 0.1", "release, ε = 0.1 once"), "12×12 "),
    ),
    ("Figure 1", "cosine of pixels, ε = 1", maps),
    ("Figure 2", "total ε of adaptive", spending("figure-2", "below 1.1, far below basic", "ACS, a third", "0.1")),
    ("Figure 3", "total ε of adaptive", spending("figure-3", "far below basic", "Text, a third", "1")),
    ("Figure 4", "relative excess on the way", paths),
    ("Figure 5", "mean T' of adaptive", iterations),
    ("Figure 6", "cosine of maps, f and weak f_0.5", likeness),
    ("Figure 7", "distance from f, f_10 and f_0.5", distances),
    ("Figure 8", "correlation with errors nearby", correlations),
    ("Figure 9", "total ε in regions; two models", regions),
    ("Minorities", "worst group over majority", minorities),
)
