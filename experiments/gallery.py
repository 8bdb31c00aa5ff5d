"""The pictures of docs/plots.md, from made-up numbers.

python -m experiments.gallery docs/images
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from dpexplain import AnswerScale, Contributions, plots

REVIEW = (
    "The plot is thin and the acting is bad, sometimes awful. And yet: the music is wonderful, the pictures are great, "
    "and by the end I loved it. My favourite film this year!\nBest seen twice."
)
WORDS = ("bad", "awful", "wonderful", "great", "loved", "favourite", "plot", "best", "and")
EFFECTS = np.array([-0.5, -0.3, 0.8, 0.6, 0.4, 0.3, -0.1, 0.2, 0.02])
FEATURES = ("education", "hours", "age", "married", "work=private", "work=none", "sex", "capital gain")
PRIVATE = np.array([0.62, 0.41, 0.3, 0.35, 0.04, -0.33, 0.12, 0.21])
ERROR = np.array([0.05, 0.04, 0.05, 0.06, 0.05, 0.07, 0.04, 0.09])


def face(size=48):
    """A drawn face and what makes it smile: no photograph."""
    y, x = np.mgrid[0:size, 0:size] / (size - 1) * 2 - 1
    picture = 60 + 150 * ((x / 0.75) ** 2 + (y / 0.95) ** 2 < 1)
    for side in (-0.32, 0.32):
        picture = np.where((x - side) ** 2 / 0.02 + (y + 0.25) ** 2 / 0.008 < 1, 40, picture)
    mouth = np.abs(y - 0.6 + 1.1 * x**2) < 0.07
    picture = np.where(mouth & (np.abs(x) < 0.42), 70, picture)
    picture = np.where((np.abs(x) < 0.05) & (np.abs(y - 0.1) < 0.18), 150, picture)
    return picture.astype(np.uint8)


def effects(grid=12):
    """Mouth corners for, brows against."""
    y, x = np.mgrid[0:grid, 0:grid] / (grid - 1) * 2 - 1
    corners = np.exp(-((np.abs(x) - 0.4) ** 2 + (y - 0.45) ** 2) / 0.03)
    brows = np.exp(-((np.abs(x) - 0.3) ** 2 + (y + 0.45) ** 2) / 0.04)
    return corners - 0.7 * brows


def on_pixels(cells, size=48):
    return np.kron(cells, np.ones((size // len(cells), size // len(cells))))


def contributions():
    added = np.array([0.21, 0.12, -0.04, 0.09])
    return Contributions(
        names=("education", "hours", "trade", "married"),
        values=added,
        base=0.24,
        answer=0.24 + added.sum(),
        error=np.array([0.02, 0.01, 0.03, 0.01]),
        scale=AnswerScale.of("probability"),
        record=("degree", 45, "sales", True),
    )


def many_contributions(rng, count=250):
    """Made-up people: education and hours help, age up to a point."""
    education, hours, age = rng.integers(0, 5, count), rng.normal(38, 10, count), rng.uniform(18, 80, count)
    married = rng.random(count) < 0.5
    columns = [0.09 * (education - 2), 0.008 * (hours - 38), 0.08 - ((age - 50) / 70) ** 2, 0.05 * (married - 0.5)]
    values = np.stack(columns, axis=1) + rng.normal(0, 0.01, (count, 4))
    record = list(zip(education.tolist(), hours.tolist(), age.tolist(), married.tolist(), strict=True))
    names = ("education", "hours", "age", "married")
    return names, values, record


def figures():
    rng = np.random.default_rng(0)
    yield "plot-waterfall", contributions().plot()
    names, values, record = many_contributions(np.random.default_rng(1))
    scale = AnswerScale.of("probability")
    yield (
        "plot-beeswarm",
        plots.beeswarm(names, values, record, scale, title="What the values of 250 records add to the model's answer"),
    )
    means = np.abs(values).mean(axis=0)
    yield "plot-importance", plots.importance(names, means, scale, title="Mean absolute contribution over 250 records")
    lime, mim = PRIVATE * 3 + rng.normal(0, 0.25, 8), PRIVATE / 40 + rng.normal(0, 0.004, 8)
    yield "plot-bars", plots.bars(FEATURES, PRIVATE, ERROR, title="Why the model answers as it does here")
    yield "plot-text", plots.highlighted(REVIEW, WORDS, EFFECTS, np.full(9, 0.04), title="Why the model likes this review")
    for palette, name in (("blue-red", "plot-overlay"), ("blue-orange", "plot-overlay-safe")):
        yield name, plots.overlay(on_pixels(effects()), face(), title="Why it looks happy", palette=palette)
    yield (
        "plot-comparison",
        plots.comparison(FEATURES, {"private, ε=0.1": PRIVATE, "lime": lime, "mim": mim}, {"private, ε=0.1": ERROR}),
    )
    adaptive = np.cumsum(np.where(rng.random(60) < 0.45, 0.0, rng.uniform(0.002, 0.02, 60)))
    yield "plot-budget", plots.budget({"a fresh answer each": np.sqrt(np.arange(1, 61)) * 0.1, "adaptive": adaptive}, limit=1.0)
    steps = np.arange(1, 121)
    curves = {"exact noise": 0.9 * np.exp(-steps / 12) + 0.002, "paper's noise": 0.9 * np.exp(-steps / 60) + 0.12}
    yield "plot-convergence", plots.convergence(curves)
    losses = {"exact noise": rng.lognormal(-6, 0.6, 500), "paper's noise": rng.lognormal(-3.2, 0.5, 500)}
    yield "plot-histogram", plots.histogram(losses, quantity="excess loss", log=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in figures():
        figure.savefig(folder / f"{name}.png", dpi=90)


if __name__ == "__main__":
    main()
