"""The workflow, the citation and the release procedure name what exists, and agree with each other."""

import re
from pathlib import Path

import pytest

import dpexplain

ROOT = Path(__file__).parents[2]
WORKFLOW, PROCEDURE, CITATION = (
    (ROOT / name).read_text(encoding="utf-8") for name in (".github/workflows/ci.yml", "RELEASING.md", "CITATION.cff")
)


@pytest.mark.parametrize("text", [WORKFLOW, PROCEDURE], ids=["workflow", "release procedure"])
def test_every_command_and_file_that_is_named_exists(text):
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    named = re.findall(r"\bmake ([\w-]+)", text)
    assert named
    assert set(named) <= set(targets)
    files = re.findall(r"[\w/]+\.(?:py|md|cff|csv)\b", text)
    assert [name for name in files if not (ROOT / name).exists()] == []


def test_the_workflow_lints_tests_documents_packages_and_builds_tags():
    yaml = pytest.importorskip("yaml")
    found = yaml.safe_load(WORKFLOW)
    assert set(found["jobs"]) == {"lint", "test", "coverage", "docs", "package"}
    assert found["jobs"]["test"]["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13", "3.14"]
    assert found[True]["push"] == {"branches": ["main"], "tags": ["v*"]}  # YAML reads `on` as true


def test_the_citation_is_of_this_version_and_of_the_paper():
    assert f"\nversion: {dpexplain.__version__}\n" in CITATION
    assert "Model Explanations with Differential Privacy" in CITATION
    assert {"Patel", "Shokri", "Zick"} <= set(re.findall(r"family-names: (\w+)", CITATION))
