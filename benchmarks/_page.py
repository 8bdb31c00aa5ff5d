"""Tables of a run inside a Markdown page, between `<!-- benchmark: name -->` and `<!-- end -->`."""

from __future__ import annotations

import re

_MARKED = re.compile(r"(<!-- benchmark: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def cells(rows: list[dict[str, object]]) -> tuple[list[str], list[list[str]]]:
    """Columns in the order of their first appearance, and every value as text."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    return columns, [[text(row.get(column, "")) for column in columns] for row in rows]


def text(value: object) -> str:
    """Three digits are what a benchmark can tell."""
    if not isinstance(value, float):
        return f"{value:,}" if isinstance(value, int) else "" if value is None else str(value)
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def markdown(rows: list[dict[str, object]]) -> str:
    columns, values = cells(rows)
    lines = [columns, ["---"] * len(columns), *values]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def rewritten(page: str, results: dict[str, list[dict[str, object]]]) -> str:
    """The page with every table that was measured replaced; the others stay."""

    def table(match: re.Match[str]) -> str:
        start, name, end = match.groups()
        return start + "\n" + markdown(results[name]) + "\n" + end if name in results else match.group(0)

    return _MARKED.sub(table, page)


def marked_names(page: str) -> list[str]:
    return [name for _, name, _ in _MARKED.findall(page)]
