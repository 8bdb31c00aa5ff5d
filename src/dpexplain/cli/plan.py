"""`dpexplain plan`: what quality to expect for which ε, and how many queries a budget affords, from public numbers only."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from dpexplain.cli.exits import exit_on_error
from dpexplain.cli.options import Json
from dpexplain.privacy import expected_quality
from dpexplain.privacy.budget import Budget
from dpexplain.privacy.expected_quality import ExpectedQuality, Offer

RULE = (
    "A rule of thumb for the default weight and radius, fitted to measurements and right within a factor of about 2.5 in excess; "
    "strongly correlated columns do worse. Nothing was read and nothing was spent."
)


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: dpexplain plan --rows 1400000 --features 70 --epsilon 1 --delta 1e-6")(exit_on_error(plan))


def plan(
    rows: Annotated[int, typer.Option("--rows", min=1, help="Records in the private data: a public number.")],
    features: Annotated[int, typer.Option("--features", min=1, help="Encoded columns (domain.width).")],
    epsilon: Annotated[float, typer.Option("--epsilon", help="The whole budget.")] = 1.0,
    delta: Annotated[float, typer.Option("--delta", help="The whole budget's δ; also each query's.")] = 1e-6,
    multiplier: Annotated[
        int, typer.Option("--rows-per-unit", min=1, help="Records one person may own; doubled for replace-one.")
    ] = 1,
    plot: Annotated[Path | None, typer.Option("--plot", help="Also draw it, as PNG, SVG or PDF.")] = None,
    as_json: Json = False,
) -> None:
    """What quality to expect, from public numbers only: answers one by one, or a release paid once."""
    budget = Budget(epsilon, delta)
    offers = expected_quality.offers(rows, features, budget, multiplier)
    once = expected_quality.release(expected_quality.reach(rows, features, budget, multiplier))
    if plot is not None:
        draw(plot, offers, budget, once)
    if as_json:
        print(json.dumps(as_data(rows, features, budget, offers, once), indent=2))
    else:
        show(Console(), rows, features, budget, offers, once)


def as_data(rows: int, features: int, budget: Budget, offers: list[Offer], once: ExpectedQuality) -> dict[str, Any]:
    return {
        "rows": rows,
        "features": features,
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "interactive": [
            {"epsilon": one.epsilon, "queries": one.queries, **asdict(one.expected), "verdict": one.expected.verdict}
            for one in offers
        ],
        "release": {"epsilon": budget.epsilon, "queries": None, **asdict(once), "verdict": once.verdict},
        "note": RULE,
    }


def show(console: Console, rows: int, features: int, budget: Budget, offers: list[Offer], once: ExpectedQuality) -> None:
    title = f"{rows:,} rows x {features} columns, budget ε={budget.epsilon:g}, δ={budget.delta:g}"
    numbers = [Column(name, justify="right") for name in ("ε a query", "queries", "excess")]
    table = Table("way", *numbers, "cosine to the exact answer", title=title)
    for one in offers:
        table.add_row(
            "one by one", f"{one.epsilon:g}", f"{one.queries:,}", f"{one.expected.relative_excess:.2g}", bar(one.expected)
        )
    table.add_section()
    table.add_row("release", "paid once", "unlimited", f"{once.relative_excess:.2g}", bar(once))
    console.print(table)
    console.print(RULE, markup=False, highlight=False)


def bar(expected: ExpectedQuality, width: int = 10) -> Text:
    full = round(width * expected.cosine)
    colour = "green" if expected.cosine >= 0.9 else "yellow" if expected.cosine >= 0.6 else "red"
    return Text.assemble(("█" * full, colour), ("░" * (width - full), "dim"), f" {expected.cosine:.3f} {expected.verdict}")


def draw(path: Path, offers: list[Offer], budget: Budget, once: ExpectedQuality) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    axes.semilogx([one.epsilon for one in offers], [one.expected.cosine for one in offers], "o-", label="answers one by one")
    for one in offers:
        axes.annotate(
            f"{one.queries:,}",
            (one.epsilon, one.expected.cosine),
            xytext=(0, 8),
            textcoords="offset points",
            ha="center",
            fontsize=8,
        )
    axes.plot([budget.epsilon], [once.cosine], "s", color="tab:green", label="a release: any number of answers")
    axes.set(
        xlabel="ε a query (number of queries the budget affords above each point)",
        ylabel="cosine to the exact answer",
        ylim=(0, 1.1),
    )
    axes.set_title(f"What to expect for ε={budget.epsilon:g}, δ={budget.delta:g} (rule of thumb)", fontsize=10)
    axes.legend(loc="lower right")
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)
