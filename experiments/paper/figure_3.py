"""Figure 3: Text, what three algorithms spend on 3 x 1,500 reviews (ε = 0.006, δ = 1e-7, T = 300), and how good their answers are.

The paper has 8,815,568 reviews, this has 50,000. The paper's algorithms get the paper's number of rows in all their formulas, so that noise and
totals are those of its size, on the mean gradients of ours. Ours run at the ε that has `factor` times the paper's μ, and their totals are divided by
it again.
"""

from __future__ import annotations

from itertools import islice

import dpexplain as dpx
from dpexplain.privacy import gdp
from experiments.paper import _streams
from experiments.paper._copies import copies
from experiments.paper._stops import stops
from experiments.paper._study import TEXT_FILES, Study, figure
from experiments.paper.figure_2 import OURS, THE_PAPERS, same_ranges

EPSILON, RELEASE = 0.006, 1.0
OUR_SEEDS = 5  # in each of three shards: an answer about 500 words takes a twentieth of a second
SCALES = (1.0, 0.3, 0.1, 0.05, 0.03, 0.027, 0.025)
AT_ITS_OWN = "basic, ours, at ε = 0.006"


def run(inputs, queries):
    factor = inputs.reviews.factor
    chosen = list(islice(plans(inputs.reviews, queries), inputs.shards))
    runs = [ask_shard(inputs, plan, i, queries) for i, plan in enumerate(chosen)]
    told = _streams.over_shards(runs)
    rows = [_streams.line(name, one, factor if name in OURS else 1.0) for name, one in told.items()]
    others = {"stops": stops("Text", runs, chosen[0].size, EPSILON, factor), "copies": copies("Text", chosen, SCALES)}
    return {"rows": rows, "told": _streams.first_seed(told), "factor": factor, "asked": len(chosen) * queries} | others


def plans(reviews, queries):
    shards = dpx.PrivateData(reviews.texts, reviews.domain, labels=reviews.truth, name="Text").split(_streams.SHARDS)
    usable = [reviews.texts[i] for i in reviews.draw_positions(2 * _streams.SHARDS * queries)]
    size = reviews.paper_rows // _streams.SHARDS
    for i, shard in enumerate(shards):
        own = usable[2 * i * queries :][: 2 * queries]
        yield _streams.Plan(shard, own[:queries], own[queries:], size, our_mechanisms(reviews.factor), EPSILON, RELEASE)


def our_mechanisms(factor):
    """Our defaults at the ε of `factor` times μ, and one at the paper's own ε."""
    exact = gdp.epsilon(gdp.mu(EPSILON, _streams.DELTA) * factor, _streams.DELTA)
    chosen = {name: one for name, one in _streams.our_mechanisms(exact).items() if name in OURS}
    return chosen | {AT_ITS_OWN: dpx.Basic(EPSILON, _streams.DELTA, plane="paper")}


def ask_shard(inputs, plan, i, queries):
    """One shard's answers. Sums of 500 columns are a megabyte a query: they are stored until both are through, and removed."""
    parts, size, stored = inputs.parts("figure-3", queries), STUDY.minutes / _streams.SHARDS / 2, inputs.sums(f"text-shard-{i}")
    papers = parts.get(f"shard-{i}-paper", lambda: _streams.ask_paper_algorithms(plan, inputs.seeds, i, stored), size)
    seeds = min(OUR_SEEDS, inputs.seeds)
    ours = parts.get(f"shard-{i}-ours", lambda: _streams.ask_library(plan, seeds, i, stored), size)
    for path in stored.parent.glob(f"*{stored.name}"):
        path.unlink()
    return papers | ours


def draw(found):
    drawn, axes = figure(2, 2)
    told, count = found["told"], found["asked"]
    papers, own = (_streams.rows_of(found, names) for names in (THE_PAPERS, OURS))
    _streams.draw_spending(
        told, THE_PAPERS, "claimed", "the paper's mechanisms, by its bookkeeping", axes[0, 0], count, rows=papers
    )
    title = "our defaults, exact, at the paper's size"
    _streams.draw_spending(told, OURS, "mu", title, axes[1, 0], count, found["factor"], own)
    _streams.draw_losses(told, (*THE_PAPERS, "non-interactive by labels, paper"), "the paper's mechanisms", axes[0, 1])
    ours = (*OURS, "non-interactive by regression, ours", f"release, ε = {RELEASE:g} once")
    _streams.draw_losses(told, ours, "our defaults", axes[1, 1])
    same_ranges(axes)
    return drawn


STUDY = Study(
    name="figure-3",
    title="Text: privacy spent and loss of basic, adaptive, enhanced and non-interactive answers",
    shows="adaptive far below basic, enhanced lower still, at the same loss; non-interactive worse",
    files=TEXT_FILES,
    full=1500,
    quick=10,
    run=run,
    draw=draw,
    minutes=37,
)
