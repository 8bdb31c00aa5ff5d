"""Figure 8: Text, is an explanation worse where the model is wrong about the 50 nearest reviews? From the answers of Figure 7, T = 500.

Correlations have 95 % intervals (Fisher's z). Noise in the measured excess loss hides a part of a correlation: draws of noise are averaged first.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from dpexplain.plots.style import SERIES, heading, tidy
from experiments.paper import figure_7
from experiments.paper._study import TEXT_FILES, Study, digits, figure
from experiments.paper.figure_2 import mark_axis_end

MECHANISM = "paper, T=500"
AXIS_ENDS = {"f_0.5": 0.004, "f_2": 0.0004, "f_10": 0.0004}  # of excess losses in the paper's figure
PRINTED = ("correlation", "from", "to")
OURS = ("correlation, ours", "from, ours", "to, ours")


def run(inputs, queries):
    told = inputs.result(figure_7.STUDY, queries)["told"]
    models = [name for name in told if name != "f"]
    points = {name: [told[name]["wrong nearby"], told[name][f"{MECHANISM}: excess"]] for name in models}
    ours = {name: points_of_ours(told[name]) for name in models}
    rows = [row(name, *points[name]) | by_ours(*ours[name]) for name in models]
    return {"rows": rows, "points": points, "points of ours": ours}


def row(name, wrong, excess):
    found, low, high = correlation(wrong, excess)
    largest = digits(max(excess))
    return {"model": name, "correlation": found, "from": low, "to": high, "largest excess loss": largest, "reviews": len(wrong)}


def points_of_ours(told):
    """The same by our answers, which are about some of the reviews."""
    wrong = np.concatenate([part[:: figure_7.OURS_EVERY] for part in pieces(told["wrong nearby"])])
    return [wrong.tolist(), told[f"{figure_7.OURS}: excess"]]


def by_ours(wrong, excess):
    return dict(zip(OURS, correlation(wrong, excess), strict=True)) | {"reviews of ours": len(excess)}


def pieces(values):
    return [np.asarray(values[i : i + figure_7.PIECE]) for i in range(0, len(values), figure_7.PIECE)]


def correlation(wrong, excess):
    """(r, and its 95 % interval); zeros where the error is the same everywhere."""
    if len(wrong) < 4 or not (np.ptp(wrong) and np.ptp(excess)):
        return 0.0, -1.0, 1.0
    found = stats.pearsonr(wrong, excess)
    interval = found.confidence_interval(0.95)
    return tuple(round(float(value), 3) for value in (found.statistic, interval.low, interval.high))


def draw(found):
    """The models that the paper has, by the printed formulas above and by ours below; those of our own trainer are in the table."""
    names = [name for name in found["points"] if not name.startswith("own ")] or list(found["points"])
    rows = {row["model"]: row for row in found["rows"]}
    drawn, axes = figure(len(names), 2, width=3.2, height=3.0)
    kinds = ((MECHANISM, "points", PRINTED), (figure_7.OURS, "points of ours", OURS))
    for line, (kind, points, keys) in zip(axes, kinds, strict=True):
        for ax, name in zip(line, names, strict=True):
            scatter(ax, name, *found[points][name])
            found_at, low, high = (rows[name][key] for key in keys)
            heading(ax, f"{name}, {kind}\nr = {found_at:.2f} ({low:.2f} to {high:.2f})", 8)
    return drawn


def scatter(ax, name, wrong, excess):
    ax.scatter(wrong, excess, s=6, color=SERIES[0], alpha=0.35, linewidths=0)
    ax.set(xlim=(0, 1), xlabel="wrong among the 50 nearest", ylabel="excess loss")
    ax.set_ylim(bottom=0)
    if end := AXIS_ENDS.get(name.removesuffix(", weak")):
        mark_axis_end(ax, end)
    tidy(ax)


STUDY = Study(
    name="figure-8",
    title="Text: excess loss against the model's error among the 50 nearest reviews",
    shows="a positive correlation for every model; errors ten times larger for f_0.5",
    files=TEXT_FILES,
    full=1000,
    quick=8,
    run=run,
    draw=draw,
)
