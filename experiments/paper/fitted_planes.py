"""Not in the paper: its settings answered by the fitted plane, which is the default, paid for query by query and by one release.

The paper's plane goes through 0 at the record, so it explains the average answer too (erratum 10). Here a plane is judged with the best constant
beside it: relative excess 0 is the exact fitted plane, 1 knows the average only. The exact optimum of the paper's plane is judged the same way. Text has
the noise that exact accounting would have at the paper's number of reviews, as in Figure 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.noise import SeededNoise
from dpexplain.plots.style import SERIES, heading, tidy
from dpexplain.privacy import gdp
from dpexplain.progress import with_bar
from experiments.datasets import random_records
from experiments.paper import _streams
from experiments.paper._study import ACS_FILE, FACE_FILE, SEED, TEXT_FILES, Study, figure

THE_PAPERS = "the paper's plane, exact"
WHOLE_DELTA = 1e-6  # of Table 3's queries
GRID, FACE_DELTA, FEWER, ACROSS = 12, 1e-5, 5, 3
SEEDS = 2  # a paid answer takes half a second from all rows of ACS


@dataclass(frozen=True)
class Setting:
    """One data set of the paper with its (ε, δ) a query; `release` is the ε of one release for all queries. Totals of paid answers are those of `factor`
    times as many rows."""

    title: str
    data: dpx.PrivateData
    records: list
    mechanisms: dict[str, Any]
    release: float
    factor: float = 1.0
    shared: int = SEEDS  # draws of noise that all answers share: of a release, or of the first adaptive answer

    def seeds_of(self, name):
        """Answers by `Basic` have noise of their own, so few draws of it do."""
        return SEEDS if name.startswith("basic") else self.shared


def run(inputs, queries):
    parts, rows = inputs.parts("fitted-planes", queries), []
    for make in SETTINGS:
        scored = parts.get(make.__name__, lambda make=make: score_setting(make(inputs, queries)), STUDY.minutes / len(SETTINGS))
        rows += [describe(name, one) for name, one in scored.items()]
    return {"rows": rows}


def acs_third(inputs, queries):
    """Figure 2's: the first of three shards."""
    data = inputs.acs
    shard = data.with_model(name="ACS").split(_streams.SHARDS)[0]
    return Setting("ACS, a third", shard, random_records(data, queries, SEED), default_mechanisms(0.01), 0.1, shared=inputs.seeds)


def acs_whole(inputs, queries):
    """Table 3's."""
    data = inputs.acs
    chosen = {f"basic, ε = {epsilon:g}": dpx.Basic(epsilon, WHOLE_DELTA) for epsilon in (0.01, 0.1)}
    return Setting("ACS", data.with_model(), random_records(data, queries, SEED), chosen, 0.1, shared=inputs.seeds)


def text_third(inputs, queries):
    """Figure 3's, at `factor` times the paper's μ."""
    reviews = inputs.reviews
    shard = dpx.PrivateData(reviews.texts, reviews.domain, labels=reviews.truth, name="Text").split(_streams.SHARDS)[0]
    exact = gdp.epsilon(gdp.mu(0.006, _streams.DELTA) * reviews.factor, _streams.DELTA)
    chosen = {name.replace(f"{exact:g}", "0.006, μ of 8.8 M"): mechanism for name, mechanism in default_mechanisms(exact).items()}
    return Setting("Text, a third", shard, draw_texts(reviews, queries), chosen, 1.0, reviews.factor)


def text_whole(inputs, queries):
    """Table 3's."""
    reviews = inputs.reviews
    data = dpx.PrivateData(reviews.texts, reviews.domain, labels=reviews.truth)
    exact = gdp.epsilon(gdp.mu(0.1, WHOLE_DELTA) * reviews.factor, WHOLE_DELTA)
    chosen = {"basic, ε = 0.1, μ of 8.8 M": dpx.Basic(exact, WHOLE_DELTA)}
    return Setting("Text", data, draw_texts(reviews, max(2, queries // FEWER)), chosen, 1.0, reviews.factor)


def draw_texts(reviews, queries):
    return [reviews.texts[i] for i in reviews.draw_positions(queries)]


def faces(inputs, queries):
    """Figure 1's, in superpixels; single pixels are too many columns for a release."""
    images = inputs.faces
    domain = dpx.ImageDomain(shape=images.training.shape[1:], grid=(GRID, GRID))
    data = dpx.PrivateData(images.training, domain, model=inputs.face_model)
    chosen = np.random.default_rng(SEED).permutation(len(images.test))[: max(2, queries // FEWER)]
    records, basic = list(images.test[chosen]), {"basic, ε = 1": dpx.Basic(1.0, FACE_DELTA)}
    return Setting(f"Faces, {GRID}×{GRID}", data, records, basic, 1.0, shared=inputs.seeds)


SETTINGS = (acs_third, acs_whole, text_third, text_whole, faces)


def default_mechanisms(epsilon):
    """As anybody makes them, who states a price and nothing else."""
    delta = _streams.DELTA
    return {
        f"basic, ε = {epsilon:g}": dpx.Basic(epsilon, delta),
        f"adaptive, ε = {epsilon:g}": dpx.Adaptive(epsilon, delta),
        f"enhanced, ε = {epsilon:g}": dpx.Enhanced(epsilon, delta),
    }


def score_setting(setting):
    """{"data/mechanism": {quantity: (seeds, queries)}}."""
    data = setting.data
    evaluation.remember(data, most=2)
    explainers = {
        name: [dpx.Explainer(data, _streams.BUDGET, one, noise=SeededNoise(k)) for k in range(setting.seeds_of(name))]
        for name, one in setting.mechanisms.items()
    }
    budget = dpx.Budget(setting.release, _streams.TOTAL_DELTA)
    releases = [dpx.release(data, budget, noise=SeededNoise(k)) for k in range(setting.shared)]
    sources: dict[str, Any] = explainers | {f"release, ε = {setting.release:g} once": releases}
    scores = {name: [] for name in (*sources, THE_PAPERS)}
    for record in with_bar(setting.records, setting.title):
        moments, best = evaluation.local_moments(data, record), evaluation.optimum(data, record)
        answers = {name: [one.explain(record, plane="fitted") if name[:7] == "release" else one.explain(record) for one in each]
                   for name, each in sources.items()}  # fmt: skip
        values = {name: [answer.values for answer in each] for name, each in answers.items()}
        values[THE_PAPERS] = [evaluation.optimum(data, record, plane="paper")]
        spent = {name: {"mu": np.array([one.spent.mu / setting.factor for one in each])} for name, each in explainers.items()}
        for name, each in values.items():
            scores[name].append(compare_all(each, best, moments, data.size) | spent.get(name, {}))
    return {f"{setting.title}/{name}": _streams.stack(lines) for name, lines in scores.items()}


def compare_all(each, best, moments, size):
    found = [evaluation.compare(np.asarray(values), best, moments, size) for values in each]
    return {what: np.array([getattr(one, what) for one in found]) for what in _streams.QUANTITIES}


def describe(name, scored):
    title, mechanism = name.split("/", 1)
    row = {"data": title, "explanation": mechanism}
    if "mu" in scored:
        row |= _streams.with_error("total ε", [gdp.epsilon(mu, _streams.TOTAL_DELTA) for mu in scored["mu"][:, -1]])
    for key, heading_of in (("relative_excess", "relative excess"), ("cosine", "cosine")):
        row |= _streams.with_both_errors(heading_of, scored[key], 3)
    return row | {"seeds": len(scored["cosine"]), "queries": scored["cosine"].shape[1]}


def draw(found):
    titles = list(dict.fromkeys(row["data"] for row in found["rows"]))
    drawn, axes = figure(ACROSS, -(-len(titles) // ACROSS), width=4.6, height=2.7)
    for ax in axes.flat[len(titles) :]:
        ax.set_axis_off()
    for ax, title in zip(axes.flat, titles, strict=False):
        rows = [row for row in found["rows"] if row["data"] == title][::-1]
        for place, row in enumerate(rows):
            colour = "#999999" if row["explanation"] == THE_PAPERS else SERIES[0]
            ax.errorbar(row["relative excess"], place, xerr=row["± relative excess"], fmt="o", color=colour, capsize=2)
        ax.set_yticks(range(len(rows)), [row["explanation"] for row in rows], fontsize=8)
        ax.axvline(1.0, color="#666666", linewidth=0.8)
        ax.set(xscale="log", xlabel="relative excess loss (1: the average only)", xlim=(1e-3, 1.5))
        ax.set_ylim(-0.6, len(rows) - 0.4)
        heading(ax, title)
        tidy(ax)
    return drawn


STUDY = Study(
    name="fitted-planes",
    title="fitted planes, the default, in the paper's settings",
    shows="nothing: the paper's plane has no constant",
    files=(ACS_FILE, *TEXT_FILES, FACE_FILE),
    full=100,
    quick=4,
    run=run,
    draw=draw,
    minutes=12,
)
