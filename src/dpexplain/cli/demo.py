"""`dpexplain demo`: runs the demo on synthetic data."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from dpexplain.arguments import file_errors
from dpexplain.cli.exits import exit_on_error
from dpexplain.errors import ParameterError


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: dpexplain demo --output out")(exit_on_error(demo))


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the report, the page, the release and the plots.")
    ] = Path("out"),
    people: Annotated[int, typer.Option("--people", min=1000, metavar="N", help="Number of synthetic records.")] = 200_000,
) -> None:
    """A complete example on synthetic data: prints, plots, writes report.html, and explain.html with sliders."""
    if find_spec("sklearn") is None:
        raise ParameterError("the demo trains a forest and needs scikit-learn. Run: pip install 'dpexplain[demo]'")
    from dpexplain.demo.story import tell_story

    with file_errors(output, "write"):
        output.mkdir(parents=True, exist_ok=True)
    tell_story(Console(), output, people)
