"""`python -m benchmarks [name …]`: run, print a table each, and save out/bench.json."""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
from pathlib import Path

from rich.console import Console
from rich.table import Table

import benchmarks


def tables() -> list[str]:
    names = [module.name for module in pkgutil.iter_modules(benchmarks.__path__)]
    return [name for name in sorted(names) if not name.startswith("_")]


def show(console: Console, name: str, rows: list[dict[str, object]]) -> None:
    table = Table(title=name, title_justify="left")
    columns = list(dict.fromkeys(column for row in rows for column in row))
    for column in columns:
        table.add_column(column)
    for row in rows:
        values = [row.get(column, "") for column in columns]
        table.add_row(*(f"{value:.4g}" if isinstance(value, float) else str(value) for value in values))
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description="benchmarks with ratios against the alternatives")
    parser.add_argument("names", nargs="*", help=f"which of {', '.join(tables())} (default: all)")
    parser.add_argument("--output", type=Path, default=Path("out/bench.json"))
    options = parser.parse_args()
    console, results = Console(), {}
    for name in options.names or tables():
        with console.status(f"measuring {name}"):
            results[name] = importlib.import_module(f"benchmarks.{name}").run()
        show(console, name, results[name])
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(results, indent=1), encoding="utf-8")
    console.print(f"saved {options.output}")


if __name__ == "__main__":
    main()
