"""Table 2: Text, the five strongest words of private explanations beside LIME's and MIM's (Algorithm 1, ε = 0.1, δ = 1e-6, 1,000 reviews).

The paper has 8.8 M reviews and this has 50,000, so one line has the noise that the printed formula gives 8.8 M rows, and one the μ that exact
accounting has there. What the paper does not state is swept: the scale of the columns, the model behind LIME, and how MIM is read. The library
explains every tenth review. Standard errors are over reviews, and of releases over seeds too: answers of one release share a draw of noise.
"""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.noise import SeededNoise
from dpexplain.plots.style import SERIES, tidy
from dpexplain.progress import with_bar
from experiments.paper import _printed_texts, _training
from experiments.paper._lime import explain_by_lime
from experiments.paper._streams import with_both_errors, with_error
from experiments.paper._study import SEED, TEXT_FILES, Study, figure, legend_above, plain_numbers
from experiments.text import count_shared

DELTA = 1e-6
LIMES = ("LIME", "LIME, hard labels", "LIME, forest", "LIME, network")
MIMS = ("MIM", "MIM, signed")
COLOURS = dict(zip((*LIMES, *MIMS), SERIES, strict=False))
BASIS = ("exact optimum", *LIMES, *MIMS)
REPORTED = {"LIME": 3.9, "MIM": 2.6}
EXAMPLES, TREES, QUICK_TREES = 4, 60, 10
WORK = {"printed": 0.86, "release": 0.07, "LIME": 0.07}  # shares of the time
PRINTED, AT_ITS_SIZE, FITTED = "paper, ε = 0.1", "paper, noise of 8.8 M reviews", "fitted plane"


def run(inputs, queries):
    reviews, parts = inputs.reviews, inputs.parts("table-2", queries)
    chosen = reviews.draw_positions(queries)
    printed = _printed_texts.measure(inputs, queries, STUDY.minutes * WORK["printed"], counted=False)
    values = {name: (printed[key]["values"], every) for name, (key, every) in explanations(reviews.factor).items()}
    texts = [reviews.texts[i] for i in chosen[:: _printed_texts.OURS_EVERY]]
    paid = STUDY.minutes * WORK["release"]
    release = parts.get("release", lambda: explain_by_releases(inputs.private_reviews, texts, inputs.seeds), paid)
    trees, tried = QUICK_TREES if inputs.quick else TREES, STUDY.minutes * WORK["LIME"]
    lime = parts.get("lime", lambda: explain_by_limes(reviews, chosen, trees), tried)
    values |= {name: (one["values"], _printed_texts.OURS_EVERY) for name, one in release.items()}
    values |= {name: (one["values"], 1) for name, one in lime.items()}
    own = [np.flatnonzero(reviews.domain.encode_query(reviews.texts[i])) for i in chosen]
    bases = {basis: values[basis][0] for basis in BASIS}
    rows = [
        line(name, each[0], {b: one[:: each[1]] for b, one in bases.items()}, own[:: each[1]]) for name, each in values.items()
    ]
    said = examples(reviews, chosen, {name: each for name, (each, _) in values.items()}, own)
    return {"rows": rows, "notes": [f"{name}: {words}" for each in said for name, words in each.items()]}


def explanations(factor):
    """{name here: (its name among the answers that Table 3 measures too, it explains every how-manieth review)}."""
    found, (_, epsilon) = {}, _printed_texts.EPSILONS
    for scale in _printed_texts.SCALES:
        found[PRINTED + scale_text(scale)] = (f"{scale:g}/{epsilon}/{_printed_texts.PRINTED}", 1)
        found[AT_ITS_SIZE + scale_text(scale)] = (f"{scale:g}/{epsilon}/{_printed_texts.AT_ITS_SIZE}", 1)
        found[BASIS[0] + scale_text(scale)] = (f"{scale:g}/0/{_printed_texts.OPTIMUM}", 1)
    for (budget, kind), asked in _printed_texts.our_budgets(factor).items():
        name = f"ours, ε = {asked:g}" if kind == _printed_texts.OURS else f"ours, μ of 8.8 M reviews (ε = {asked:.3g})"
        found |= {name: (f"1/{budget}/{kind}", _printed_texts.OURS_EVERY)} if budget >= epsilon else {}
    return found | {name: (f"1/0/{name}", 1) for name in MIMS}


def scale_text(scale):
    return "" if scale == 1 else f", columns in [0, {scale:g}]"


def explain_by_releases(data, texts, seeds):
    """{name: values (texts, seeds, words)} of one release a seed, by the paper's plane and by the default, the fitted one; the latter also paid for
    and without noise."""
    once = dpx.Budget(1.0, DELTA)
    made = [dpx.release(data, once, noise=SeededNoise(SEED + k)) for k in range(seeds)]
    paid = dpx.Explainer(data, _printed_texts.BUDGET, dpx.Basic(1.0, DELTA), noise=SeededNoise(SEED))
    asked = {
        "release, ε = 1 in total": lambda text: [one.explain(text, plane="paper").values for one in made],
        f"{FITTED}, release, ε = 1 in total": lambda text: [one.explain(text, plane="fitted").values for one in made],
        f"{FITTED}, ε = 1": lambda text: [paid.explain(text).values],
        f"{FITTED}, exact": lambda text: [evaluation.optimum(data, text)],
    }
    found = {name: [] for name in asked}
    for text in with_bar(texts, "releases"):
        for name, ask in asked.items():
            found[name].append(ask(text))
    return {name: {"values": np.array(each)} for name, each in found.items()}


def explain_by_limes(reviews, chosen, trees=TREES):
    """{LIME by a model: values (texts, 1, words)}."""
    found, models = {name: [] for name in LIMES}, models_for_lime(reviews, trees)
    for i in with_bar(chosen, "LIME"):
        for name, values in explain_by_lime(models, reviews.domain.encode_query(reviews.texts[i]), SEED).items():
            found[name].append([values])
    return {name: {"values": np.array(each)} for name, each in found.items()}


def models_for_lime(reviews, trees=TREES):
    """LIME needs a model to ask, and the paper's black box is the reviews' own labels: a logistic regression on the words (its probability, or its
    answers), a forest and a network."""
    rows = reviews.domain.encode(reviews.texts)
    logistic = LogisticRegression(C=0.1, max_iter=200).fit(rows, reviews.truth)
    forest = RandomForestClassifier(trees, max_depth=20, random_state=SEED).fit(rows.toarray(), reviews.truth)
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
        found, title = agreement(values, others[:, 0], own), f"shared with {basis}"
        row |= with_both_errors(title, found, 3) if "release" in name else with_error(title, found.mean(axis=0), 3)
    return row | {"seeds": values.shape[1], "reviews": len(values)}


def agreement(first, second, own):
    """Of the five strongest words that a review has, how many are shared: (seeds, reviews)."""
    both = zip(first, second, own, strict=True)
    return np.array([[count_shared(one, b, words) for one in a] for a, b, words in both if len(words) >= 5]).T


def examples(reviews, chosen, values, own):
    """The strongest words of a few reviews, with ↑ or ↓; the reviews themselves belong to their authors."""
    names = reviews.domain.names
    said = []
    for i in range(min(EXAMPLES, len(chosen))):
        first = {name: each[i][0] for name, each in values.items() if len(each) == len(chosen)}  # the first seed's
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
        ax.barh(np.arange(len(rows)) + (1 - k) * 0.27, shares, 0.25, xerr=errors, color=COLOURS[basis], label=f"with {basis}")
    for basis, value in REPORTED.items():
        ax.axvline(value, color=COLOURS[basis], linestyle=":", label=f"reported, {basis}")
    ax.set_yticks(np.arange(len(rows)), [row["explanation"] for row in rows])
    ax.set_xlabel("shared of the five strongest words of a review")
    legend_above(ax, 3)
    tidy(ax)


def plot_over_scales(ax, rows):
    told = {row["explanation"]: row for row in rows}
    for basis, colour in COLOURS.items():
        for start, style in ((BASIS[0], "-"), (AT_ITS_SIZE, "--")):
            some = [(scale, told[start + scale_text(scale)]) for scale in _printed_texts.SCALES]
            shares, errors = ([row[f"{sign}shared with {basis}"] for _, row in some] for sign in ("", "± "))
            label = f"with {basis}" if style == "-" else None
            ax.errorbar([s for s, _ in some], shares, errors, color=colour, linestyle=style, marker="o", capsize=2, label=label)
    for basis, value in REPORTED.items():
        ax.axhline(value, color=COLOURS[basis], linestyle=":")
    ax.set(xscale="log", xlabel="s, columns in [0, s]", ylabel="shared words (dashed: with noise)")
    plain_numbers(ax.xaxis)
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
    minutes=20,
)
