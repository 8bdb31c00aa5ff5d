"""`dpexplain publish`: a release as one page that anyone can open."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpexplain.cli.exits import exit_on_error
from dpexplain.cli.options import File, Force, require_new
from dpexplain.release.release import load


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: dpexplain publish income.dpx -o income.html")(exit_on_error(publish))


def publish(
    file: File,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")],
    title: Annotated[str | None, typer.Option("--title", help="The page's heading.")] = None,
    outcome: Annotated[
        str | None, typer.Option("--outcome", help='What a positive effect leads towards: "an income above 50k".')
    ] = None,
    force: Force = False,
) -> None:
    """Write one self-contained interactive page that anyone can open, offline."""
    require_new(output, force)
    options = {key: value for key, value in (("title", title), ("outcome", outcome)) if value is not None}
    load(file).publish(output, **options)
    print(f"Wrote {output}: {output.stat().st_size:,} bytes, no network needed.")
