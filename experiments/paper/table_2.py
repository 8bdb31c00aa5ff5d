"""Table 2: Text, the five strongest words of private explanations beside LIME's and MIM's (Algorithm 1, ε = 0.1, δ = 1e-6, 1,000 reviews).

The paper has 8.8 M reviews and this has 50,000, so one line has the noise that the printed formula gives 8.8 M rows, and one the μ that exact
accounting has there. Standard errors are over reviews, each with its seeds averaged.
"""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.noise import SeededNoise
from dpexplain.plots.style import SERIES, tidy
from dpexplain.privacy import gdp
from dpexplain.progress import with_bar
from experiments.paper import _lanes
from experiments.paper._exact import problems
from experiments.paper._streams import OnPapersPlane, with_error
from experiments.paper._study import SEED, TEXT_FILES, Study, figure, legend_above
from experiments.text import shared

EPSILON, DELTA, STEPS = 0.1, 1e-6, 300
BASIS = ("exact optimum", "LIME", "MIM", "MIM, signed")
LIME_EVERY = 2  # LIME is slow
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
    reviews = inputs.reviews
    data = dpx.PrivateData(reviews.texts, reviews.domain, labels=reviews.truth)
    chosen = reviews.drawn(queries)
    found = printed(data, reviews, chosen, inputs.seeds)
    found |= answered(data, [reviews.texts[i] for i in chosen], mechanisms(reviews.factor), inputs.own_seeds)
    found |= compared(data, reviews, chosen)
    own = [np.flatnonzero(reviews.domain.encode_query(reviews.texts[i])) for i in chosen]
    rows = [line(name, each, {basis: found[basis] for basis in BASIS}, own) for name, each in found.items()]
    said = examples(reviews, chosen, found, own)
    return {"rows": rows, "notes": [f"{name}: {words}" for each in said for name, words in each.items()]}


def printed(data, reviews, chosen, seeds):
    """{name: (seeds, words) for each text} of Algorithm 1, with the noise that its formula gives these rows, and the paper's number of them."""
    points = reviews.domain.encode_queries([reviews.texts[i] for i in chosen])
    sizes = {PRINTED: data.size, AT_ITS_SIZE: reviews.paper_rows}
    basic = {
        name: _lanes.Basic(size, points.shape[1], EPSILON, DELTA, STEPS, seeds, [SEED, k])
        for k, (name, size) in enumerate(sizes.items())
    }
    found = {name: [] for name in sizes}
    for problem in with_bar(problems(data, points), "printed", len(points)):
        for name, one in basic.items():
            found[name].append(one.answer(problem.point, problem.A, problem.b)[0])
    return found


def answered(data, texts, chosen, seeds):
    """{private explanation: (seeds, words) for each text}."""
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
    return found


def compared(data, reviews, chosen):
    """{what is not private: values for each text}."""
    found, ask = {name: [] for name in BASIS}, asked_by_lime(reviews)
    for number, i in enumerate(with_bar(chosen, "not private")):
        point = reviews.domain.encode_query(reviews.texts[i])
        found["exact optimum"].append(evaluation.optimum(data, point, plane="paper"))
        found["LIME"].append(evaluation.lime(data, point, model=ask, seed=SEED) if number % LIME_EVERY == 0 else None)
        found["MIM"].append(evaluation.mim(data, point, label=reviews.truth[i], others="ignored"))
        found["MIM, signed"].append(evaluation.mim(data, point, others="against"))
    return found


def asked_by_lime(reviews):
    """LIME needs a model to ask: a logistic regression on the words, as soft labels."""
    rows = reviews.domain.encode(reviews.texts)
    model = LogisticRegression(C=0.1, max_iter=200).fit(rows, reviews.truth)
    return lambda points: 2 * model.predict_proba(points)[:, 1] - 1


def line(name, values, bases, own):
    """A row of the table: how many words one explanation shares with each of the others."""
    row = {"explanation": name}
    for basis, others in bases.items():
        counts = agreement(values, others, own)
        row |= with_error(f"shared with {basis}", counts, 3) if counts else {f"shared with {basis}": ""}
    return row | {"seeds": len(np.atleast_2d(values[0])), "reviews": len(values)}


def agreement(first, second, own):
    """Of the five strongest words that a review has, how many are shared: the mean over seeds, for each review that both explain."""
    both = [(a, b, words) for a, b, words in zip(first, second, own, strict=True) if a is not None and b is not None]
    return [np.mean([shared(one, b, words) for one in np.atleast_2d(a)]) for a, b, words in both if len(words) >= 5]


def examples(reviews, chosen, values, own):
    """The strongest words of a few reviews, with ↑ or ↓; the reviews themselves belong to their authors."""
    names = reviews.domain.names
    said = []
    for i in range(0, len(chosen), LIME_EVERY)[:EXAMPLES]:
        first = {name: np.atleast_2d(each[i])[0] for name, each in values.items()}  # the first seed's
        strongest = {name: own[i][np.argsort(-np.abs(each[own[i]]))[:5]] for name, each in first.items()}
        words = {
            name: " ".join(f"{names[j]}{'↑' if first[name][j] > 0 else '↓'}" for j in top) for name, top in strongest.items()
        }
        said.append({"a review whose label is": f"{reviews.truth[chosen[i]]:+g}"} | words)
    return said


def draw(found):
    drawn, axes = figure(1, width=8.5, height=4.2)
    ax, rows = axes[0, 0], [row for row in found["rows"] if row["explanation"] not in BASIS[1:]][::-1]
    for k, basis in enumerate(("LIME", "MIM", "MIM, signed")):
        shares = [row[f"shared with {basis}"] or 0 for row in rows]
        errors = [row.get(f"± shared with {basis}", 0) for row in rows]
        ax.barh(np.arange(len(rows)) + (1 - k) * 0.27, shares, 0.25, xerr=errors, color=SERIES[k], label=f"with {basis}")
    for value, k in ((3.9, 0), (2.6, 1)):
        ax.axvline(value, color=SERIES[k], linestyle=":", label=f"paper, {('LIME', 'MIM')[k]}")
    ax.set_yticks(np.arange(len(rows)), [row["explanation"] for row in rows])
    ax.set_xlabel("shared of the five strongest words of a review")
    legend_above(ax, 5)
    tidy(ax)
    return drawn


STUDY = Study(
    name="table-2",
    title="Text: which words are strongest, beside LIME and MIM",
    shows="at ε = 0.1 a query 3.9 of 5 words are shared with LIME and 2.6 with MIM",
    files=TEXT_FILES,
    full=1000,
    quick=10,
    run=run,
    draw=draw,
)
