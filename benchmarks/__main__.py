"""`python -m benchmarks [name …]`: run, print a table each, save out/bench.json and out/bench.png.

A run that has all ratios of the history adds a line to benchmarks/history.csv and shows it in docs/benchmark-history.md.

With --small the tables are so small that all of it takes minutes: to see that every benchmark works. Nothing is added to the history.

With --write-docs the tables between markers in pages of docs/, and the figure, are replaced by this run's; tables that were not measured stay.
With --stored FILE… nothing is measured: the run that this file holds goes into the history, unless it is there already, and with --write-docs into the
pages. Tables of further files replace those of the first.
"""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
from pathlib import Path
from time import perf_counter

from rich.console import Console
from rich.table import Table

import benchmarks
from benchmarks import _history, _machine, _page, _plot, _sizes

DOCS = Path("docs")
Results = dict[str, list[dict[str, object]]]


def tables() -> list[str]:
    names = [module.name for module in pkgutil.iter_modules(benchmarks.__path__)]
    return [name for name in sorted(names) if not name.startswith("_")]


def show(console: Console, name: str, rows: list[dict[str, object]]) -> None:
    columns, cells = _page.cells(rows)
    table = Table(*columns, title=name, title_justify="left")
    for row in cells:
        table.add_row(*row)
    console.print(table)


def run_benchmark(name: str) -> list[dict[str, object]]:
    """A benchmark's rows; what cannot be measured here says why, and the others go on."""
    try:
        return importlib.import_module(f"benchmarks.{name}").run()
    except Exception as error:
        return [{"not measured": f"{type(error).__name__}: {error}"}]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="benchmarks with ratios against the alternatives")
    parser.add_argument("names", nargs="*", help=f"which of {', '.join(tables())} (default: all)")
    parser.add_argument("--output", type=Path, default=Path("out/bench.json"))
    parser.add_argument("--small", action="store_true", help="small tables: whether every benchmark works, in minutes")
    parser.add_argument("--write-docs", action="store_true", help="put the tables and the figure into the documentation")
    parser.add_argument(
        "--stored", type=Path, nargs="+", metavar="FILE", help="measure nothing: write down the run in these files"
    )
    options = parser.parse_args()
    if options.small and (options.write_docs or options.stored):
        parser.error("the documentation and its history state full sizes. Leave out --small")
    if options.stored and options.names:
        parser.error("a stored run is taken as a whole. Leave out the names, or --stored")
    if unknown := set(options.names) - set(tables()):
        parser.error(f"there is no benchmark {min(unknown)!r}: there are {', '.join(tables())}")
    return options


def main() -> int:
    options, console = arguments(), Console()
    if not console.is_terminal:
        console = Console(width=180)  # a file has no edge
    if options.small:
        _sizes.make_small()
    if options.stored:
        results = read_stored(options.stored)
    else:
        results = measure(console, options.names or tables())
        save(console, options.output, results)
    if not options.small:
        write_down(console, options, results)
    return int(any("not measured" in row for rows in results.values() for row in rows))


def measure(console: Console, names: list[str]) -> Results:
    results: Results = {"machine": _machine.machine_facts()}
    for number, name in enumerate(names, 1):
        console.print(f"[{number}/{len(names)}] measuring {name} …", markup=False)
        start = perf_counter()
        results[name] = run_benchmark(name)
        show(console, f"{name} ({perf_counter() - start:.0f} s)", results[name])
    results["machine"] += _machine.load("load at the end")
    return results


def read_stored(files: list[Path]) -> Results:
    """The tables of all files; of those that several have, the last. The machine is that of the first."""
    first, *others = (json.loads(file.read_text(encoding="utf-8")) for file in files)
    return {name: rows for part in (first, *others) for name, rows in part.items()} | {"machine": first["machine"]}


def save(console: Console, output: Path, results: Results) -> None:
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(results, indent=1, ensure_ascii=False), encoding="utf-8")
    figure = output.with_suffix(".png")
    drawn = f" and {figure}" if _plot.draw(results, figure) else ""
    console.print(f"saved {output}{drawn}")


def write_down(console: Console, options: argparse.Namespace, results: Results) -> None:
    """The run's line in the history, and its tables in the documentation where they were asked for."""
    one = _history.line(results)
    if one and not (options.stored and _history.has(one)):
        _history.append(one)
        _history.show()
        console.print(f"added a line to {_history.FILE}")
    if options.write_docs:
        for page in sorted(DOCS.rglob("*.md")):
            text = page.read_text(encoding="utf-8")
            if (written := _page.rewritten(text, results)) != text:
                page.write_text(written, encoding="utf-8")
                console.print(f"rewrote the tables of {page}")
        _plot.draw(results, DOCS / "images" / "performance.png")


if __name__ == "__main__":
    raise SystemExit(main())
