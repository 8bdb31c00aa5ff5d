"""`dpexplain plan`: what quality to expect for which ε, and how many queries a budget affords, from public numbers only."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from dpexplain.cli.exits import exit_on_error
from dpexplain.cli.shared_options import Json, require_writable
from dpexplain.core.weights import DEFAULT_WEIGHT
from dpexplain.errors import ParameterError
from dpexplain.privacy import expected_quality
from dpexplain.privacy.budget import Budget
from dpexplain.privacy.expected_quality import ExpectedQuality, Facts, Interval, Offer

PICTURES = (".png", ".svg", ".pdf")
RULE = (
    "These numbers are a rule of thumb for the default weight and radius: the median and, where enough was measured, an interval. For releases and answers by "
    "moments they are fitted to a hundred real tables. Each of these, judged by the others alone, was inside for 94 % of its results. Nothing was read and "
    "nothing was spent."
)

EXCESS = "Excess: 0 is the exact answer, 1 is no better than the average answer. Cosine: to the exact answer."
NEAR = (
    "By what the domain declares, two records are about {near:.2g} apart, and the default weight counts rows up to {core:.2g} in full. A smaller "
    "scale in the domain lets more rows count as near, and makes paid answers more accurate and less local: docs/domain.md."
)


Rows = Annotated[int, typer.Option("--rows", min=1, metavar="N", help="Number of private rows, which is public.")]
Features = Annotated[int | None, typer.Option("--features", min=1, metavar="N", help="Encoded columns (domain.width).")]
DomainFile = Annotated[Path | None, typer.Option("--domain", help="A domain file instead of --features: .toml or .json.")]
Epsilon = Annotated[float, typer.Option("--epsilon", help="Total ε.")]
Delta = Annotated[float, typer.Option("--delta", help="Total δ, and the δ of each query.")]
Multiplier = Annotated[
    int,
    typer.Option("--max-rows-per-unit", min=1, metavar="N", help="Rows used of each person (twice as many for replace-one)."),
]
Answers = Annotated[
    Literal["soft", "hard"] | None, typer.Option("--answers", help="Probabilities (soft) or classes (hard), if known.")
]
Registered = Annotated[
    bool | None,
    typer.Option("--model/--labels", help="Whether the model is registered, or only its labels.", show_default=False),
]
Positives = Annotated[float | None, typer.Option("--positives", help="Share of positive answers, 0 to 1, only if it is public.")]
Linear = Annotated[
    bool | None, typer.Option("--linear/--curved", help="Whether the model is linear or logistic.", show_default=False)
]
Tied = Annotated[
    bool | None,
    typer.Option(
        "--tied/--untied",
        help="Whether a number nearly follows from other columns: sums, squares, gross and net.",
        show_default=False,
    ),
]
Plane = Annotated[Literal["fitted", "paper"], typer.Option("--plane", help="Plane of the explanations.")]
Plot = Annotated[Path | None, typer.Option("--plot", help="Write a plot: PNG, SVG or PDF.")]


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: dpexplain plan --rows 50000 --features 20 --epsilon 1 --delta 1e-6 --model --curved")(
        exit_on_error(plan)
    )


def plan(
    rows: Rows,
    features: Features = None,
    domain: DomainFile = None,
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-6,
    multiplier: Multiplier = 1,
    answers: Answers = None,
    model: Registered = None,
    positives: Positives = None,
    linear: Linear = None,
    tied: Tied = None,
    plane: Plane = "fitted",
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Predict the quality of interactive answers and of a release from public numbers only."""
    budget, width = Budget(epsilon, delta), count_columns(features, domain)
    if plot is not None:
        require_picture(plot)
    facts = Facts(model, expected_quality.rarity(positives), None if answers is None else answers == "hard", linear, tied)
    offers = expected_quality.offers(rows, width, budget, multiplier, facts, plane=plane)
    reached, beyond = expected_quality.reach(rows, width, budget, multiplier), expected_quality.extrapolation(rows, width)
    once = expected_quality.release(reached, facts, plane=plane, beyond=beyond)
    unknown = expected_quality.unknowns(rows, width, facts, plane=plane)
    near = None if domain is None else distance_of(domain)
    if plot is not None:
        draw(plot, offers, budget, once)
    if as_json:
        public = {"rows": rows, "features": width, "epsilon": budget.epsilon, "delta": budget.delta, "plane": plane}
        found = public | asdict(facts) | as_data(budget, offers, once)
        print(json.dumps(found | {"not_known": unknown, "typical_distance": near, "note": RULE}, indent=2))
    else:
        title = f"{rows:,} rows x {width} columns, budget ε={budget.epsilon:g}, δ={budget.delta:g}, {plane} plane"
        show(Console(), title, offers, once, unknown)
        if near is not None:
            print(NEAR.format(near=near, core=DEFAULT_WEIGHT.peak))


def require_picture(path: Path) -> None:
    """Raise InputError unless this is a file that a plot can be written to."""
    if path.suffix.lower() not in PICTURES:
        raise ParameterError(f"cannot draw {path.name!r}. Use one of {', '.join(PICTURES)}")
    require_writable(path)


def count_columns(features: int | None, domain: Path | None) -> int:
    if (features is None) == (domain is None):
        raise ParameterError("the number of encoded columns comes from one place. Pass either --features or --domain")
    if domain is None:
        return cast(int, features)
    from dpexplain.domain import Domain

    return Domain.load(domain).width


def distance_of(domain: Path) -> float:
    """How far apart two records are, by what the domain declares alone."""
    from dpexplain.core.layout import Layout
    from dpexplain.domain import Domain

    return Layout.of(Domain.load(domain).blocks).typical_distance


def as_data(budget: Budget, offers: list[Offer], once: ExpectedQuality) -> dict[str, Any]:
    return {
        "interactive": [{"epsilon": one.epsilon, "queries": one.queries, **asdict(one.expected)} for one in offers],
        "release": {"epsilon": budget.epsilon, "queries": None, **asdict(once)},
    }


def show(console: Console, title: str, offers: list[Offer], once: ExpectedQuality, unknown: list[str]) -> None:
    numbers = [Column(name, justify="right") for name in ("ε each", "queries", "excess")]
    table = Table("way", *numbers, "interval", "cosine", "interval", title=title, box=SIMPLE_HEAD, collapse_padding=True)
    for one in offers:
        table.add_row("one by one", f"{one.epsilon:g}", f"{one.queries:,}", *quality(one.expected))
    table.add_section()
    table.add_row("release", "once", "any", *quality(once))
    console.print(table)
    for line in (EXCESS, RULE, *(f"Not known: {one}" for one in unknown)):
        console.print(line, markup=False, highlight=False)


def quality(expected: ExpectedQuality) -> tuple[str, str, Text, str]:
    """Excess and cosine to the exact answer, each with its interval."""
    colour = "green" if expected.cosine >= 0.9 else "yellow" if expected.cosine >= 0.6 else "red"
    cosine = Text(f"{expected.cosine:.3f}", colour)
    return (
        f"{expected.relative_excess:.2g}",
        _interval(expected.excess_interval, ".2g"),
        cosine,
        _interval(expected.cosine_interval, ".2f"),
    )


def _interval(ends: Interval | None, digits: str) -> str:
    return "no interval" if ends is None else f"{ends[0]:{digits}} to {ends[1]:{digits}}"


def draw(path: Path, offers: list[Offer], budget: Budget, once: ExpectedQuality) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    axes.semilogx([one.epsilon for one in offers], [one.expected.cosine for one in offers], "o-", label="answers one by one")
    measured = [(one.epsilon, *one.expected.cosine_interval) for one in offers if one.expected.cosine_interval]
    if measured:
        prices, least, most = (list(column) for column in zip(*measured, strict=True))
        axes.fill_between(prices, least, most, alpha=0.15)
    if once.cosine_interval:
        axes.vlines(budget.epsilon, *once.cosine_interval, color="tab:green")
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
