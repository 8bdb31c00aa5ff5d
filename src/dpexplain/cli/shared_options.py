"""Options and arguments that several commands share, and checks of them."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryFile
from typing import Annotated, Any

import typer

from dpexplain.arguments import file_errors
from dpexplain.errors import ParameterError, QueryError

File = Annotated[Path, typer.Argument(metavar="FILE.dpx", help="A release.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the output.")]


def require_new(path: Path, force: bool) -> None:
    """Raise InputError before anything is spent if the file exists (a release would cost again), or cannot be written."""
    if path.exists() and not force and not path.is_dir():
        raise ParameterError(f"{path} exists already. Name another file, or pass --force to overwrite it")
    require_writable(path)


def require_writable(path: Path) -> None:
    """Raise InputError if the file cannot be written: it is a folder, or its own folder is missing or may not be written."""
    if path.is_dir():
        raise ParameterError(f"cannot write {path}: it is a folder. Name a file")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise ParameterError(f"there is no folder {path.parent} to write {path.name} to. Make it first")
    with file_errors(path, "write"):
        if path.exists():
            path.open("ab").close()
        else:
            TemporaryFile(dir=folder).close()


def describe_count(number: int, noun: str, several: str = "") -> str:
    """A number with its noun: "1 answer", "2 answers"."""
    return f"{number:,} {noun if number == 1 else several or f'{noun}s'}"


def parse_record(text: str) -> Any:
    """The value of `--record`."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise QueryError("the record is not JSON. Write --record '{\"age\": 40, …}', in single quotes for the shell") from None
