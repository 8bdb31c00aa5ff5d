"""LIME on words for several models at once: the texts that LIME tries depend on a review's number of words only, and each model is asked about them.

The lime package writes 5,000 texts for each review and model and takes a third of a second for it. This draws the same ones with the same random
numbers, keeps them for the next review of the same length, and solves one regression for all models; `tests/unit/test_words.py` compares the
coefficients with `evaluation.lime`.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

SAMPLES, WIDTH, PENALTY = 5000, 25.0, 1.0  # as in the package


def explain_by_lime(models, point, seed=0):
    """{name: one coefficient a column}; models take 0/1 rows."""
    present = np.flatnonzero(point)
    tried, weights = try_texts(len(present), seed)
    rows = np.zeros((SAMPLES, len(point)))
    rows[:, present] = tried
    answers = np.stack([ask(rows) for ask in models.values()], axis=1)
    found = np.zeros((len(models), len(point)))
    found[:, present] = regress(tried, answers, weights).T
    return dict(zip(models, found, strict=True))


@lru_cache(maxsize=64)
def try_texts(count, seed):
    """(which words each text keeps, weights of the texts): the first one keeps all, others lose a random number of random words."""
    rng = np.random.RandomState(seed)
    kept = np.ones((SAMPLES, count))
    for row, size in zip(kept[1:], rng.randint(1, count + 1, SAMPLES - 1), strict=True):
        row[rng.choice(range(count), size, replace=False)] = 0
    distances = 100 * (1 - np.sqrt(kept.mean(axis=1)))  # cosine distance of a 0/1 text from all ones, and 1 where nothing is left
    return kept, np.sqrt(np.exp(-(distances**2) / WIDTH**2))


def regress(rows, answers, weights):
    """Coefficients of weighted ridge regressions with an intercept that is not penalised."""
    share = weights / weights.sum()
    centred, wanted = rows - share @ rows, answers - share @ answers
    normal = (centred * weights[:, None]).T @ centred + PENALTY * np.eye(rows.shape[1])
    return np.linalg.solve(normal, (centred * weights[:, None]).T @ wanted)
