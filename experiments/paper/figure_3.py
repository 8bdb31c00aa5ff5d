"""Figure 3: Text, what three algorithms spend on 3 x 1,500 reviews (ε = 0.006, δ = 1e-7, T = 300), and how good their answers are.

The paper has 8,815,568 reviews, this has 50,000: each mechanism runs at the ε that has the paper's noise here (`Reviews.factor`), and one at the
paper's own ε.
"""

from __future__ import annotations

import dpexplain as dpx
from dpexplain.privacy import gdp
from experiments.paper import _streams
from experiments.paper._study import TEXT_FILES, Study, figure
from experiments.paper.figure_2 import OURS, THE_PAPERS

EPSILON = 0.006
AT_ITS_OWN = "basic, ours, at ε = 0.006"


def chosen(factor):
    """The paper's mechanisms at `factor` times ε, ours at the ε of `factor` times μ, and one without either."""
    exact = gdp.epsilon(gdp.mu(EPSILON, _streams.DELTA) * factor, _streams.DELTA)
    printed, ours = _streams.mechanisms(EPSILON * factor), _streams.mechanisms(exact)
    own = {AT_ITS_OWN: dpx.Basic(EPSILON, _streams.DELTA, plane="paper")}
    return {name: printed[name] for name in THE_PAPERS} | {name: ours[name] for name in OURS} | own


def run(inputs, queries):
    reviews = inputs.reviews
    factor = reviews.factor
    shards = dpx.PrivateData(reviews.texts, reviews.domain, labels=reviews.truth, name="Text").split(_streams.SHARDS)
    usable = [reviews.texts[i] for i in reviews.drawn(2 * _streams.SHARDS * queries)]
    runs = []
    for i, shard in enumerate(shards):
        own = usable[2 * i * queries :][: 2 * queries]
        made = _streams.released(shard, 1.0, i)
        runs.append(_streams.asked(shard, own[:queries], chosen(factor), i, made, _streams.FREE, own[queries:]))
    told = _streams.over_shards(runs)
    rows = [_streams.line(name, one) for name, one in told.items()]
    for row, one in zip(rows, told.values(), strict=True):
        if "mu" in one and row["mechanism"] != AT_ITS_OWN:
            row["total ε at the paper's size"] = _streams.at_size(one, factor)
    return {"rows": rows, "told": told, "factor": factor}


def draw(found):
    drawn, axes = figure(2, 2)
    told = found["told"]
    _streams.draw_spending(told, THE_PAPERS, "mu", "the paper's mechanisms, μ", axes[0, 0])
    _streams.draw_spending(told, OURS, "mu", "our defaults, μ", axes[1, 0])
    for ax in axes[:, 0]:
        ax.set_ylabel("μ spent in total")
    _streams.draw_losses(told, (*THE_PAPERS, "non-interactive, paper"), "the paper's mechanisms", axes[0, 1])
    _streams.draw_losses(told, (*OURS, "non-interactive, ours", "release, ε = 1 once"), "our defaults", axes[1, 1])
    return drawn


STUDY = Study(
    name="figure-3",
    title="Text: privacy spent and loss of basic, adaptive, enhanced and non-interactive answers",
    shows="the same order as on ACS: basic spends most, enhanced least; non-interactive answers are worse",
    files=TEXT_FILES,
    full=1500,
    quick=10,
    run=run,
    draw=draw,
)
