"""The history of runs: one line of ratios for each run of `make bench`, in benchmarks/history.csv, and the page that shows it."""

from __future__ import annotations

import csv
from datetime import UTC, datetime
from pathlib import Path

from matplotlib.figure import Figure

from benchmarks import _page
from dpexplain import __version__
from dpexplain.plots.style import DASHES, MARKERS, SERIES, tidy

FILE = Path("benchmarks/history.csv")
PAGE = Path("docs/benchmark-history.md")
PICTURE = Path("docs/images/benchmark-history.png")

# column of the history: (benchmark, what its first column says, column with the ratio)
RATIOS = {
    "query, NumPy pass takes times": ("query", "NumPy, float32, one pass", "ratio to ours"),
    "query, 300 NumPy passes take times": ("query", "300 NumPy passes, weights kept (one timed)", "ratio to ours"),
    "query, share of the machine's limit": ("roofline", "1,500,000 x 50", "share of the limit"),
    "fresh answer, lime takes times": ("explainers", "dpexplain, fresh private answer from 1.5 M rows", "lime takes times"),
    "answer from a release, lime takes times": ("explainers", "dpexplain, from a release, one at a time", "lime takes times"),
    "each of 2,000 from a release, lime takes times": (
        "explainers", "dpexplain, from a release, each of 2,000", "lime takes times",
    ),
}  # fmt: skip

Results = dict[str, list[dict[str, object]]]


def line(results: Results) -> dict[str, object] | None:
    """Date, version, machine and ratios of a run; None where one of the ratios was not measured."""
    facts = {row["machine"]: row["value"] for row in results["machine"]}
    ratios = {name: _find(results.get(table, []), label, column) for name, (table, label, column) in RATIOS.items()}
    if None in ratios.values():
        return None
    load = f"{facts['load at the start']}".split(" of ")[0]
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}", "version": __version__, "machine": facts["processor"], "load": load, **ratios
    }  # fmt: skip


def _find(rows: list[dict[str, object]], label: str, column: str) -> object | None:
    return next((row[column] for row in rows if label in row.values() and column in row), None)


def append(one: dict[str, object], file: Path = FILE) -> None:
    """Add a line; earlier lines stay as they are."""
    new = not file.exists()
    with file.open("a", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, ["date", "version", "machine", "load", *RATIOS], lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow({key: _digits(value) for key, value in one.items()})


def has(one: dict[str, object], file: Path = FILE) -> bool:
    """Whether a run with these ratios is there already."""
    return any(all(run[name] == str(_digits(one[name])) for name in RATIOS) for run in read(file))


def _digits(value: object) -> object:
    """Three digits, without exponents and separators."""
    return value if not isinstance(value, float) else f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def read(file: Path = FILE) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def show(file: Path = FILE, page: Path = PAGE, picture: Path = PICTURE) -> None:
    """Rewrite the page's table, newest run first, and draw the picture."""
    runs = read(file)
    rows: list[dict[str, object]] = [{"run": name} for name in ("date", "version", "machine", "load", *RATIOS)]
    for number, run in reversed(list(enumerate(runs, 1))):
        for row in rows:
            row[f"{number}"] = run[str(row["run"])]
    page.write_text(_page.rewritten(page.read_text(encoding="utf-8"), {"runs": rows}), encoding="utf-8")
    draw(runs, picture)


def draw(runs: list[dict[str, str]], picture: Path) -> None:
    """Each ratio as a multiple of its first value: above 1 is better than then."""
    figure = Figure(figsize=(7.5, 3.8), layout="constrained")
    ax = figure.add_subplot()
    for k, name in enumerate(RATIOS):
        points = [(number, float(run[name])) for number, run in enumerate(runs, 1) if run[name]]
        if points:
            look = {"marker": MARKERS[k % len(MARKERS)], "linestyle": DASHES[k % len(DASHES)], "color": SERIES[k % len(SERIES)]}
            ax.plot([n for n, _ in points], [value / points[0][1] for _, value in points], label=name, **look)
    ax.set_xticks(range(1, len(runs) + 1), [f"{number}\n{run['version']}" for number, run in enumerate(runs, 1)], fontsize=8)
    ax.set_ylabel("ratio, as a multiple of its first", fontsize=9)
    ax.set_ylim(bottom=0)
    ax.legend(fontsize=7.5, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    tidy(ax, axis="both")
    figure.savefig(picture, dpi=130)
