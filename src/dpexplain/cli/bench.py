"""`dpexplain bench`: the repository's benchmarks, with ratios against the alternatives measured in one run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from dpexplain.cli.exits import exit_on_error
from dpexplain.errors import ParameterError


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: dpexplain bench query ledger")(exit_on_error(bench))


def bench(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME…", help="Names of benchmarks. Default: all.")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="File for the results, as JSON.")] = Path("out/bench.json"),
) -> None:
    """Run benchmarks against alternatives. Needs a checkout of the repository."""
    folder = Path("benchmarks")
    if not (folder / "__main__.py").is_file():
        raise ParameterError("there is no folder benchmarks/ here. Run it from the top of a checkout of dpexplain")
    known = sorted(path.stem for path in folder.glob("[!_]*.py"))
    if unknown := [name for name in names or [] if name not in known]:
        raise ParameterError(f"there is no benchmark {unknown[0]!r}. There are {', '.join(known)}")
    command = [sys.executable, "-m", "benchmarks", *(names or []), "--output", str(output)]
    done = subprocess.run(command, check=False, env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))})
    raise typer.Exit(done.returncode)
