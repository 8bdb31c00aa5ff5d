"""A technical note: docs/reproduction.md as one HTML file, with its figures inside, to be cited or sent.

python -m experiments.technical_note [PAGE.md] [-o out/reproduction.html]
"""

from __future__ import annotations

import argparse
import base64
import re
from datetime import date
from html import escape
from pathlib import Path

import markdown

from dpexplain import __version__

STYLE = """
body { font: 16px/1.5 Georgia, serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h1, h2, h3 { font-family: Helvetica, Arial, sans-serif; line-height: 1.2; }
table { border-collapse: collapse; font-size: 0.85rem; display: block; overflow-x: auto; }
th, td { border: 1px solid #bbb; padding: 0.3rem 0.5rem; text-align: left; vertical-align: top; }
pre { background: #f4f4f4; padding: 0.7rem; overflow-x: auto; } code { font-size: 0.9em; }
img { max-width: 100%; } footer { margin-top: 3rem; font-size: 0.85rem; color: #555; }
@media print { body { max-width: none; font-size: 11pt; } table { display: table; } }
"""


def note(page: Path) -> str:
    """The page as HTML that needs no other file: figures are data, and links to other pages are plain text."""
    text = page.read_text(encoding="utf-8")
    body = markdown.markdown(text, extensions=["tables", "fenced_code", "toc"])
    body = re.sub(r'src="([^":]+)"', lambda found: f'src="{_data(page.parent / found[1])}"', body)
    body = re.sub(r'<a href="(?!https?:|#)[^"]*">(.*?)</a>', r"\1", body, flags=re.DOTALL)
    title = escape(re.search(r"^# (.+)$", text, re.MULTILINE)[1])
    footer = f"<footer>dpexplain {escape(__version__)}, {date.today().isoformat()}. Generated from {escape(page.name)}.</footer>"
    head = f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style></head>'
    return f"{head}<body>{body}{footer}</body></html>\n"


def _data(path: Path) -> str:
    kind = {".png": "image/png", ".svg": "image/svg+xml"}[path.suffix]
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", type=Path, nargs="?", default=Path("docs/reproduction.md"))
    parser.add_argument("--output", "-o", type=Path, default=Path("out/reproduction.html"))
    options = parser.parse_args()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(note(options.page), encoding="utf-8")
    print(f"Wrote {options.output}: {options.output.stat().st_size:,} bytes.")


if __name__ == "__main__":
    main()
