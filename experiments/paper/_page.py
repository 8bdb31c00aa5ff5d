"""The measured tables and verdicts of docs/reproduction.md, made from results.json: a number on that page cannot be older than what was measured.

Each table stands between `<!-- measured: STUDY -->` and `<!-- end of STUDY -->`; the summary of all of them between the same marks of `summary`.
Long tables about groups and models are in docs/notes/reproduction.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from textwrap import fill
from typing import Any

from experiments.paper import _models_table, _text_numbers
from experiments.paper._overview import FREE_HEADER, HEADER, free_answers, overview
from experiments.paper._sizes import most_queries, sizes_text
from experiments.paper._verdicts import verdict

Rows = list[dict[str, Any]]
STREAM = (
    "total ε, exact",
    "ε by the paper's bookkeeping",
    "mean T'",
    "copied",
    "at full T",
    "relative excess",
    "cosine",
    "queries",
    "seeds",
)
SHARED = ("LIME", "LIME, forest", "MIM", "MIM, signed")
LABEL = "a review whose label is"
EXAMPLES = {
    "Algorithm 1, printed noise": "paper, noise of 8.8 M reviews",
    "without noise": "exact optimum",
    "LIME, forest": "LIME, forest",
    "MIM, signed": "MIM, signed",
}
TABLE_3 = {
    "printed noise": ("paper, noise of its size", "paper"),
    "exact noise": ("exact noise of its size", "exact noise"),
    "ours": ("ours, μ of its size", "ours"),
    "no explanation": ("no explanation",),
}
USUAL_STEPS = {"ACS": 300, "Text": 300, "Face": 200}


def fill_page(page: str, kept: dict[str, Any]) -> str:
    """The page with today's tables between its marks."""
    page = _replace(page, "summary", summary_table(kept))
    page = _replace(page, "overview", markdown(HEADER, overview(kept)))
    page = _replace(page, "examples", examples_table(kept["table-2"]["notes"]))
    page = _replace(page, "free answers", markdown(FREE_HEADER, free_answers(kept)))
    page = _replace(page, "numbers of the text", markdown(_text_numbers.HEADER, _text_numbers.text_numbers(kept)))
    for kind in ("stops", "copies"):
        rows = [row for study in ("figure-2", "figure-3") for row in kept[study][kind]]
        page = _replace(page, kind, columns(rows, *dict.fromkeys(key for row in rows for key in row))[0])
    for study, kind in (("figure-6", "faces"), ("figure-7", "reviews")):
        page = _replace(page, f"models of {kind}", markdown(_models_table.HEADER, _models_table.models_table(kept, study)))
    for name, found in kept.items():
        page = _replace(page, name, study_text(found))
    return page


def fill_notes(page: str, kept: dict[str, Any]) -> str:
    """docs/notes/reproduction.md with today's tables between its marks."""
    return _replace(page, "groups and models", "\n\n".join(groups_and_models(kept["fitted-planes"]["rows"])))


def _replace(page: str, name: str, text: str) -> str:
    begin, end = f"<!-- measured: {name} -->", f"<!-- end of {name} -->"
    if begin not in page or end not in page:
        raise ValueError(f"the page has no {begin} … {end}: put both where the table belongs")
    before, rest = page.split(begin)
    return f"{before}{begin}\n\n{text}\n\n{end}{rest.split(end)[1]}"


def examples_table(notes: list[str]) -> str:
    """Table 2 as the paper has it: reviews with their five strongest words. Each begins with its label, "a review whose label is: +1"."""
    reviews: list[dict[str, str]] = []
    for name, words in (note.split(": ", 1) for note in notes):
        if name == LABEL:
            reviews.append({})
        reviews[-1][name] = words
    lines = [[one[LABEL], *(one[name].replace(" ", ", ") for name in EXAMPLES.values())] for one in reviews]
    return markdown(("label", *EXAMPLES), lines)


def summary_table(kept: dict[str, Any]) -> str:
    """One line a study: its outcome by the rules, and the size of the run."""
    lines = []
    for name, found in sorted(kept.items(), key=lambda each: (each[0][:6] != "table-", each[0])):
        told = verdict(found)
        outcome = told.outcome if told else "not in the paper"
        lines.append([f"[`{name}`](#{name})", outcome, _size(found), found["date"], f"{found.get('cpu seconds', 0):,.0f} s"])
    return markdown(("study", "outcome", "queries, seeds", "measured", "processor time"), lines)


def _size(found: dict[str, Any]) -> str:
    """The most queries and the most seeds that any of its numbers has: some studies have fewer seeds than were asked for."""
    seeds = [row["seeds"] for row in found["rows"] if "seeds" in row] or [found.get("seeds", 1)]
    return f"{most_queries(found):,}, {max(seeds)}"


def study_text(found: dict[str, Any]) -> str:
    """A study's verdict with what would have changed it, the command, the size of the run, and its tables."""
    tables, told = TABLES[found["study"]](found["rows"]), verdict(found)
    first = [] if told is None else [_wrap(f"**{told.outcome.capitalize()}**: {told.because}. {_otherwise(told.otherwise)}")]
    return "\n\n".join([*first, _wrap(sizes_text(found)), *tables])


def _otherwise(text: str) -> str:
    return f"It would be different {text}."


def _wrap(text: str) -> str:
    """Sentences of a verdict as paragraphs of at most 500 characters, wrapped at 120."""
    paragraphs = [""]
    for sentence in re.split(r"(?<=[.;]) ", text):
        longer = f"{paragraphs[-1]} {sentence}".strip()
        if paragraphs[-1] and len(longer) > 480:
            paragraphs.append(sentence)
        else:
            paragraphs[-1] = longer
    return "\n\n".join(fill(one, 120, break_long_words=False, break_on_hyphens=False) for one in paragraphs)


def markdown(header: tuple[str, ...], lines: list[list[str]]) -> str:
    rows = [header, ["---"] * len(header), *lines]
    return "\n".join(f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in row)} |" for row in rows)


def number(row: dict[str, Any], key: str) -> str:
    """A value with its standard error, or a text as it is."""
    value, error = row.get(key, ""), row.get(f"± {key}")
    if not isinstance(value, float):
        return str(value)
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{text} ± {error:.2g}" if error and error > 1e-3 * abs(value) else text


def columns(rows: Rows, *names: str, where: Callable[[dict[str, Any]], bool] = lambda _: True) -> list[str]:
    """One table with these columns; those that no row has are left out, and so is a table without rows."""
    some = [row for row in rows if where(row)]
    if not some:
        return []
    names = tuple(name for name in names if any(name in row for row in some))
    return [markdown(names, [[number(row, name) for name in names] for row in some])]


def of_group_or_model(row: dict[str, Any]) -> bool:
    """Whether a row of fitted planes is about a group of people or one of several models."""
    return ", own " in row["data"] or (row["data"].startswith("ACS, ") and row["data"] != "ACS, a third")


def groups_and_models(rows: Rows) -> list[str]:
    """Fitted planes about groups of people and about models, and correlations with the models' errors nearby."""
    correlation = "correlation with errors nearby"
    return [
        *columns(
            rows,
            *("data", "explanation", "relative excess", "cosine", "distance from f's optimum", "queries", "seeds"),
            where=of_group_or_model,
        ),
        *columns(
            rows, *("data", "explanation", correlation, "from", "to", "queries", "seeds"), where=lambda row: correlation in row
        ),
    ]


def words_shared(rows: Rows) -> list[str]:
    header = ("explanation", *(f"with {name}" for name in SHARED), "reviews", "seeds")
    some = [row for row in rows if not re.match("LIME|MIM", row["explanation"])]
    keys = (*(f"shared with {name}" for name in SHARED), "reviews", "seeds")
    return [markdown(header, [[row["explanation"], *(number(row, key) for key in keys)] for row in some])]


def losses(rows: Rows) -> list[str]:
    """A line for each data set and scale: excess losses at both ε; then how T changes them, over those reported."""
    places = list(dict.fromkeys((row["data"], row["columns in"]) for row in rows))
    header = ("data, columns in", "reported", *TABLE_3)
    lines = []
    for place in places:
        own = [row for row in rows if (row["data"], row["columns in"]) == place]
        reported = " and ".join(f"{value:.1e}" for value in dict.fromkeys(row["in the paper"] for row in own))
        lines.append([", ".join(place), reported, *(_two_losses(own, kinds) for kinds in TABLE_3.values())])
    return [markdown(header, lines), steps_table(rows, places)]


def _two_losses(rows: Rows, kinds: tuple[str, ...]) -> str:
    for kind in kinds:
        found = [row for row in rows if row["explanation"] == kind]
        if found:
            return " and ".join(dict.fromkeys(f"{row['excess loss']:.2e} ± {row['± excess loss']:.0e}" for row in found))
    return ""


def steps_table(rows: Rows, places: list[tuple[str, str]]) -> str:
    counts = sorted(
        {int(row["explanation"].split("= ")[1]) for row in rows if "T = " in row["explanation"]} | set(USUAL_STEPS.values())
    )
    lines = []
    for data, scale in places:
        own = [row for row in rows if (row["data"], row["columns in"]) == (data, scale)]
        if not any("T = " in row["explanation"] for row in own):
            continue
        usual = "paper, noise of its size" if data == "Text" else "paper"
        names = [usual if count == USUAL_STEPS[data] else f"paper, T = {count}" for count in counts]
        lines.append([f"{data}, {scale}", *(_two_ratios(own, name) for name in names)])
    return markdown(("times the reported losses", *(f"T = {count:,}" for count in counts)), lines)


def _two_ratios(rows: Rows, kind: str) -> str:
    values = [row["excess loss"] / row["in the paper"] for row in rows if row["explanation"] == kind]
    text = " and ".join(f"{value:.2g}" for value in values)
    return f"**{text}**" if values and all(0.5 <= value <= 2 for value in values) else text


TABLES: dict[str, Callable[[Rows], list[str]]] = {
    "table-2": words_shared,
    "table-3": losses,
    "figure-1": lambda rows: columns(
        rows, "superpixels", "explanation", "cosine", "relative excess", "T that Theorem 3.2 allows"
    ),
    "figure-2": lambda rows: [
        *columns(rows, "mechanism", *STREAM, where=lambda row: "columns in" not in row),
        *columns(rows, "columns in", "mechanism", *STREAM, where=lambda row: "columns in" in row),
    ],
    "figure-3": lambda rows: columns(rows, "mechanism", *STREAM),
    "figure-4": lambda rows: columns(
        rows, "mechanism", "at the start", "at worst", "at the end", "ends better than it starts", "answers", "seeds"
    ),
    "figure-5": lambda rows: columns(
        rows, "data", "mechanism", "mean T'", "mean in the paper", "median", "smallest", "most frequent", "at full T"
    ),
    "figure-6": lambda rows: columns(
        rows, "model", "test accuracy", "explanation", "cosine to its own optimum", "relative excess", "optimum like f's"
    ),
    "figure-7": lambda rows: columns(
        rows,
        *(
            "model",
            "test accuracy",
            "in the paper",
            "mechanism",
            "distance from f's optimum",
            "excess loss",
            "relative excess",
            "reviews",
            "seeds",
        ),
        where=lambda row: row["mechanism"] != "paper, T=500",  # which is Figure 8's
    ),
    "figure-8": lambda rows: columns(
        rows, "model", "correlation", "from", "to", "correlation, ours", "from, ours", "to, ours", "reviews of ours"
    ),
    "figure-9": lambda rows: columns(rows, "queries about", "mechanism", *STREAM),
    "fitted-planes": lambda rows: columns(
        rows,
        *("data", "explanation", "total ε", "mean T'", "relative excess", "cosine", "queries", "seeds"),
        where=lambda row: not of_group_or_model(row),
    ),
    "minorities": lambda rows: columns(rows, *(key for key in rows[0] if not key.startswith("± ") and key != "people")),
}
