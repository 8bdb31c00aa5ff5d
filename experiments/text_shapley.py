"""SHAP over words from a release of texts: how far it is from SHAP over true texts, and how often its error bars hold.

python -m experiments.text_shapley [--draws 3] [--data DIR] [--coverage]

`release.shapley` compares a text with background texts that have the released frequencies and pairs of words. Beside it: as many other true texts,
independent words at the released frequencies, and contributions of the release's planes. With --data also for movie reviews. With
--coverage only how many values are within two errors, on generated texts of other seeds.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.noise import SeededNoise
from experiments.datasets import data_folder
from experiments.text import reviews

TEXTS, WORDS, TOPICS, STRENGTH = 20_000, 100, 5, 1.5
TRUTH, QUERIES, TRAINED = 2_000, 8, 10_000
COMPARED = 6_000
# words, how strong topics are, how frequent words
HELD_OUT = (
    (40, 1.0, 1.0),
    (80, 3.0, 0.0),
    (120, 0.5, 0.0),
    (150, 2.0, -1.0),
    (300, 1.5, -1.5),
)
BUDGET = dpx.Budget(1.0, 1e-6)


@dataclass(frozen=True)
class Subject:
    """Texts as the words they have, and a black box on such rows: 2p - 1."""

    name: str
    domain: dpx.TextDomain
    texts: list[str]
    encoded: np.ndarray
    fitted: Any

    def answers(self, encoded):
        return 2 * self.fitted.predict_proba(encoded)[:, 1] - 1

    def of_texts(self, texts):
        return self.answers(self.domain.encode(texts).toarray())

    def row_values(self, query, rows):
        """SHAP values of the black box against each of these texts, words as players; exact for forests."""
        model = self.fitted if isinstance(self.fitted, RandomForestClassifier) else self.answers
        return evaluation.row_shapley(model, self.domain, query, rows)

    def exact(self, query, rows):
        return self.row_values(query, rows).mean(axis=0)


def make_texts(seed=0, words=WORDS, strength=STRENGTH, often=0.5):
    """Made-up texts whose words go together by topic, and labels with interactions of words."""
    rng = np.random.default_rng(seed)
    vocabulary = [f"word{j}" for j in range(words)]
    topics = rng.standard_normal((TEXTS, TOPICS))
    scores = topics @ rng.standard_normal((TOPICS, words)) * strength / np.sqrt(TOPICS) + rng.uniform(-4, often, words)
    encoded = (rng.random((TEXTS, words)) < 1 / (1 + np.exp(-scores))).astype(np.float64)
    encoded[~encoded.any(axis=1), 0] = 1
    half = words // 2
    pairs = encoded[:, :half] * encoded[:, half : 2 * half]  # as "not" and "good"
    score = encoded @ rng.standard_normal(words) + 3 * pairs @ rng.standard_normal(half)
    labels = np.where(score + rng.standard_normal(TEXTS) > np.median(score), 1, -1)
    texts = [" ".join(vocabulary[j] for j in np.flatnonzero(row)) for row in encoded]
    return dpx.TextDomain(vocabulary), texts, encoded, labels


def movie_reviews(folder, size=200):
    """20,000 reviews in the most frequent public words."""
    domain, texts, labels = reviews(folder)
    chosen = np.random.default_rng(0).choice(len(texts), TEXTS, replace=False)
    domain, texts = dpx.TextDomain(domain.names[:size]), [texts[i] for i in chosen]
    encoded = domain.encode(texts)
    return domain, texts, np.asarray(encoded.toarray() if hasattr(encoded, "toarray") else encoded, np.float64), labels[chosen]


def subjects(name, domain, texts, encoded, labels):
    models = {
        "logistic regression": LogisticRegression(C=0.1, max_iter=300),
        "forest": RandomForestClassifier(20, max_depth=10, random_state=0),
    }
    for kind, model in models.items():
        yield Subject(f"{name}, {kind}", domain, texts, encoded, model.fit(encoded[:TRAINED], labels[:TRAINED]))


def independent(frequencies, count, seed):
    """Texts whose words are drawn independently of each other."""
    return (np.random.default_rng(seed).random((count, len(frequencies))) < np.clip(frequencies, 0, 1)).astype(np.float64)


def scores(found, truth, present):
    """Relative error and cosine over all words, and how many of the five strongest words of the text itself are shared."""
    size, own = np.linalg.norm(truth), np.flatnonzero(present)
    top = [set(own[np.argsort(-np.abs(values[own]))[:5]]) for values in (found, truth)]
    return np.linalg.norm(found - truth) / size, found @ truth / (np.linalg.norm(found) * size), len(top[0] & top[1])


def measure(subject, draws):
    """{background: scores, mean over texts and draws of the noise}."""
    encoded, first = subject.encoded, TRAINED
    asked = [i for i in range(len(encoded) - 200, len(encoded)) if encoded[i].sum() >= 5][:QUERIES]
    queries, points = [subject.texts[i] for i in asked], encoded[asked]
    truths = [subject.exact(point, encoded[first : first + TRUTH]) for point in points]
    found = {}

    def add(name, answers):
        found.setdefault(name, []).extend(scores(*one) for one in zip(answers, truths, points, strict=True))

    def values_over(rows):
        return [subject.exact(point, rows) for point in points]

    add("other true texts", values_over(encoded[first + TRUTH : first + 2 * TRUTH]))
    for draw in range(draws):
        data = dpx.PrivateData(subject.texts, subject.domain, labels=subject.answers(encoded))
        release = dpx.release(data, BUDGET, noise=SeededNoise(draw))
        add("release.shapley", [release.shapley(text, model=subject.of_texts).values[:-1] for text in queries])
        add("independent words, released frequencies", values_over(independent(release.average, TRUTH, 2 + draw)))
        add("contributions of the release's planes", [release.explain(text).contributions().values for text in queries])
    return {name: np.mean(all_, axis=0) for name, all_ in found.items()}


def coverage(subject, epsilon, seed, texts=5):
    """(share of values within two errors of SHAP over true texts, whose own error is counted too; relative error)."""
    encoded = subject.encoded
    asked = [i for i in range(len(encoded) - 200, len(encoded)) if encoded[i].sum() >= 5][:texts]
    data = dpx.PrivateData(subject.texts, subject.domain, labels=subject.answers(encoded))
    release = dpx.release(data, dpx.Budget(epsilon, 1e-6), noise=SeededNoise(seed))
    within, errors = [], []
    for i in asked:
        each = subject.row_values(encoded[i], encoded[:COMPARED])
        truth, found = each.mean(axis=0), release.shapley(subject.texts[i], model=subject.of_texts)
        error = np.hypot(found.error[:-1], each.std(axis=0) / np.sqrt(COMPARED))
        within.append(np.abs(found.values[:-1] - truth) <= 2 * error + 1e-9)
        errors.append(np.linalg.norm(found.values[:-1] - truth) / np.linalg.norm(truth))
    return np.mean(within), np.mean(errors)


def coverage_table(console):
    table = Table("texts", "model", "ε = 1", "relative error", "ε = 0.1", "relative error", title="values within two errors")
    for seed, (words, strength, often) in enumerate(HELD_OUT, start=21):
        for subject in subjects(f"{words} words, topics {strength:g}", *make_texts(seed, words, strength, often)):
            found = [coverage(subject, epsilon, seed) for epsilon in (1.0, 0.1)]
            table.add_row(
                *subject.name.rsplit(", ", 1), *(f"{x:.1%}" if i % 2 == 0 else f"{x:.3f}" for f in found for i, x in enumerate(f))
            )
    console.print(table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--coverage", action="store_true")
    options, console = parser.parse_args(), Console(width=140)
    if options.coverage:
        coverage_table(console)
        return
    sources = {"generated": make_texts} | ({"reviews": lambda: movie_reviews(data_folder(options.data))} if options.data else {})
    for name, source in sources.items():
        for subject in subjects(name, *source()):
            title = f"{subject.name}: against SHAP over {TRUTH:,} true texts, {QUERIES} texts, total ε = {BUDGET.epsilon:g}"
            table = Table("background", "relative error", "cosine", "top 5 words shared", title=title)
            for row, (error, cosine, top) in measure(subject, options.draws).items():
                table.add_row(row, f"{error:.3f}", f"{cosine:.3f}", f"{top:.1f}")
            console.print(table)


if __name__ == "__main__":
    main()
