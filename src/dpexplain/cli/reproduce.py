"""`dpexplain reproduce`: the paper's tables and figures, by its own formulas and by our defaults."""

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
    app.command(epilog="Example: dpexplain reproduce table-2 figure-3 --data DIR --quick")(exit_on_error(reproduce))


def reproduce(
    names: Annotated[list[str], typer.Argument(metavar="NAME…", help="table-2, figure-3, …, or all.")],
    data: Annotated[
        Path | None, typer.Option(envvar="DPEXPLAIN_DATA", help="Folder with the data sets (docs/reproduction.md).")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for tables (JSON) and figures (PNG).")] = Path(
        "out/reproduce"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="Few queries: minutes instead of hours.")] = False,
    queries: Annotated[
        int | None, typer.Option("--queries", min=2, metavar="N", help="Number of queries. Default: the paper's.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option("--seeds", min=1, metavar="N", help="Noise seeds that are averaged (10; 2 with --quick).")
    ] = None,
    shards: Annotated[
        int | None,
        typer.Option(
            "--shards",
            min=1,
            max=3,
            metavar="N",
            help="Use only this many of the three disjoint parts of the data (figures 2, 3, 5).",
        ),
    ] = None,
    jobs: Annotated[int | None, typer.Option("--jobs", min=1, metavar="N", help="Number of studies that run at once.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Run again what the output folder already has.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print rows as JSON instead of tables.")] = False,
) -> None:
    """Run the paper's experiments. An interrupted run continues where it stopped. Needs a checkout of the repository, and the data sets."""
    folder = Path("experiments/paper")
    if not (folder / "__main__.py").is_file():
        raise ParameterError("there is no folder experiments/paper/ here. Run it from the top of a checkout of dpexplain")
    known = sorted(path.stem.replace("_", "-") for path in folder.glob("[!_]*.py"))
    if unknown := [name for name in names if name not in (*known, "all")]:
        raise ParameterError(f"the paper has no {unknown[0]!r} to reproduce. There are {', '.join(known)}, and all")
    if data is None or not data.is_dir():
        raise ParameterError(f"there is no folder of data sets {data or ''}. Name it with --data DIR or DPEXPLAIN_DATA")
    flags = {"--quick": quick, "--again": again, "--json": as_json}
    command = [sys.executable, "-m", "experiments.paper", *names, "--data", str(data), "--output", str(output)]
    command += [flag for flag, given in flags.items() if given]
    numbers = {"--queries": queries, "--seeds": seeds, "--shards": shards, "--jobs": jobs}
    command += [word for flag, value in numbers.items() if value for word in (flag, str(value))]
    raise typer.Exit(_run([*command, "--end-with-parent"]))


def _run(command: list[str]) -> int:
    """The exit code of a command whose standard input ends when this process does, so that it does not outlive it."""
    paths = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(command, env=paths, stdin=subprocess.PIPE) as child:
        return child.wait()
