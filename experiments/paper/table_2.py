"""Table 2: Text, the five strongest words of private explanations beside LIME's and MIM's (Algorithm 1, ε = 0.1, δ = 1e-6, 1,000 reviews).

The paper has 8.8 M reviews and this has 50,000, so one line has the noise that the printed formula gives 8.8 M rows, and one the μ that exact
accounting has there. What the paper does not state is swept: the scale of the columns, the model behind LIME, and how MIM is read. LIME and the
library take seconds for a review and explain fewer of them. Standard errors are over reviews, each with its seeds averaged.
"""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.noise import SeededNoise
from dpexplain.plots.style import SERIES, tidy
from dpexplain.privacy import gdp
from dpexplain.progress import with_bar
from experiments.paper import _lanes, _training
from experiments.paper._exact import Problem, sums
from experiments.paper._streams import OnPapersPlane, with_error
from experiments.paper._study import SEED, TEXT_FILES, Study, figure, legend_above
from experiments.paper.table_3 import SCALES, Nearer
from experiments.text import count_shared

EPSILON, DELTA, STEPS = 0.1, 1e-6, 300
LIMES = ("LIME", "LIME, hard labels", "LIME, forest", "LIME, network")
MIMS = ("MIM", "MIM, signed")
BASIS = ("exact optimum", *LIMES, *MIMS)
FEWEST, PART = 30, 5  # LIME and the library explain a fifth of the reviews, and at least so many
EXAMPLES = 4
PRINTED, AT_ITS_SIZE = "paper, ε = 0.1", "paper, noise of 8.8 M reviews"


def mechanisms(factor):
    exact = gdp.epsilon(gdp.mu(EPSILON, DELTA) * factor, DELTA)
    return {
        "ours, ε = 0.1": dpx.Basic(EPSILON, DELTA, plane="paper"),
        "ours, ε = 1": dpx.Basic(1.0, DELTA, plane="paper"),
        f"ours, μ of 8.8 M reviews (ε = {exact:.3g})": dpx.Basic(exact, DELTA, plane="paper"),
    }


def run(inputs, queries):
    reviews, parts = inputs.reviews, inputs.parts("table-2", queries)
    data = dpx.PrivateData(reviews.texts, reviews.domain, labels=reviews.truth)
    chosen = reviews.draw_positions(queries)
    few = chosen[: max(FEWEST, queries // PART)]
    found, third = {}, STUDY.minutes / 3
    for scale in SCALES["Text"]:
        found |= parts.get(
            f"printed-{scale:g}",
            lambda s=scale: run_paper_algorithm(data, reviews, chosen, s, inputs.seeds),
            third / len(SCALES["Text"]),
        )
    texts = [reviews.texts[i] for i in few]
    found |= parts.get("ours", lambda: explain_privately(data, texts, mechanisms(reviews.factor), inputs.own_seeds), third)
    found |= parts.get("compared", lambda: explain_without_privacy(data, reviews, chosen, few), third)
    own = [np.flatnonzero(reviews.domain.encode_query(reviews.texts[i])) for i in chosen]
    values = {name: one["values"] for name, one in found.items()}
    rows = [line(name, each, {basis: values[basis] for basis in BASIS}, own) for name, each in values.items()]
    said = examples(reviews, chosen, values, own)
    return {"rows": rows, "notes": [f"{name}: {words}" for each in said for name, words in each.items()]}


def run_paper_algorithm(data, reviews, chosen, scale, seeds):
    """{name: values (texts, seeds, words)} of Algorithm 1 and the optimum, columns in [0, s]: noise for these rows, and for the paper's number."""
    points = reviews.domain.encode_queries([reviews.texts[i] for i in chosen])
    sizes = {PRINTED: data.size, AT_ITS_SIZE: reviews.paper_rows}
    basic = {
        name + scale_text(scale): _lanes.Basic(size, points.shape[1], EPSILON, DELTA, STEPS, seeds)
        for name, size in sizes.items()
    }
    normal = _lanes.Normal(seeds, STEPS, points.shape[1], SEED)
    found = {name: [] for name in (*basic, BASIS[0] + scale_text(scale))}
    for point, (A, b) in zip(points, with_bar(sums(data, points, Nearer(scale)), "printed", len(points)), strict=True):
        problem = Problem.of(point, A * scale**2, b * scale)
        found[BASIS[0] + scale_text(scale)].append(problem.best[None])
        noise = normal.draw()
        for name, one in basic.items():
            found[name].append(one.answer(problem.point, problem.A, problem.b, noise)[0])
    return {name: {"values": np.array(each)} for name, each in found.items()}


def scale_text(scale):
    return "" if scale == 1 else f", columns in [0, {scale:g}]"


def explain_privately(data, texts, chosen, seeds):
    """{private explanation: values (texts, seeds, words)}."""
    budget = dpx.Budget(1e7, DELTA)
    sources = {
        name: [dpx.Explainer(data, budget, one, noise=SeededNoise(SEED + k)) for k in range(seeds)]
        for name, one in chosen.items()
    }
    once = dpx.Budget(1.0, DELTA)
    sources["release, ε = 1 in total"] = [
        OnPapersPlane(dpx.release(data, once, noise=SeededNoise(SEED + k))) for k in range(seeds)
    ]
    evaluation.remember(data, most=1)
    found = {name: [] for name in sources}
    for text in with_bar(texts, "private"):
        for name, each in sources.items():
            found[name].append(np.array([source.explain(text).values for source in each]))
    return {name: {"values": np.array(each)} for name, each in found.items()}


def explain_without_privacy(data, reviews, chosen, few):
    """{what is not private: values (texts, 1, words)}; LIME explains the few, by several models."""
    found, models = {name: [] for name in BASIS[1:]}, models_for_lime(reviews)
    for i in with_bar(few, "LIME"):
        point = reviews.domain.encode_query(reviews.texts[i])
        for name, ask in models.items():
            found[name].append([evaluation.lime(data, point, model=ask, seed=SEED)])
    for i in with_bar(chosen, "MIM"):
        point = reviews.domain.encode_query(reviews.texts[i])
        found["MIM"].append([evaluation.mim(data, point, label=reviews.truth[i], others="ignored")])
        found["MIM, signed"].append([evaluation.mim(data, point, others="against")])
    return {name: {"values": np.array(each)} for name, each in found.items()}


def models_for_lime(reviews):
    """LIME needs a model to ask, and the paper's black box is the reviews' own labels: a logistic regression on the words (its probability, or its
    answers), a forest and a network."""
    rows = reviews.domain.encode(reviews.texts)
    logistic = LogisticRegression(C=0.1, max_iter=200).fit(rows, reviews.truth)
    forest = RandomForestClassifier(60, max_depth=20, random_state=SEED).fit(rows.toarray(), reviews.truth)
    network = _training.train(rows, reviews.truth, None)
    asked = (
        lambda points: 2 * logistic.predict_proba(points)[:, 1] - 1,
        lambda points: logistic.predict(points),
        lambda points: 2 * forest.predict_proba(points)[:, 1] - 1,
        network,
    )
    return dict(zip(LIMES, asked, strict=True))


def line(name, values, bases, own):
    """A row of the table: how many words one explanation shares with each of the others."""
    row = {"explanation": name}
    for basis, others in bases.items():
        row |= with_error(f"shared with {basis}", agreement(values, others[:, 0], own), 3)
    return row | {"seeds": values.shape[1], "reviews": len(values)}


def agreement(first, second, own):
    """Of the five strongest words that a review has, how many are shared: the mean over seeds, for each review that both explain."""
    both = zip(first, second, own, strict=False)
    return [np.mean([count_shared(one, b, words) for one in a]) for a, b, words in both if len(words) >= 5]


def examples(reviews, chosen, values, own):
    """The strongest words of a few reviews, with ↑ or ↓; the reviews themselves belong to their authors."""
    names = reviews.domain.names
    said = []
    for i in range(min(EXAMPLES, len(chosen))):
        first = {name: each[i][0] for name, each in values.items()}  # the first seed's
        strongest = {name: own[i][np.argsort(-np.abs(each[own[i]]))[:5]] for name, each in first.items()}
        words = {
            name: " ".join(f"{names[j]}{'↑' if first[name][j] > 0 else '↓'}" for j in top) for name, top in strongest.items()
        }
        said.append({"a review whose label is": f"{reviews.truth[chosen[i]]:+g}"} | words)
    return said


def draw(found):
    """Left: what was measured at columns in [0, 1]. Right: the optimum and the printed noise over the scale of the columns, by the model behind LIME."""
    drawn, axes = figure(2, width=6.2, height=4.2)
    bars(
        axes[0, 0],
        [row for row in found["rows"] if row["explanation"] not in BASIS[1:] and "columns" not in row["explanation"]][::-1],
    )
    plot_over_scales(axes[0, 1], found["rows"])
    return drawn


def bars(ax, rows):
    for k, basis in enumerate(("LIME", *MIMS)):
        shares, errors = ([row[f"{sign}shared with {basis}"] for row in rows] for sign in ("", "± "))
        ax.barh(np.arange(len(rows)) + (1 - k) * 0.27, shares, 0.25, xerr=errors, color=SERIES[k], label=f"with {basis}")
    for value, k in ((3.9, 0), (2.6, 1)):
        ax.axvline(value, color=SERIES[k], linestyle=":", label=f"paper, {('LIME', 'MIM')[k]}")
    ax.set_yticks(np.arange(len(rows)), [row["explanation"] for row in rows])
    ax.set_xlabel("shared of the five strongest words of a review")
    legend_above(ax, 3)
    tidy(ax)


def plot_over_scales(ax, rows):
    told = {row["explanation"]: row for row in rows}
    for k, basis in enumerate((*LIMES, *MIMS)):
        for start, style in ((BASIS[0], "-"), (AT_ITS_SIZE, "--")):
            some = [(scale, told[start + scale_text(scale)]) for scale in SCALES["Text"]]
            shares, errors = ([row[f"{sign}shared with {basis}"] for _, row in some] for sign in ("", "± "))
            label = f"with {basis}" if style == "-" else None
            ax.errorbar(
                [s for s, _ in some], shares, errors, color=SERIES[k], linestyle=style, marker="o", capsize=2, label=label
            )
    ax.axhline(3.9, color=SERIES[0], linestyle=":")
    ax.axhline(2.6, color=SERIES[len(LIMES)], linestyle=":")
    ax.set(xscale="log", xlabel="s, columns in [0, s]", ylabel="shared words (dashed: printed noise of 8.8 M reviews)")
    legend_above(ax, 3)
    tidy(ax)


STUDY = Study(
    name="table-2",
    title="Text: which words are strongest, beside LIME and MIM",
    shows="at ε = 0.1 a query 3.9 of 5 words are shared with LIME and 2.6 with MIM",
    files=TEXT_FILES,
    full=1000,
    quick=10,
    run=run,
    draw=draw,
    minutes=33,
)
