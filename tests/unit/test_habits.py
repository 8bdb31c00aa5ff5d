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
    assert set(found["jobs"]) == {"lint", "test", "coverage", "torch", "docs", "package"}
    matrix = found["jobs"]["test"]["strategy"]["matrix"]
    stated = re.findall(r"Programming Language :: Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert matrix["python"] == stated  # what is stated is what must pass; other versions are tried
    assert [entry["experimental"] for entry in matrix["include"]] == [True]
    assert found[True]["push"] == {"branches": ["main"], "tags": ["v*"]}  # YAML reads `on` as true


def test_the_citation_is_of_this_version_and_of_the_paper():
    assert f"\nversion: {dpexplain.__version__}\n" in CITATION
    assert "Model Explanations with Differential Privacy" in CITATION
    assert {"Patel", "Shokri", "Zick"} <= set(re.findall(r"family-names: (\w+)", CITATION))


def test_a_packager_gets_the_tests_and_what_they_read():
    """MANIFEST.in names every folder and file of the repository, but for those that only this repository needs."""
    manifest = (ROOT / "MANIFEST.in").read_text(encoding="utf-8")
    named = {
        path.rstrip("/") for line in manifest.splitlines() if line.startswith(("graft", "include")) for path in line.split()[1:]
    }
    folders = {"tests", "docs", "proofs", "experiments", "benchmarks", "deploy", ".github"}
    assert folders <= named
    assert {"*.md", "Makefile", "mkdocs.yml", "constraints.txt", "constraints-clients.txt", "CITATION.cff"} <= named
    assert all((ROOT / name).exists() for name in named if "*" not in name)
