"""The technical note is one file: tables and figures of the page, and nothing to fetch."""

import re
from pathlib import Path

import pytest

pytest.importorskip("markdown")

from experiments.technical_note import note

PAGE = Path("docs/reproduction.md")


def test_the_note_is_the_page_in_one_file():
    html, text = note(PAGE), PAGE.read_text(encoding="utf-8")
    assert html.count("<img") == len(re.findall(r"^!\[", text, re.MULTILINE))
    assert not re.search(r'(src|href)="(?!data:|https?:|#)', html)
    assert html.count("<table>") == len(re.findall(r"^\|[-| ]+\|$", text, re.MULTILINE))
    assert "<title>The paper" in html
