"""`python -m experiments.paper._record OUT`: keep what was measured, and write tables and verdicts into the pages.

`results.json` beside this file has each study's rows, sizes, seeds, date and processor time, as last measured. The tables and verdicts in
`docs/reproduction.md` and its notes are made from it (`_page.py`, `_verdicts.py`), and a test holds the pages to it.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from experiments.paper._page import fill_notes, fill_page

RESULTS = Path(__file__).with_name("results.json")
PAGES = {Path("docs/reproduction.md"): fill_page, Path("docs/notes/reproduction.md"): fill_notes}
KEPT = ("study", "date", "queries", "seeds", "shards", "cpu seconds", "rows", "stops", "copies", "models", "notes", "draws")


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


if __name__ == "__main__":
    kept = record(Path(sys.argv[1]))
    for page, filled in PAGES.items():
        page.write_text(filled(page.read_text(encoding="utf-8"), kept), encoding="utf-8")
