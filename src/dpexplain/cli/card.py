"""`dpexplain card`: a release's section for a model card."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpexplain.arguments import file_errors
from dpexplain.cli.exits import exit_on_error
from dpexplain.cli.shared_options import File, Force, require_new
from dpexplain.release.release import load


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: dpexplain card income.dpx -o privacy.md")(exit_on_error(card))


def card(
    file: File,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Output file. Default: standard output.")] = None,
    force: Force = False,
) -> None:
    """Write a section for a model card, as Markdown: the guarantee, what was declared, what is not protected."""
    text = load(file).model_card_section()
    if output is None:
        print(text, end="")
        return
    require_new(output, force)
    with file_errors(output, "write"):
        output.write_text(text, encoding="utf-8")
    print(f"Wrote {output}.")
