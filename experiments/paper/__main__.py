"""`python -m experiments.paper NAME … | all --data DIR [--quick] [-o OUT]`: run, print a table each, write OUT/NAME.json and OUT/NAME.png.

A study whose file is there already, with as many queries, is shown and drawn from it; `--again` runs it anew.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

import experiments.paper
from dpexplain.errors import DpexplainError, ParameterError
from experiments.paper._study import Inputs, Study

DONE, BAD_INPUT = 0, 2  # exit codes, as the command line has them


def names() -> list[str]:
    modules = [module.name for module in pkgutil.iter_modules(experiments.paper.__path__)]
    return sorted((name.replace("_", "-") for name in modules if not name.startswith("_")), key=lambda n: (n[:6] != "table-", n))


def study(name: str) -> Study:
    return importlib.import_module(f"experiments.paper.{name.replace('-', '_')}").STUDY


def show(console: Console, found: dict) -> None:
    title = f"{found['study']}: {found['title']} ({found['queries']} queries, {found['seconds']:.0f} s)"
    columns = list(dict.fromkeys(key for row in found["rows"] for key in row))
    table = Table(*columns, title=title, title_justify="left")
    for row in found["rows"]:
        table.add_row(*(cell(row.get(column, "")) for column in columns))
    console.print(table)
    for note in found.get("notes", []):
        console.print(f"  {note}", markup=False)


def cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+", help=f"all, or some of {', '.join(names())}")
    parser.add_argument("--data", type=Path, default=os.environ.get("DPEXPLAIN_DATA"), help="folder of the data sets")
    parser.add_argument("--output", "-o", type=Path, default=Path("out/reproduce"))
    parser.add_argument("--quick", action="store_true", help="few queries: minutes instead of hours")
    parser.add_argument("--queries", type=int, help="how many, instead of the paper's number")
    parser.add_argument("--again", action="store_true", help="run also what was run before")
    parser.add_argument("--json", action="store_true", help="print rows as JSON instead of tables")
    return parser.parse_args()


def wanted(given: list[str]) -> list[str]:
    if unknown := [name for name in given if name not in (*names(), "all")]:
        raise ParameterError(f"there is no {unknown[0]!r} in the paper. There are {', '.join(names())}, and all")
    return names() if "all" in given else given


def reproduce(name: str, inputs: Inputs, options: argparse.Namespace) -> dict:
    """One study: its result, and its figure in the output folder."""
    one = study(name)
    found = inputs.result(one, options.queries or (one.quick if options.quick else one.full))
    drawn(one, found, inputs.output / f"{name}.png")
    return found


def drawn(one: Study, found: dict, path: Path) -> None:
    one.draw(found).savefig(path, dpi=110)


def attempt(name: str, inputs: Inputs, options: argparse.Namespace) -> dict | None:
    """The same; what cannot run here says why, and the others go on."""
    try:
        return reproduce(name, inputs, options)
    except DpexplainError as error:
        complain(error)
    except ModuleNotFoundError as error:
        complain(f"{name} needs {error.name}. pip install -e '.[demo,test,baselines,torch]'")
    return None


def complain(error: DpexplainError | str) -> None:
    """What is wrong on one line of standard error, and the remedy on the next."""
    what, _, remedy = str(error).partition(". ")
    print(f"error: {what}", *([f"       {remedy}"] if remedy else []), sep="\n", file=sys.stderr)


def main() -> int:
    options = arguments()
    console = Console(width=None if Console().is_terminal else 200)
    try:
        chosen = wanted(options.names)
        if options.data is None or not options.data.is_dir():
            raise ParameterError(
                f"there is no folder of data sets {options.data or ''}. Say where it is: --data DIR or DPEXPLAIN_DATA"
            )
    except ParameterError as error:
        complain(error)
        return BAD_INPUT
    inputs, found = Inputs(options.data, options.output, options.again), {}
    for number, name in enumerate(chosen, 1):
        if not options.json:
            console.print(f"[{number}/{len(chosen)}] {name} …", markup=False)
        found[name] = attempt(name, inputs, options)
        if found[name] is not None and not options.json:
            show(console, found[name])
    if options.json:
        print(json.dumps({name: one and one["rows"] for name, one in found.items()}, ensure_ascii=False))
    return BAD_INPUT if None in found.values() else DONE


if __name__ == "__main__":
    raise SystemExit(main())
