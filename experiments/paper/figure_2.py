"""Figure 2: ACS, what three algorithms spend on 3 x 1,500 queries (ε = 0.01, δ = 1e-7, T = 300), and how good their answers are."""

from __future__ import annotations

from itertools import islice

from experiments.datasets import random_records
from experiments.paper import _streams
from experiments.paper._copies import ask_at_scale, copies
from experiments.paper._stops import stops
from experiments.paper._study import ACS_FILE, SEED, Study, figure, plain_numbers

EPSILON = 0.01
RELEASE = 0.1
SCALES = (1.0, 0.3, 0.23, 0.2, 0.15, 0.13)  # of the columns
SCALES_MINUTES = 4
THE_PAPERS, OURS = _streams.PRINTED, _streams.OURS


def run(inputs, queries):
    chosen = list(islice(plans(inputs.acs, queries), inputs.shards))
    runs = [ask_shard(inputs, plan, i, queries) for i, plan in enumerate(chosen)]
    told = _streams.over_shards(runs)
    rows = [_streams.line(name, one) for name, one in told.items()]
    rows += at_other_scales(inputs, chosen[0], queries)
    others = {"stops": stops("ACS", runs, chosen[0].size, EPSILON), "copies": copies("ACS", chosen, SCALES)}
    return {"rows": rows} | others | {"told": _streams.first_seed(told), "asked": len(chosen) * queries}


def at_other_scales(inputs, plan, queries):
    """The paper's algorithms on the first shard with columns in [0, s]: more is near, so more is copied."""
    parts, size = inputs.parts("figure-2", queries), SCALES_MINUTES / len(SCALES[1:])
    for scale in SCALES[1:]:
        found = parts.get(f"scale-{scale:g}", lambda scale=scale: ask_at_scale(plan, inputs.seeds, scale), size)
        yield from ({"columns in": f"[0, {scale:g}]"} | _streams.line(name, one) for name, one in found.items())


def plans(data, queries):
    """One for each shard."""
    shards = data.private(name="ACS").split(_streams.SHARDS)
    records = random_records(data, 2 * _streams.SHARDS * queries, SEED)
    ours = {name: one for name, one in _streams.our_mechanisms(EPSILON).items() if name in OURS}
    for i, shard in enumerate(shards):
        own, others = (records[part * queries :][:queries] for part in (i, _streams.SHARDS + i))
        yield _streams.Plan(shard, own, others, shard.size, ours, EPSILON, RELEASE)


def ask_shard(inputs, plan, i, queries):
    """One shard's answers, the paper's and ours, each from its file if it is there."""
    parts, stored = inputs.parts("figure-2", queries), inputs.sums(f"acs-{queries}-shard-{i}")
    size = (STUDY.minutes - SCALES_MINUTES) / _streams.SHARDS / 2
    papers = parts.get(f"shard-{i}-paper", lambda: _streams.ask_paper_algorithms(plan, inputs.seeds, i, stored), size)
    return papers | parts.get(f"shard-{i}-ours", lambda: _streams.ask_library(plan, inputs.seeds, i, stored), size)


def draw(found):
    drawn, axes = figure(2, 2)
    told, count = found["told"], found["asked"]
    papers, own = (_streams.rows_of(found, names) for names in (THE_PAPERS, OURS))
    _streams.draw_spending(
        told, THE_PAPERS, "claimed", "the paper's mechanisms, by its bookkeeping", axes[0, 0], count, rows=papers
    )
    mark_axis_end(axes[0, 0])
    _streams.draw_spending(told, OURS, "mu", "our defaults, exact", axes[1, 0], count, rows=own)
    _streams.draw_losses(told, (*THE_PAPERS, "non-interactive by labels, paper"), "the paper's mechanisms", axes[0, 1])
    ours = (*OURS, "non-interactive by regression, ours", f"release, ε = {RELEASE:g} once")
    _streams.draw_losses(told, ours, "our defaults", axes[1, 1])
    same_ranges(axes)
    return drawn


def same_ranges(axes):
    """Totals on the left and losses on the right have the same axes above, by the paper's formulas, and below, by ours."""
    top = max(ax.get_ylim()[1] for ax in axes[:, 0])
    low, high = (pick(ax.get_xlim()[k] for ax in axes[:, 1]) for k, pick in enumerate((min, max)))
    for left, right in axes:
        left.set_ylim(0, top)
        right.set_xlim(low, high)
        plain_numbers(right.xaxis)


def mark_axis_end(ax, end=1.1):
    """Where the axis of the paper's figure ends, which has all curves below it."""
    ax.set_ylim(top=max(ax.get_ylim()[1], 1.1 * end))
    ax.axhline(end, color="#222222", linestyle=":", linewidth=1)
    ax.annotate(
        f"end of the paper's axis, {end:g}", (0.99, end), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=8
    )


STUDY = Study(
    name="figure-2",
    title="ACS: privacy spent and loss of basic, adaptive, enhanced and non-interactive answers",
    shows="ε below 1.1 after 4,500 queries, adaptive far below basic, enhanced lower still, at the same loss; non-interactive worse",
    files=(ACS_FILE,),
    full=1500,
    quick=10,
    run=run,
    draw=draw,
    minutes=13,
)
