"""Options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpexplain.errors import ParameterError

File = Annotated[Path, typer.Argument(metavar="FILE.dpx", help="A release.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the output.")]


def require_new(path: Path, force: bool) -> None:
    """Raise ParameterError before anything is spent if the file exists (a release would cost again) or its folder does not."""
    if path.exists() and not force:
        raise ParameterError(f"{path} exists already. Name another file, or pass --force to overwrite it")
    if not path.absolute().parent.is_dir():
        raise ParameterError(f"there is no folder {path.parent} to write {path.name} to. Make it first")
