"""Movie reviews in 500 words: private explanations beside LIME and MIM, as in the paper's Text experiment.

python -m experiments.text --data DIR [--queries 1000] [--lime 200] [--output out]

The vocabulary comes from 50,000 public reviews without labels; the 50,000 labelled ones are private. Two black boxes: the true labels, as in
the paper, and a logistic regression on the words. LIME needs a model to ask, so it explains the regression in both cases.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.linear_model import LogisticRegression

import dpexplain as dpx
from dpexplain import evaluation, plots
from dpexplain.noise import SeededNoise
from dpexplain.privacy import gdp, paper
from dpexplain.progress import with_bar
from experiments.datasets import arguments, data_folder

DELTA = 1e-6
RELEASES, BASICS = (1.0, 4.0, 8.0), (0.1, 1.0, 8.0, 34.0)
ALMOST_EXACT = 1000.0  # the ε of a release that coverage is measured against
PAPER_ROWS, PAPER_EPSILON = 8_765_568 + 50_000, 0.1
BASIS = ("exact optimum", "LIME", "MIM", "MIM, signed")


_READ = {}  # {vocabulary: {text: positions of its words}}


class RememberedTexts(dpx.TextDomain):
    """The same domain, which reads each text once: several studies register the same 50,000 reviews, under other labels."""

    def encode(self, rows):
        texts, known = list(rows), _READ.setdefault(self.vocabulary, {})
        unread = list(dict.fromkeys(text for text in texts if text not in known))
        if unread:
            found = super().encode(unread)
            known.update(zip(unread, np.split(found.indices, found.indptr[1:-1]), strict=True))
        positions = [known[text] for text in texts]
        starts = np.cumsum([0, *map(len, positions)])
        indices = np.concatenate([np.zeros(0, dtype=np.int64), *positions])
        return scipy.sparse.csr_array((np.ones(len(indices)), indices, starts), shape=(len(texts), self.width))


def reviews(folder, cache=None):
    """(public domain, private texts, ±1 labels). With a `cache` the vocabulary is made once."""
    frame = pd.read_parquet(folder / "imdb_reviews_50k.parquet")
    return vocabulary(folder, cache), frame.review.tolist(), np.where(frame.label == "pos", 1.0, -1.0)


def vocabulary(folder, cache):
    """The 500 words that most of the public reviews have."""
    stored = cache and cache / "words.txt"
    if stored is not None and stored.exists():
        return RememberedTexts(stored.read_text(encoding="utf-8").split())
    public = pd.read_parquet(folder / "imdb_reviews_unlabelled_50k.parquet").review
    domain = RememberedTexts.from_public_text(with_bar(public, "public vocabulary"), size=500)
    if stored is not None:
        stored.parent.mkdir(parents=True, exist_ok=True)
        stored.write_text("\n".join(domain.names), encoding="utf-8")
    return domain


def count_shared(first, second, allowed, k=5):
    """How many of the k strongest of the allowed words two explanations share."""
    tops = [set(allowed[np.argsort(-np.abs(values[allowed]), kind="stable")[:k]]) for values in (first, second)]
    return len(tops[0] & tops[1])


def explain_from_release(data, texts, epsilon, seed):
    return dpx.release(data, dpx.Budget(epsilon, DELTA), noise=SeededNoise(seed)).explain_many(texts)


def answers_of(data, texts, model, options):
    """{mechanism: values}, {baseline: values}, scores: everything about each review while its sums are at hand."""
    releases = {f"release, ε = {e:g} in total": explain_from_release(data, texts, e, options.seed) for e in RELEASES}
    reference = explain_from_release(data, texts, ALMOST_EXACT, 99).values
    noise = SeededNoise(options.seed)
    explainers = {
        f"Basic, ε = {e:g} a query": dpx.Explainer(data, dpx.Budget(1e5, DELTA), dpx.Basic(e, DELTA, plane="paper"), noise=noise)
        for e in BASICS
    }
    values = {name: list(many.values) for name, many in releases.items()} | {name: [] for name in explainers}
    found, scores = {name: [] for name in BASIS}, {name: [] for name in values}
    evaluation.remember(data, most=1)
    points = data.domain.encode_queries(texts)
    labels = model(points)
    for i, point in enumerate(track(points, description="reviews", transient=True)):
        found["MIM"].append(evaluation.mim(data, point, label=labels[i], others="ignored"))
        found["MIM, signed"].append(evaluation.mim(data, point, others="against"))
        moments = evaluation.local_moments(data, point, plane="paper")
        found["exact optimum"].append(evaluation.optimum(data, point, plane="paper"))
        for name, explainer in explainers.items():
            values[name].append(explainer.explain(texts[i]).values)
        for name, all_values in values.items():
            scores[name].append(evaluation.compare(all_values[i], found["exact optimum"][-1], moments, data.size))
    covered = {name: float((np.abs(many.values - reference) <= 2 * many.error).mean()) for name, many in releases.items()}
    return values, found, scores, covered


def lime_of(data, points, model, seed):
    return [evaluation.lime(data, point, model=model, seed=seed) for point in track(points, description="lime", transient=True)]


def table_of(title, data, values, found, scores, covered, points):
    table = Table(title=title, title_justify="left")
    columns = ("mechanism", "relative excess", "cosine", "within 2 errors", *(f"top 5 with {name}" for name in BASIS))
    for column in columns:
        table.add_column(column)
    own = [np.flatnonzero(point) for point in points]
    for name, each in {**values, **{basis: found[basis] for basis in BASIS}}.items():
        cells = [
            f"{np.mean([getattr(s, what) for s in scores[name]]):.4f}" if name in scores else ""
            for what in ("relative_excess", "cosine")
        ]
        overlaps = [mean_shared(each, found[basis], own) for basis in BASIS]
        table.add_row(name, *cells, f"{covered[name]:.3f}" if name in covered else "", *overlaps)
    return table


def mean_shared(first, second, own):
    """Mean number of shared words, of the five strongest that the review has, over reviews explained by both."""
    counts = [count_shared(a, b, words) for a, b, words in zip(first, second, own, strict=False) if len(words) >= 5]
    return f"{np.mean(counts):.2f}" if counts else ""


def equivalent_epsilons(rows):
    """Which ε has the paper's noise relative to the signal, which shrinks as 1/(rows · μ)."""
    claimed = gdp.mu(PAPER_EPSILON, DELTA)
    lines = [f"exact calibration of the paper's claim: ε = {gdp.epsilon(claimed * PAPER_ROWS / rows, DELTA):.1f}"]
    for steps in (200, 300):
        sigma = paper.basic_sigma(PAPER_ROWS, PAPER_EPSILON, DELTA, steps)
        spent = np.sqrt(steps - 1) / (sigma * PAPER_ROWS)
        lines.append(f"the noise that its formula adds, T = {steps}: ε = {gdp.epsilon(spent * PAPER_ROWS / rows, DELTA):.2f}")
    return lines


def picture(domain, texts, many, found, chosen, folder):
    """Example reviews with highlighted words, and the five strongest words of each method."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = []
    for i in chosen:
        text = texts[i].replace("<br />", " ")
        own = np.flatnonzero(domain.encode_query(text))
        methods = {"private": many, **{name: found[name] for name in ("LIME", "MIM", "MIM, signed")}}
        top = {name: own[np.argsort(-np.abs(values[i][own]))[:5]] for name, values in methods.items()}
        said = {name: ", ".join(domain.names[j] for j in words) for name, words in top.items()}
        kept = np.isin(np.arange(domain.width), top["private"])
        values, names = many[i][kept], [name for name, keep in zip(domain.names, kept, strict=True) if keep]
        marked = plots.highlighted_html(text, names, values, spans=[s for s in domain.spans(text) if s[2] in names])
        parts.append("".join([f"<tr><td>{marked}</td>", *(f"<td>{words}</td>" for words in said.values()), "</tr>"]))
        figure = plots.highlighted(text, names, values, title=f"LIME: {said['LIME']}")
        figure.savefig(folder / f"review-{i}.png", dpi=130)
    head = "<tr><th>review, the five strongest private words marked</th><th>private</th><th>LIME</th><th>MIM</th><th>MIM, signed</th></tr>"
    page = f"<!doctype html><meta charset='utf-8'><style>td{{vertical-align:top;padding:.5em}}</style><table>{head}{''.join(parts)}</table>"
    (folder / "reviews.html").write_text(page, encoding="utf-8")


def main():
    parser = arguments(__doc__.splitlines()[0])
    parser.set_defaults(queries=1000)
    parser.add_argument("--lime", type=int, default=200, help="how many of the reviews LIME explains; it is slow")
    parser.add_argument("--output", type=Path, default=Path("out/text"))
    parser.add_argument("--only", choices=("true labels", "classifier"))
    options = parser.parse_args()
    console = Console(width=180)
    domain, texts, truth = reviews(data_folder(options.data))
    rows = domain.encode(texts)
    classifier = LogisticRegression(C=0.1, max_iter=200).fit(rows, truth)
    console.print(f"logistic regression on the words: {classifier.score(rows, truth):.3f} of the true labels")
    console.print("The paper's noise-to-signal, at 50,000 reviews:", *equivalent_epsilons(len(texts)), sep="\n  ")

    def soft(points):
        return 2 * classifier.predict_proba(points)[:, 1] - 1

    chosen = np.random.default_rng(options.seed).choice(len(texts), options.queries, replace=False)
    queries = [texts[i] for i in chosen]
    points = domain.encode_queries(queries)
    lime = None
    for case, labels in (("true labels", truth), ("classifier", np.asarray(soft(rows)))):
        if options.only not in (None, case):
            continue
        data = dpx.PrivateData(texts, domain, labels=labels)
        own_labels = {point.tobytes(): label for point, label in zip(points, labels[chosen], strict=True)}
        values, found, scores, covered = answers_of(
            data, queries, lambda asked, known=own_labels: [known[point.tobytes()] for point in asked], options
        )
        lime = lime or lime_of(data, points[: options.lime], soft, options.seed)
        found["LIME"] = lime
        console.print(
            table_of(f"{case}, {options.queries} reviews (LIME: {options.lime})", data, values, found, scores, covered, points)
        )
        if case == "true labels":
            many = values[f"release, ε = {RELEASES[-1]:g} in total"]
            short = sorted(range(min(options.lime, len(queries))), key=lambda i: abs(len(queries[i]) - 450))[:5]
            picture(domain, queries, many, found, short, options.output)


if __name__ == "__main__":
    main()
