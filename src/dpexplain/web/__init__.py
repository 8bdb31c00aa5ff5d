"""The browser's half: plain ES modules and one style sheet, and how they become a page that needs no network.

    solve.js    the release's mathematics            form.js     inputs from a domain
    fitted.js   its fitted plane                     points.js, linear.js    public points, vectors
    nearest.js  widths chosen for a question
    domain.js   records ↔ points                     chart.js    bars and waterfalls with error bars
    effects.js  slopes: ranking, signs, sentences    table.js    the same numbers as a table
    steps.js    contributions, from average to answer    scale.js    percentage points, or the model's own units
    answer.js   one answer: sentence, waterfall, changes    changes.js  slopes as changes of the record's own values
    presets.js  example records                      data.js     exact arrays out of JSON
    dom.js      elements whose text stays text       frame.js    colours, counts, the record's own values
    gauge.js    a budget and how it was spent        targets.js  which class, or which model, is explained
    page.js     wires them together in page.html, for a release
    service.js  and in service.html, for a service: the answers come from there

    _*.html     pieces of both pages: {{> name}} stands for one

There is no build step: a page carries the sources themselves, in order of their imports, inside one module script.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+\.js)";\n', re.MULTILINE)
_PIECE, _PART = re.compile(r"\{\{> (\w+\.html)\}\}\n"), re.compile(r"\{\{(\w+)\}\}")
_EXPORT = re.compile(r"^export (?=(?:function|const|class) )", re.MULTILINE)


@cache
def source(name: str) -> str:
    """One file of this folder, newlines as \\n whatever the checkout did."""
    return (files("dpexplain") / "web" / name).read_text(encoding="utf-8").replace("\r\n", "\n")


def page(template: str, parts: Mapping[str, str]) -> str:
    """A template of this folder with its pieces put together and each {{name}} replaced by that part."""
    whole = source(template)
    while _PIECE.search(whole):  # a piece may be made of pieces
        whole = _PIECE.sub(lambda piece: source(piece[1]), whole)
    return _PART.sub(lambda part: parts[part[1]], whole)


@cache
def inline_modules(entry: str) -> str:
    """The module `entry` and everything it imports, as one script: imports first, each once, without import and export."""
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", source(name))) for name in resolve_imports(entry))


def resolve_imports(entry: str) -> list[str]:
    """`entry` and the modules it needs, each after those it imports."""
    order: list[str] = []

    def visit(name: str) -> None:
        if name not in order:
            for needed in _IMPORT.findall(source(name)):
                visit(needed)
            order.append(name)

    visit(entry)
    return order
