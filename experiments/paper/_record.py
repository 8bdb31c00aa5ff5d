"""`python -m experiments.paper._record OUT`: keep what was measured, and write its verdicts into the page.

`results.json` beside this file has each study's rows, sizes, seeds, date and processor time, as last measured. The table of verdicts in
`docs/reproduction.md` is made from it by the rules of `_verdicts.py`, and a test holds the page to it.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from experiments.paper._verdicts import verdict

RESULTS, PAGE = Path(__file__).with_name("results.json"), Path("docs/reproduction.md")
KEPT = ("study", "date", "queries", "seeds", "shards", "cpu seconds", "rows", "models", "notes")
BEGIN, END = "<!-- verdicts: python -m experiments.paper._record OUT -->", "<!-- end of verdicts -->"


def record(output: Path) -> dict[str, Any]:
    """results.json with the studies that are in the folder instead of its older ones."""
    kept = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for path in sorted(output.glob("*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        if found.get("study") == path.stem:
            measured = {"date": datetime.fromtimestamp(path.stat().st_mtime, UTC).date().isoformat()} | found
            kept[path.stem] = {key: measured[key] for key in KEPT if key in measured}
    lines = (f"{json.dumps(name)}: {json.dumps(one, ensure_ascii=False)}" for name, one in sorted(kept.items()))
    RESULTS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return kept


def table(kept: dict[str, Any]) -> str:
    """One line a study, in Markdown."""
    lines = ["| study | queries, seeds | date | verdict by the rules |", "|---|---|---|---|"]
    for name, one in sorted(kept.items(), key=lambda each: (each[0][:6] != "table-", each[0])):
        told = str(verdict(one) or "no rule").replace("|", "\\|")
        lines.append(f"| **{name}** | {one['queries']:,}, {one.get('seeds', 1)} | {one['date']} | {told} |")
    return "\n".join(lines)


def insert_table(page: str, made: str) -> str:
    """The page with this table between the markers."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n\n{made}\n\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(insert_table(PAGE.read_text(encoding="utf-8"), table(record(Path(sys.argv[1])))), encoding="utf-8")
