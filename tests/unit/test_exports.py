"""The public names are exactly those of tests/golden/exports.json: adding or removing one is a decision that a reviewer sees.

After such a decision: `python -m tests.unit.test_exports` writes the file again. How names are retired: RELEASING.md.
"""

import ast
import importlib
import json
from pathlib import Path

import pytest

import dpexplain

FILE = Path(__file__).parents[1] / "golden/exports.json"
MODULES = (
    "dpexplain", "dpexplain.core.weights", "dpexplain.errors", "dpexplain.evaluation", "dpexplain.noise", "dpexplain.plots", "dpexplain.privacy",
    "dpexplain.privacy.gdp", "dpexplain.privacy.paper", "dpexplain.privacy.training",
)  # fmt: skip


def exported_names(module: str) -> list[str]:
    """`__all__`, or: what an __init__ imports under its own name, and what a module defines, without leading underscores."""
    loaded = importlib.import_module(module)
    if hasattr(loaded, "__all__"):
        return sorted(loaded.__all__)
    path = Path(loaded.__file__)
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname for alias in node.names if alias.asname and alias.asname == alias.name}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return sorted(name for name in names if not name.startswith("_"))


@pytest.mark.parametrize("module", MODULES)
def test_the_public_names_are_exactly_those_of_the_list(module):
    assert exported_names(module) == json.loads(FILE.read_text(encoding="utf-8"))[module]


@pytest.mark.parametrize("module", MODULES)
def test_each_public_name_can_be_imported(module):
    loaded = importlib.import_module(module)
    assert [name for name in exported_names(module) if not hasattr(loaded, name)] == []


def test_a_star_import_gives_what_is_public_and_nothing_else():
    found = {}
    exec("from dpexplain import *", found)
    assert sorted(found.keys() - {"__builtins__"}) == sorted(dpexplain.__all__)


if __name__ == "__main__":
    listed = {module: exported_names(module) for module in MODULES}
    FILE.write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")
