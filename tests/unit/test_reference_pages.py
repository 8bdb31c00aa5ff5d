"""The reference has every public name, each with an example, and the examples run."""

import importlib
import inspect
import re
from pathlib import Path

import pytest
from tests.unit.test_exports import exported_names

import dpexplain

PAGES = sorted((Path(__file__).parents[2] / "docs/reference").glob("*.md"))
TEXTS = {page.stem: page.read_text(encoding="utf-8") for page in PAGES}
CODE = {name: "".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)) for name, text in TEXTS.items()}
MODULES = {"__version__", "privacy", "weights"}
ENTRIES = {entry for text in TEXTS.values() for entry in re.findall(r"^::: ([\w.]+)$", text, re.MULTILINE)}
SLOW = {"evaluation", "explanations"}
FURTHER = [f"dpexplain.{module}" for module in ("evaluation", "noise", "plots")]


@pytest.mark.parametrize("name", sorted(set(dpexplain.__all__) - MODULES))
def test_every_public_name_is_described_with_an_example(name):
    text = "\n".join(TEXTS.values())
    assert re.search(rf"^::: [\w.]+\.{name}$", text, re.MULTILINE) or getattr(dpexplain, name).__module__ == "dpexplain.errors"
    assert f"dpx.{name}" in "".join(CODE.values())


@pytest.mark.parametrize(
    ("module", "name"),
    [(module, name) for module in FURTHER for name in exported_names(module)],
    ids=lambda part: part.split(".")[-1],
)
def test_names_of_modules_that_are_imported_by_themselves_are_described_too(module, name):
    public = getattr(importlib.import_module(module), name)
    home = public.__name__ if inspect.ismodule(public) else public.__module__
    assert {home, f"{home}.{getattr(public, '__name__', name)}"} & ENTRIES


@pytest.mark.parametrize(
    "page",
    [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name, code in CODE.items() if code],
)
def test_its_examples_run_as_they_stand(page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    exec(compile(CODE[page], page, "exec"), {"__name__": page})
