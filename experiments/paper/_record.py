"""`python -m experiments.paper._record OUT`: keep what was measured, and write tables and verdicts into the page.

`results.json` beside this file has each study's rows, sizes, seeds, date and processor time, as last measured. The tables and verdicts in
`docs/reproduction.md` are made from it (`_page.py`, `_verdicts.py`), and a test holds the page to it.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from experiments.paper._page import fill_page

RESULTS, PAGE = Path(__file__).with_name("results.json"), Path("docs/reproduction.md")
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
    PAGE.write_text(fill_page(PAGE.read_text(encoding="utf-8"), record(Path(sys.argv[1]))), encoding="utf-8")
