"""The conclusion's claim, without a figure in the paper: private explanations are worse for minorities. ACS, by race (RAC1P)."""

from __future__ import annotations

import numpy as np

import dpexplain as dpx
from dpexplain.plots.style import SERIES, tidy
from experiments.paper import _streams
from experiments.paper._study import ACS_FILE, SEED, Study, digits, figure, legend_above, mean

EPSILON, DELTA = 0.1, 1e-6
GROUPS = {1: "White", 2: "Black", 3: "Asian", 4: "American Indian\nor Alaska Native", 5: "other,\nor several"}
MECHANISMS = {
    "paper, ε = 0.1": dpx.Basic(EPSILON, DELTA, 300, calibration="paper"),
    "ours, ε = 0.1": dpx.Basic(EPSILON, DELTA, plane="paper"),
}
MECHANISMS |= {"ours, ε = 0.01": dpx.Basic(0.01, DELTA, plane="paper")}


def run(inputs, queries):
    data, rng = inputs.acs, np.random.default_rng(SEED)
    private, names = data.private(), [feature.name for feature in data.domain.features]
    made = _streams.released(private, 0.1, SEED)
    race, told = data.frame.RAC1P.to_numpy(), {}
    for code in GROUPS:
        chosen = rng.choice(np.flatnonzero(race == code), queries)
        records = data.frame[names].iloc[chosen].to_dict("records")
        told[code] = _streams.asked(private, records, MECHANISMS, SEED, made)
    rows = []
    for code, each in told.items():
        share = f"{(race == code).mean():.1%}"
        relative = {name: mean(one["relative_excess"]) for name, one in each.items()}
        gain = mean(np.array(each["paper, ε = 0.1"]["excess_loss"]) / each["paper, ε = 0.1"]["relative_excess"])
        rows.append({"group": GROUPS[code].replace("\n", " "), "of all": share, "excess loss of no explanation": gain} | relative)
    spread = {name: [mean(each[name]["relative_excess"]) for each in told.values()] for name in told[1]}
    notes = [f"{name}: worst group {digits(max(v) / v[0], 3)} times the majority's relative excess" for name, v in spread.items()]
    return {"rows": rows, "notes": notes, "spread": spread}


def draw(found):
    drawn, axes = figure(1, width=7.5, height=3.6)
    ax, groups = axes[0, 0], list(GROUPS.values())
    for k, (name, values) in enumerate(found["spread"].items()):
        ax.bar(np.arange(len(groups)) + (k - 1.5) * 0.2, values, 0.18, color=SERIES[k], label=name)
    ax.set_xticks(np.arange(len(groups)), groups)
    ax.set_yscale("log")
    ax.set_ylabel("relative excess loss")
    legend_above(ax, 4)
    tidy(ax)
    return drawn


STUDY = Study(
    name="minorities",
    title="ACS: are explanations worse for minorities?",
    shows="said in the conclusion, not measured: differential privacy injects more noise into explanations of minorities",
    files=(ACS_FILE,),
    full=300,
    quick=10,
    run=run,
    draw=draw,
)
