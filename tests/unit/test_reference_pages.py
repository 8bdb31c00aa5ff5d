"""The reference has every public name, each with an example, and the examples run."""

import re
from pathlib import Path

import pytest

import dpexplain

PAGES = sorted((Path(__file__).parents[2] / "docs/reference").glob("*.md"))
TEXTS = {page.stem: page.read_text(encoding="utf-8") for page in PAGES}
CODE = {name: "".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)) for name, text in TEXTS.items()}
MODULES = {"__version__", "privacy", "weights"}


@pytest.mark.parametrize("name", sorted(set(dpexplain.__all__) - MODULES))
def test_every_public_name_is_described_with_an_example(name):
    text = "\n".join(TEXTS.values())
    assert re.search(rf"^::: [\w.]+\.{name}$", text, re.MULTILINE) or getattr(dpexplain, name).__module__ == "dpexplain.errors"
    assert f"dpx.{name}" in "".join(CODE.values())


@pytest.mark.parametrize("page", [name for name, code in CODE.items() if code])
def test_its_examples_run_as_they_stand(page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    exec(compile(CODE[page], page, "exec"), {"__name__": page})
