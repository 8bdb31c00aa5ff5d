"""Made-up tables of every shape: mixed columns from hidden factors, with labels that are not linear in them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

import dpexplain as dpx


@dataclass(frozen=True)
class Recipe:
    """What a table is made of. `strength` is how much the hidden factors say about each column; `labels` names a rule below."""

    rows: int
    epsilon: float
    labels: str
    numbers: int = 0
    categories: tuple[int, ...] = ()
    binaries: int = 0
    factors: int = 4
    strength: float = 0.7
    skewed: bool = False


FAMILY = {
    "numbers 10": Recipe(30_000, 1, "smooth", numbers=10, factors=2),
    "numbers 40": Recipe(60_000, 1, "sign", numbers=40, factors=5, strength=1),
    "numbers 120": Recipe(100_000, 1, "sign", numbers=120, factors=8),
    "binaries 15": Recipe(40_000, 0.3, "sign", binaries=15, factors=2, strength=1),
    "binaries 60": Recipe(50_000, 1, "interactions", binaries=60),
    "binaries 200": Recipe(120_000, 2, "sign", binaries=200, factors=10, strength=0.5),
    "binaries 400": Recipe(60_000, 4, "sign", binaries=400, factors=10, strength=0.5),
    "categories 30": Recipe(30_000, 1, "tree", categories=(5,) * 6, factors=3, strength=1),
    "categories 100": Recipe(80_000, 1, "sign", categories=(10,) * 10),
    "rare categories 90": Recipe(50_000, 1, "sign", categories=(30,) * 3, factors=3, strength=1),
    "mixed 21": Recipe(30_000, 0.1, "sign", numbers=3, categories=(4, 5), binaries=8, factors=2),
    "mixed 30": Recipe(50_000, 1, "interactions", numbers=4, categories=(5,) * 3, binaries=11),
    "mixed 30, probabilities": Recipe(150_000, 0.5, "probability", numbers=4, categories=(5,) * 3, binaries=11),
    "mixed 60": Recipe(300_000, 0.1, "tree", numbers=6, categories=(12, 8, 20), binaries=14, factors=3, strength=0.8),
    "mixed 60, probabilities": Recipe(
        40_000, 4, "probability", numbers=6, categories=(12, 8, 20), binaries=14, factors=3, strength=0.8
    ),
    "mixed 120": Recipe(50_000, 1, "interactions", numbers=20, categories=(6,) * 10, binaries=40),
    "mixed 120, many rows": Recipe(200_000, 4, "tree", numbers=20, categories=(6,) * 10, binaries=40, factors=6, strength=0.4),
    "mixed 300": Recipe(50_000, 1, "interactions", numbers=40, categories=(8,) * 20, binaries=100),
    "mixed 400": Recipe(300_000, 1, "sign", numbers=60, categories=(10, 40, 25, 25, 50), binaries=190, factors=6, strength=0.5),
    "independent 50": Recipe(50_000, 1, "sign", numbers=10, categories=(8,) * 3, binaries=16, factors=1, strength=0),
    "dependent 40": Recipe(100_000, 1, "sign", numbers=8, categories=(6,) * 3, binaries=14, factors=2, strength=3),
    "weak labels 40": Recipe(40_000, 1, "weak", numbers=8, categories=(6,) * 3, binaries=14, factors=3),
    "skewed numbers 40": Recipe(60_000, 1, "sign", numbers=20, categories=(10, 10), factors=3, skewed=True),
    "numbers 8, few rows": Recipe(8_000, 1, "interactions", numbers=8, factors=3, strength=1),
    "mixed 18, one factor": Recipe(25_000, 0.5, "tree", numbers=5, categories=(3, 4), binaries=6, factors=1, strength=1.5),
    "skewed mixed 26": Recipe(30_000, 1, "smooth", numbers=8, categories=(6, 8), binaries=4, factors=3, skewed=True),
    "categories 45, weak": Recipe(30_000, 1, "weak", categories=(4, 5, 6, 7, 8, 15), factors=4, strength=0.5),
    "dependent numbers 12": Recipe(30_000, 1, "probability", numbers=12, factors=2, strength=3),
    "binaries 24, factors": Recipe(20_000, 1, "interactions", binaries=24, factors=6, strength=1.2),
}


@dataclass(frozen=True)
class MadeUp:
    """A domain, encoded rows and labels."""

    domain: dpx.Domain
    encoded: np.ndarray = field(repr=False)
    labels: np.ndarray = field(repr=False)


def made_up(recipe: Recipe, seed: int = 0) -> MadeUp:
    rng = np.random.default_rng(seed)
    hidden = rng.standard_normal((recipe.rows, recipe.factors))

    def scores(columns):
        return hidden @ rng.standard_normal((recipe.factors, columns)) * recipe.strength + rng.standard_normal(
            (recipe.rows, columns)
        )

    features, blocks = [], []
    for j in range(recipe.numbers):
        features.append(dpx.Numeric(f"number{j}", 0, 1))
        blocks.append(
            _spike_and_tail(scores(1), j) if recipe.skewed else 1 / (1 + np.exp(-rng.uniform(0.5, 2) * scores(1) - rng.normal()))
        )
    for j, size in enumerate(recipe.categories):
        features.append(dpx.Categorical(f"category{j}", values=[f"v{k}" for k in range(size)]))
        bias = rng.standard_normal(size) * (2 if size >= 20 else 1)  # large codes have rare values
        block = np.eye(size)[(scores(size) + bias).argmax(axis=1)]
        if rng.random() < 0.25:
            block[rng.random(recipe.rows) < 0.05] = 0.0  # unknown values
        blocks.append(block)
    for j in range(recipe.binaries):
        features.append(dpx.Binary(f"binary{j}"))
        blocks.append(scores(1) > 1.5 * rng.standard_normal())
    encoded = np.hstack(blocks).astype(np.float32).astype(np.float64)
    return MadeUp(dpx.Domain(features), encoded, _labels(encoded, recipe.labels, rng))


def _spike_and_tail(score, j):
    """Half of the numbers are often 0 with a long tail, half are crowded at one end."""
    return np.where(score > 0.8, 1 - np.exp(-np.maximum(score - 0.8, 0)), 0) if j % 2 else np.exp(-np.abs(2 + score))


def _labels(encoded, rule, rng):
    columns = rng.choice(encoded.shape[1], min(8 if encoded.shape[1] < 100 else 20, encoded.shape[1]), replace=False)
    x = (encoded[:, columns] - encoded[:, columns].mean(axis=0)) / (encoded[:, columns].std(axis=0) + 1e-3)
    line = x @ rng.standard_normal(len(columns))
    unit = line / line.std()
    branches = np.where(x[:, 0] > 0, (x[:, 1] > 0) | (x[:, 2] > 0.5), (x[:, 3] > 0) & (x[:, 4] > 0))
    mixed = line + 2 * x[:, 0] * x[:, 1] - 2 * x[:, 2] * x[:, 3]
    rules = {
        "sign": lambda: line > np.quantile(line, rng.uniform(0.3, 0.8)),
        "smooth": lambda: (np.tanh(unit) + 1) / 2,
        "probability": lambda: 1 / (1 + np.exp(1 - 2 * unit - x[:, 0] * x[:, 1])),
        "interactions": lambda: mixed > np.median(mixed),
        "tree": lambda: branches,
        "weak": lambda: 0.3 * unit + rng.standard_normal(len(unit)) > 0,
    }
    return 2.0 * rules[rule]() - 1.0
