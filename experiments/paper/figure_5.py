"""Figure 5: how many iterations the adaptive and enhanced algorithms take, on the queries of Figures 2 and 3 (their first seed)."""

from __future__ import annotations

import statistics
from math import sqrt

import numpy as np

from dpexplain import plots
from dpexplain.plots.style import SERIES
from dpexplain.privacy import gdp, paper
from experiments.paper import figure_2, figure_3
from experiments.paper._streams import with_error
from experiments.paper._study import ACS_FILE, TEXT_FILES, Study, figure, legend_above, plain_numbers
from experiments.paper.figure_2 import mark_axis_end

SOURCES = {"ACS": figure_2.STUDY, "Text": figure_3.STUDY}
ADAPTING = ("adaptive, paper", "enhanced, paper", "adaptive, ours", "enhanced, ours")
SETTINGS = (("ACS13", 1_494_974, 0.01, 95), ("Text", 8_815_568, 0.006, 91))  # rows, ε, and the spike that the paper reports
DELTA, STEPS, MOST_COLUMNS = 1e-7, 300, 2000
AXIS_END = 0.125  # of the share of queries, in the paper's figure
REPORTED = {("ACS", "adaptive"): 121, ("ACS", "enhanced"): 43, ("Text", "adaptive"): 149, ("Text", "enhanced"): 28}


def run(inputs, queries):
    found = {name: inputs.result(study, queries) for name, study in SOURCES.items()}
    told = {name: one["told"] for name, one in found.items()}
    computed = {data: {name: [t for t in one[name]["iterations"] if t] for name in ADAPTING} for data, one in told.items()}
    asked = {data: len(one[ADAPTING[0]]["iterations"]) for data, one in told.items()}
    return {
        "rows": [
            row(data, name, counts) | {"queries": asked[data]} for data, one in computed.items() for name, counts in one.items()
        ],
        "counts": computed,
        "notes": [columns_that_fit(*one) for one in SETTINGS],
    }


def columns_that_fit(data, rows, epsilon, spike):
    """The number of columns is not stated: the one at which √n·σ_min alone gives the reported T', printed and with exact noise."""
    said = []
    for split, where in ((3, "thirds"), (1, "all rows")):
        size = rows // split
        exact = sqrt(STEPS - 1) / (gdp.mu(epsilon, DELTA) * size)
        for kind, sigma in (("printed", paper.adaptive_sigma(size, epsilon, DELTA, STEPS)), ("exact", exact)):
            closest = min(range(1, MOST_COLUMNS + 1), key=lambda n, sigma=sigma: abs(at_least(n, sigma) - spike))
            said.append(
                f"{where}, {kind} noise: n = {closest} gives {at_least(closest, sigma)} (n = 1 gives {at_least(1, sigma)})"
            )
    return f"{data}, T' = {spike}: " + "; ".join(said)


def at_least(columns, sigma):
    """T' from any start: Algorithm 3 goes on from max(β, √n σ_min)."""
    return paper.iterations(sqrt(columns) * sigma, STEPS)


def row(data, name, counts):
    return {
        "data": data,
        "mechanism": name,
        **with_error("mean T'", counts, 3),
        "median": float(np.median(counts)),
        "smallest": min(counts),
        "most frequent": f"{statistics.mode(counts):.0f} ({np.mean(np.array(counts) == statistics.mode(counts)):.0%})",
        "at full T": f"{np.mean(np.array(counts) >= 300):.1%}",
        "mean in the paper": REPORTED[data, name.split(",")[0]],
        "seeds": 1,
    }


def draw(found):
    drawn, axes = figure(2, height=4.2)
    for ax, (data, counts) in zip(axes[0], found["counts"].items(), strict=True):
        plots.histogram(counts, quantity="iterations of a computed answer", normalised=True, ax=ax)
        ax.set_yscale("log")
        plain_numbers(ax.yaxis)
        mark_axis_end(ax, AXIS_END)
        mark_reported(ax, data)
        ax.get_legend().set_title(data, prop={"size": 12})
        ax.get_legend().set_alignment("left")
    return drawn


def mark_reported(ax, data):
    """The paper's means and spike, on the axis of iterations, in the colours of its algorithms."""
    spike = next(one[-1] for one in SETTINGS if one[0].startswith(data))
    marks = {"adaptive, spike": (spike, 0, ":"), "adaptive, mean": (REPORTED[data, "adaptive"], 0, "--")}
    marks |= {"enhanced, mean": (REPORTED[data, "enhanced"], 1, "--")}
    for name, (value, series, dashes) in marks.items():
        ax.axvline(value, color=SERIES[series], linestyle=dashes, linewidth=1.2, label=f"reported: {name} {value}")
    legend_above(ax, 2)


STUDY = Study(
    name="figure-5",
    title="iterations of the adaptive and enhanced algorithms",
    shows="adaptive: a spike at T' = 95 (ACS) and 91 (Text), means 121 and 149; enhanced: mostly below 90, means 43 and 28",
    files=(ACS_FILE, *TEXT_FILES),
    full=1500,
    quick=10,
    run=run,
    draw=draw,
)
