"""Lists every protocol of the library: `python -m tests.protocols` writes the table into CONTRIBUTING.md.

Protocols between rooms stand on `PAGES`, one page for each layer that needs one. Others may stay in the room that alone uses them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/dpexplain"
PAGE = ROOT / "CONTRIBUTING.md"
PAGES = {
    "mechanisms/ports.py": "rows, noise, queries, plans and mechanisms",
    "domain/interface.py": "every domain; it is below `mechanisms/`",
    "core/layout.py": "what `core/` reads of a domain's block, which it must not import",
    "privacy/events.py": "what a ledger counts; it is below `mechanisms/`",
    "ledger/port.py": "every ledger",
    "explainer.py": "what an explainer reads of a release, which it must not import",
}


@dataclass(frozen=True)
class Interface:
    name: str
    module: str
    meaning: str


@cache
def protocols() -> tuple[Interface, ...]:
    found = (one for path in sorted(SOURCE.rglob("*.py")) for one in _in_module(path))
    return tuple(sorted(found, key=lambda one: (one.module not in PAGES, [*PAGES, one.module].index(one.module), one.module)))


def _in_module(path: Path) -> Iterator[Interface]:
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)) if "Protocol" in text else ():
        if isinstance(node, ast.ClassDef) and any(re.fullmatch(r"Protocol(\[.*\])?", ast.unparse(base)) for base in node.bases):
            first = (ast.get_docstring(node) or "").partition("\n")[0]
            yield Interface(node.name, path.relative_to(SOURCE).as_posix(), first)


def rooms_that_use(name: str) -> set[str]:
    """Rooms with a module that has the protocol's name in its code."""
    users = (path for path in SOURCE.rglob("*.py") if name in path.read_text(encoding="utf-8") and name in _names_in(path))
    return {path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in users}


@cache
def _names_in(path: Path) -> frozenset[str]:
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    imported = {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}
    return frozenset(imported | {node.name for node in nodes if isinstance(node, ast.ClassDef)})


def as_text() -> str:
    lines = [f"| `{one.module}` | `{one.name}` | {one.meaning} |" for one in protocols()]
    return "\n".join(["| page | protocol | what it is |", "|---|---|---|", *lines]) + "\n"


def in_page(page: str) -> re.Match[str]:
    """The part of the page that this module writes."""
    found = re.search(r"<!-- protocols -->\n(.*?)<!-- end -->", page, re.DOTALL)
    assert found, f"{PAGE.name} has no place for the protocols"
    return found


def main() -> None:
    page = PAGE.read_text(encoding="utf-8")
    start, stop = in_page(page).span(1)
    PAGE.write_text(page[:start] + as_text() + page[stop:], encoding="utf-8")


if __name__ == "__main__":
    main()
