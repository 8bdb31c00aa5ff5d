"""docs/claims.md: every proof has a row, and every name in a row is that of something that exists."""

import importlib
import importlib.util
import re
from functools import cache
from operator import attrgetter
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
AUDITS = "statistical/test_audit.py"
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs/claims.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and "](../proofs/" in line
]


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def resolve(dotted: str) -> object:
    """What a name relative to dpexplain stands for: as much of it as possible is a module, the rest are attributes."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        try:
            module = importlib.import_module(".".join(["dpexplain", *parts[:length]]))
        except ModuleNotFoundError:
            continue
        return attrgetter(".".join(parts[length:]))(module) if parts[length:] else module
    raise LookupError(dotted)


@cache
def test_module(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"claimed_{Path(path).stem}", ROOT / "tests" / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


test_module.__test__ = False


def test_every_proof_has_one_row():
    proofs = sorted(re.search(r"\.\./proofs/(\w+\.md)", row[1]).group(1) for row in ROWS)
    assert proofs == sorted(path.name for path in (ROOT / "proofs").glob("*.md"))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: names(row[2])[0])
def test_names_are_those_of_code_tests_and_audits(row):
    claim, _, code, tests, audit = row
    assert claim.endswith(".")
    assert names(code)
    assert names(tests)
    assert audit
    for name in names(code):
        resolve(name)
    for name in names(tests) + [f"{AUDITS}::{one}" for one in names(audit)]:
        path, _, function = name.partition("::")
        assert function.startswith("test_")
        assert callable(getattr(test_module(path), function)), name
