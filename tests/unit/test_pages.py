"""Pages that are pleasant to read: each begins with what the reader can do after it, lines wrap at 120, paragraphs are short."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
NAMES = [page.relative_to(ROOT / "docs").as_posix() for page in PAGES]
OTHERS = [*sorted((ROOT / "proofs").glob("*.md")), *sorted(ROOT.glob("*.md"))]
WIDEST, LONGEST = 120, 500


def _prose(page):
    """Paragraphs and list items, without code, tables, pictures and generated parts."""
    text = re.sub(r"```.*?```|<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for block in re.split(r"\n\s*\n", text):
        lines = [line for line in block.splitlines() if not re.match(r"\s*(\||#|!\[)", line)]
        if lines and not (lines[0].startswith("    ") and "=" in block):  # formulas and commands
            yield from re.split(r"\n(?=\s*(?:- |\d+\. ))", "\n".join(lines))


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_it_begins_with_what_the_reader_can_do(page):
    title, first = page.read_text(encoding="utf-8").split("\n\n")[:2]
    assert title.startswith("# ")
    assert first.startswith("After this page")


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=[*NAMES, "README"])
def test_its_lines_wrap_and_its_paragraphs_are_short(page):
    parts = list(_prose(page))
    assert [line for part in parts for line in part.splitlines() if len(line) > WIDEST and " " in line[:WIDEST]] == []
    assert [part for part in parts if len(part) > LONGEST] == []


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_line_is_too_wide_for_a_screen(page):
    """Prose wraps at 120 characters; code and formulas may have ten more. Tables and pictures cannot wrap."""
    lines, wide = page.read_text(encoding="utf-8").splitlines(), WIDEST + 10
    assert [line for line in lines if len(line) > wide and not re.match(r"\s*(\||!\[)", line)] == []
    assert [line for part in _prose(page) for line in part.splitlines() if len(line) > WIDEST and " " in line[:WIDEST]] == []


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_lists_are_rendered_as_lists(page):
    """A list needs an empty line above it, also after an indented paragraph; else the site shows it as one long paragraph."""
    text = re.sub(r"```.*?```|<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    blocks = [re.sub(r"^#.*\n", "", block.strip("\n"), flags=re.MULTILINE) for block in re.split(r"\n\s*\n", text)]
    glued = [
        block for block in blocks if re.search(r"^(- |\d+\. )", block, re.MULTILINE) and not re.match(r"\s*(- |\d+\. |\|)", block)
    ]
    assert glued == []


def test_the_index_of_notes_has_every_note():
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", (ROOT / "docs/notes/index.md").read_text(encoding="utf-8")))
    assert linked == {page.name for page in (ROOT / "docs/notes").glob("*.md")} - {"index.md"}


def test_the_index_of_guides_has_every_guide():
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", (ROOT / "docs/how-to/index.md").read_text(encoding="utf-8")))
    assert linked == {page.name for page in (ROOT / "docs/how-to").glob("*.md")} - {"index.md"}
