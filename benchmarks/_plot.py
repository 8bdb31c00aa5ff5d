"""One figure of a run: what a user waits for, how much of the machine a query uses, how its time grows."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from dpexplain.plots.style import INK, POSITIVE, SERIES, UNCERTAIN, tidy


def draw(results: dict[str, list[dict[str, object]]], path: Path) -> bool:
    """Panels for those of the three tables that were measured; no file, and False, without any."""
    panels = [(name, panel) for name, panel in _PANELS.items() if _usable(results.get(name))]
    if not panels:
        return False
    figure = Figure(figsize=(5.2 * len(panels), 3.6), layout="constrained")
    for place, (name, panel) in enumerate(panels, 1):
        panel(figure.add_subplot(1, len(panels), place), results[name])
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    return True


def _usable(rows: list[dict[str, object]] | None) -> bool:
    return bool(rows) and "not measured" not in rows[0]


def _plot_waiting_times(ax, rows):
    shown = [row for row in rows if "lime takes times" in row][::-1]
    names = [row["explanation"].replace(", ", ",\n", 1) for row in shown]
    colours = [POSITIVE if name.startswith("dpexplain") else UNCERTAIN for name in names]
    bars = ax.barh(names, [row["seconds"] for row in shown], color=colours, height=0.65)
    ax.bar_label(bars, [_duration(row["seconds"]) for row in shown], padding=3, fontsize=8, color=INK)
    ax.set_xscale("log")
    ax.margins(x=0.35)
    ax.set_xlabel("seconds for one explanation", fontsize=9)
    tidy(ax, axis="x")
    ax.tick_params(axis="y", labelsize=7.5)
    ax.set_title("What a user waits for", fontsize=10, loc="left")


def _limits(ax, rows):
    shown = [row for row in rows if "query, ms" in row][::-1]
    for place, row in enumerate(shown):
        limit = max(row["bandwidth limit, ms"], row["float64 limit, ms"])
        ax.barh(place, row["query, ms"], color=UNCERTAIN, height=0.65, label="measured" if not place else None)
        ax.barh(place, limit, color=POSITIVE, height=0.65, label="the machine's limit" if not place else None)
        end = max(row["query, ms"], limit)
        ax.annotate(f" {row['share of the limit']:.0%}", (end, place), va="center", fontsize=8, color=INK)
    ax.set_yticks(range(len(shown)), [row["table"] for row in shown])
    ax.margins(x=0.15)
    ax.set_xlabel("milliseconds for one query's statistics", fontsize=9)
    ax.legend(fontsize=8, frameon=False)
    tidy(ax, axis="x")
    ax.set_title("How much of the machine a query uses", fontsize=10, loc="left")


def _plot_growth(ax, rows):
    shown = [(row["what"].split(", ", 1)[1].split(" x "), row["ms"]) for row in rows if row["what"].startswith("query, ")]
    points = [(int(m.replace(",", "")), int(n), ms) for (m, n), ms in shown]
    wide = max(points, key=lambda point: point[1])[0]  # the number of rows of the tables with more and more columns
    # the first of them is as narrow as the others
    split = next(place for place, (_, n, _) in enumerate(points) if n > points[0][1]) - 1
    (fewest, narrow, _), by_rows, by_columns = points[0], points[:split], points[split:]
    more_rows = [(m / fewest, ms) for m, _, ms in by_rows]
    more_columns = [(n / narrow, ms) for _, n, ms in by_columns]
    ax.loglog(*zip(*more_rows, strict=True), "o-", color=SERIES[0], label=f"more rows (1 = {fewest:,}), {narrow} columns")
    ax.loglog(*zip(*more_columns, strict=True), "s--", color=SERIES[1], label=f"more columns (1 = {narrow}), {wide:,} rows")
    ax.set_xlabel("size", fontsize=9)
    ax.set_ylabel("milliseconds", fontsize=9)
    ax.legend(fontsize=8, frameon=False)
    tidy(ax)
    ax.set_title("How a query's time grows", fontsize=10, loc="left")


def _duration(seconds):
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.3g} µs"


_PANELS = {"explainers": _plot_waiting_times, "roofline": _limits, "growth": _plot_growth}
