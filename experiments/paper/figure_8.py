"""Figure 8: Text, is an explanation worse where the model is wrong about the 50 nearest reviews? From the answers of Figure 7, T = 500."""

from __future__ import annotations

import numpy as np

from dpexplain.plots.style import SERIES, heading, tidy
from experiments.paper import figure_7
from experiments.paper._study import TEXT_FILES, Study, digits, figure

MECHANISMS = ("paper, T=500, noise of 8.8 M", "ours, ε = 1")
SHOWN = ("f_0.01", "f_0.5", "f_2", "f_10")


def run(inputs, queries):
    told = inputs.result(figure_7.STUDY, queries)["told"]
    points = {name: {m: [told[name]["wrong nearby"], told[name][m]["excess"]] for m in MECHANISMS} for name in SHOWN}
    rows = [
        {"model": name, "mechanism": m, "correlation": correlation(*pairs), "largest excess loss": digits(max(pairs[1]))}
        for name, each in points.items()
        for m, pairs in each.items()
    ]
    return {"rows": rows, "points": points}


def correlation(wrong, excess):
    """0 where the error is the same everywhere."""
    return digits(float(np.corrcoef(wrong, excess)[0, 1]), 2) if np.ptp(wrong) and np.ptp(excess) else 0.0


def draw(found):
    drawn, axes = figure(len(SHOWN), len(MECHANISMS), width=3.2, height=2.8)
    for row, mechanism in zip(axes, MECHANISMS, strict=True):
        for ax, name in zip(row, SHOWN, strict=True):
            wrong, excess = found["points"][name][mechanism]
            ax.scatter(wrong, excess, s=9, color=SERIES[0], alpha=0.6)
            ax.set(xlim=(0, 1), xlabel="wrong among the 50 nearest", ylabel="excess loss")
            ax.set_ylim(bottom=0)
            heading(ax, f"{name}: {mechanism}", 8)
            tidy(ax)
    return drawn


STUDY = Study(
    name="figure-8",
    title="Text: excess loss against the model's error among the 50 nearest reviews",
    shows="a positive correlation for every model; errors ten times larger for f_0.5",
    files=TEXT_FILES,
    full=500,
    quick=8,
    run=run,
    draw=draw,
)
