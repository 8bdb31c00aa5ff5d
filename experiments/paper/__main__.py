"""`python -m experiments.paper NAME … | all --data DIR [--quick] [--seeds N] [--jobs N] [-o OUT]`: run, print tables and verdicts, write JSON and figures.

A study whose file is there already, with as many queries and seeds, is shown and drawn from it; `--again` runs it anew. Long ones store each finished
piece under OUT/parts and sums over rows under OUT/cache, so that an interrupted run goes on where it stopped; standard error says what is done and
how long the rest will take.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import signal
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.console import Console
from rich.table import Table

import experiments.paper
from dpexplain.errors import DpexplainError, ParameterError, WeakBudget
from experiments.paper._parts import Clock
from experiments.paper._study import ACS_FILE, SEEDS, Inputs, Study
from experiments.paper._verdicts import verdict

DONE, BAD_INPUT = 0, 2  # exit codes, as the command line has them
MADE_FROM_OTHERS = {"figure-5": ("figure-2", "figure-3"), "figure-8": ("figure-7",)}  # which store what they need
AFTER = {"table-3": "table-2"}  # the second takes what the first has stored
QUICK_SEEDS = 2


def names() -> list[str]:
    modules = [module.name for module in pkgutil.iter_modules(experiments.paper.__path__)]
    return sorted((name.replace("_", "-") for name in modules if not name.startswith("_")), key=lambda n: (n[:6] != "table-", n))


def study(name: str) -> Study:
    return importlib.import_module(f"experiments.paper.{name.replace('-', '_')}").STUDY


def show(console: Console, found: dict) -> None:
    title = f"{found['study']}: {found['title']} ({found['queries']} queries, {found.get('cpu seconds', found['seconds']):.0f} s of processor time)"
    tables = {title: found["rows"]} | {name: found.get(name, []) for name in ("models", "stops", "copies")}
    for heading, rows in tables.items():
        if rows:
            console.print(rich_table(heading, rows))
    for note in found.get("notes", []):
        console.print(f"  {note}", markup=False)
    if found.get("verdict"):
        console.print(f"  Verdict: {found['verdict']}", markup=False)


def rich_table(title: str, rows: list[dict]) -> Table:
    """A table in which standard errors stand behind their numbers."""
    columns = [key for key in dict.fromkeys(key for row in rows for key in row) if not key.startswith("± ")]
    table = Table(*columns, title=title, title_justify="left")
    for row in rows:
        table.add_row(*(cell(row.get(column, ""), row.get(f"± {column}")) for column in columns))
    return table


def cell(value: object, error: float | None = None) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return f"{text} ± {error:.2g}" if error else text


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+", help=f"all, or some of {', '.join(names())}")
    parser.add_argument("--data", type=Path, default=os.environ.get("DPEXPLAIN_DATA"), help="folder of the data sets")
    parser.add_argument("--output", "-o", type=Path, default=Path("out/reproduce"))
    parser.add_argument("--quick", action="store_true", help="few queries: minutes instead of hours")
    parser.add_argument("--queries", type=int, help="how many, instead of the paper's number")
    parser.add_argument(
        "--seeds", type=int, help=f"noise seeds that are averaged (default {SEEDS}, as in the paper; {QUICK_SEEDS} with --quick)"
    )
    parser.add_argument("--shards", type=int, choices=(1, 2, 3), help="ask so many of the three disjoint parts of the data only")
    parser.add_argument(
        "--jobs", type=int, default=1, help="run so many studies at once, each in a process of its own with one thread"
    )
    parser.add_argument("--again", action="store_true", help="run also what was run before")
    parser.add_argument("--json", action="store_true", help="print rows as JSON instead of tables")
    parser.add_argument(
        "--end-with-parent", action="store_true", help="end when standard input ends, as it does with the process that holds it"
    )
    return parser.parse_args()


def study_names(given: list[str]) -> list[str]:
    if unknown := [name for name in given if name not in (*names(), "all")]:
        raise ParameterError(f"there is no {unknown[0]!r} in the paper. There are {', '.join(names())}, and all")
    return names() if "all" in given else given


def with_sources(chosen: list[str]) -> set[str]:
    """These studies and those that they are made from."""
    return {*chosen, *(source for name in chosen for source in MADE_FROM_OTHERS.get(name, ()))}


def reproduce(name: str, inputs: Inputs, options: argparse.Namespace) -> dict:
    """One study: its result, and its figure in the output folder."""
    one = study(name)
    found = inputs.result(one, query_count(one, options))
    draw_figure(one, found, inputs.output / f"{name}.png")
    told = verdict(found)
    return found | {"verdict": None if told is None else str(told)}


def query_count(one: Study, options: argparse.Namespace) -> int:
    return options.queries or (one.quick if options.quick else one.full)


def draw_figure(one: Study, found: dict, path: Path) -> None:
    one.draw(found).savefig(path, dpi=110)


def run_beside(chosen: list[str], options: argparse.Namespace) -> None:
    """Run studies in processes of their own, `--jobs` at a time, the longest first. What they find is in their files."""
    given = [f"--data={options.data}", f"--output={options.output}"]
    given += [f"--{key}={value}" for key in ("queries", "seeds", "shards") if (value := getattr(options, key))]
    given += [f"--{key}" for key in ("quick", "again") if getattr(options, key)]
    threads = os.environ | {f"{kind}_NUM_THREADS": "1" for kind in ("OMP", "OPENBLAS", "MKL", "NUMBA")}

    def run(names: list[str]) -> None:
        command = [sys.executable, *(f"-W{one}" for one in sys.warnoptions), "-m", "experiments.paper", *names, *given]
        run_child([*command, "--end-with-parent"], threads)

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(run, in_turn(chosen, together=options.quick)))


def in_turn(chosen: list[str], together: bool = False) -> list[list[str]]:
    """Studies that run one after the other in a process, the longest first. `together` has two processes, one for studies of people and one for the
    others: few queries take less time than reading the data does."""
    second = {later for first, later in AFTER.items() if first in chosen}
    first = [name for name in chosen if name not in MADE_FROM_OTHERS and name not in second]
    chains = [[name, *(later for later in (AFTER.get(name),) if later in chosen)] for name in first]
    if together:
        halves: dict[bool, list[str]] = {}
        for chain in chains:
            halves.setdefault(study(chain[0]).files[0] == ACS_FILE, []).extend(chain)
        chains = list(halves.values())
    return sorted(chains, key=lambda names: -sum(study(name).minutes for name in names))


def run_child(command: list[str], environment: dict[str, str]) -> None:
    """Run to the end. Nothing is written to its standard input, which ends when this process does, however that ends."""
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as child:
        child.wait()


def end_with_parent() -> None:
    """End this process as soon as its standard input ends."""

    def watch() -> None:
        while os.read(sys.stdin.fileno(), 1024):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


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


def processor_time(found: dict) -> str:
    """Processor time of all that was found, stored pieces included."""
    times = {name: one.get("cpu seconds", one["seconds"]) for name, one in found.items() if one}
    return (
        f"Processor time: {sum(times.values()) / 60:.1f} min ("
        + ", ".join(f"{name} {t:.0f} s" for name, t in times.items())
        + ")"
    )


def keep_verdicts(output: Path, found: dict) -> None:
    """OUT/verdicts.json: one sentence for each study, with sizes and seeds."""
    kept = {name: {key: one[key] for key in ("verdict", "queries", "seeds") if key in one} for name, one in found.items() if one}
    output.mkdir(parents=True, exist_ok=True)
    (output / "verdicts.json").write_text(json.dumps(kept, indent=1, ensure_ascii=False), encoding="utf-8")


def main() -> int:
    options = arguments()
    if options.end_with_parent:
        end_with_parent()
    warnings.simplefilter("ignore", WeakBudget)  # budgets here are there to be counted, not to be kept
    console = Console(width=None if Console().is_terminal else 200)
    try:
        chosen = study_names(options.names)
        if options.data is None or not options.data.is_dir():
            raise ParameterError(
                f"there is no folder of data sets {options.data or ''}. Say where it is: --data DIR or DPEXPLAIN_DATA"
            )
    except ParameterError as error:
        complain(error)
        return BAD_INPUT
    if options.jobs > 1:
        Inputs(options.data, options.output).prepare([study(name) for name in chosen])
        run_beside(chosen, options)
        options.again = False
    clock = Clock(sum(study(name).minutes for name in with_sources(chosen)))
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    inputs, found = Inputs(options.data, options.output, options.again, seeds, clock), {}
    inputs.shards, inputs.quick = options.shards, options.quick
    for number, name in enumerate(chosen, 1):
        if not options.json:
            console.print(f"[{number}/{len(chosen)}] {name} …", markup=False)
        found[name] = attempt(name, inputs, options)
        if found[name] is not None and not options.json:
            show(console, found[name])
    keep_verdicts(options.output, found)
    if not options.json:
        console.print(processor_time(found), markup=False)
    if options.json:
        print(json.dumps({name: one and one["rows"] for name, one in found.items()}, ensure_ascii=False))
    return BAD_INPUT if None in found.values() else DONE


if __name__ == "__main__":
    raise SystemExit(main())
