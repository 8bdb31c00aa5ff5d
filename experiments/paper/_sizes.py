"""How many queries and draws of noise stand behind a study's numbers, in one sentence for docs/reproduction.md."""

from __future__ import annotations

from typing import Any

COUNTS = ("queries", "points", "reviews", "faces", "answers")  # what a row calls its queries
BY = {"paper": "the printed formulas", "ours": "ours", "release": "releases", "free": "free answers"}
NOTES = {
    "figure-5": "From the first seed of Figures 2 and 3.",
    "figure-8": "From the answers of Figure 7, draws of noise averaged.",
}


def sizes_text(found: dict[str, Any]) -> str:
    """The command, the date, and for each way to answer how many queries and seeds."""
    command = f"`dpexplain reproduce {found['study']} --data DIR`, {found['date']}"
    sizes = {kind: _ranges(rows) for kind, rows in _by_kind(found).items()}
    if len(set(sizes.values())) == 1:
        said = next(iter(sizes.values()))
    else:
        said = "; ".join(f"{BY[kind]} {each}" for kind, each in sizes.items())
    return f"{command}: {said}." + (f" {NOTES[found['study']]}" if found["study"] in NOTES else "")


def most_queries(found: dict[str, Any]) -> int:
    """As many as any of its numbers has, of all shards together."""
    return max((count(row, found["queries"]) for row in found["rows"]), default=found["queries"])


def count(row: dict[str, Any], usual: int) -> int:
    """The row's queries, under the name it has for them."""
    return next((row[key] for key in COUNTS if key in row), usual)


def _by_kind(found: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Rows by how they answer, with what they call their queries under one name. What has no noise is left out."""
    grouped: dict[str, list[dict[str, Any]]] = {}
    for row in found.get("draws", ()) or found["rows"]:
        kind = _kind(row.get("mechanism") or row.get("explanation") or "paper")
        if kind is not None:
            grouped.setdefault(kind, []).append({"queries": count(row, found["queries"]), "seeds": row.get("seeds")})
    return grouped


def _kind(name: str) -> str | None:
    if name.startswith("non-interactive"):
        return "free"
    if "release" in name:
        return "release"
    if name.startswith(("no explanation", "exact", "MIM", "LIME", "the paper's plane")) or name.endswith(", exact"):
        return None
    return "paper" if name.startswith("paper") or name.endswith(", paper") else "ours"


def _ranges(rows: list[dict[str, Any]]) -> str:
    queries, seeds = ([row[key] for row in rows if row[key] is not None] for key in ("queries", "seeds"))
    return f"{_range(queries)} queries" + (f", {_range(seeds)} {'seed' if set(seeds) == {1} else 'seeds'}" if seeds else "")


def _range(values: list[int]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
