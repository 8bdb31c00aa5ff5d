"""SHAP over superpixels of faces: what is lost if the background images are made from superpixels' means and covariances alone,
without noise and as `release.shapley` does it, with the coverage of its bars.

python -m experiments.image_shapley --data DIR [--queries 2]
python -m experiments.image_shapley --made-up blobs [--queries 4]
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline

import dpexplain as dpx
from dpexplain.noise import SeededNoise
from experiments.datasets import arguments, data_folder
from experiments.face_data import Faces, load
from experiments.reference_shapley import scores

GRID, RECORDS, TRUTH = 6, 100, 400
EPSILONS = (1.0, 4.0)
SIDE = 48 // GRID


def made_up(kind, count=8_000, seed=0):
    """Generated images in the form of faces: light from one side, a blob with or without a hole, and grain.

    "stripes" have, instead of the blob, stripes across or along one half: no mean of a superpixel shows them.
    """
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:48, :48] / 48
    angle, level, spread = rng.uniform(0, 2 * np.pi, count), rng.uniform(90, 150, count), rng.uniform(0, 60, count)
    images = level[:, None, None] + spread[:, None, None] * (
        np.cos(angle)[:, None, None] * (x - 0.5) + np.sin(angle)[:, None, None] * (y - 0.5)
    )
    positive, middle = rng.random(count) < 0.4, rng.uniform(0.3, 0.7, (2, count, 1, 1))
    if kind == "blobs":
        distance = np.hypot(x - middle[0], y - middle[1]) / rng.uniform(0.15, 0.28, (count, 1, 1))
        hole = 1.2 * np.exp(-np.square(distance / 0.4)) * positive[:, None, None]
        images = images + rng.uniform(40, 90, (count, 1, 1)) * (np.exp(-np.square(distance)) - hole)
    else:
        wave = rng.uniform(5, 8, (count, 1, 1))
        across = np.where(positive[:, None, None], np.sin(2 * np.pi * wave * y), np.sin(2 * np.pi * wave * x))
        images = images + rng.uniform(15, 40, (count, 1, 1)) * across / (1 + np.exp(40 * (middle[1] - y)))
    images = np.clip(images + rng.normal(0, 12, images.shape), 0, 255).astype(np.uint8)
    part = 3 * count // 4
    return Faces(images[:part], positive[:part], images[part:], positive[part:])


def network(faces):
    """Answers 2p - 1 about images (m, 48, 48) by a small network on their principal components."""
    pixels = faces.training.reshape(len(faces.training), -1) / 255
    found = make_pipeline(PCA(60, whiten=True, random_state=0), MLPClassifier((40,), max_iter=25, random_state=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found.fit(pixels, faces.training_happy)
    return found, lambda images: 2 * found.predict_proba(images.reshape(len(images), -1) / 255)[:, 1] - 1


def means(images):
    """(m, GRID²): of each superpixel."""
    return images.reshape(-1, GRID, SIDE, GRID, SIDE).mean(axis=(2, 4)).reshape(-1, GRID * GRID)


def flat(values):
    """Images of superpixels without anything in them."""
    return np.clip(np.kron(values.reshape(-1, GRID, GRID), np.ones((1, SIDE, SIDE))), 0, 255)


def draw_flat_images(values, count, rng):
    """Flat images with the mean and covariance of these superpixels."""
    return flat(rng.multivariate_normal(values.mean(axis=0), np.cov(values.T), count))


def releases(faces, model):
    """One for each ε."""
    domain = dpx.ImageDomain(shape=(48, 48), grid=(GRID, GRID))
    data = dpx.PrivateData(faces.training, domain, model=lambda images: model(np.asarray(images, dtype=np.float64)))
    for epsilon in EPSILONS:
        yield epsilon, dpx.release(data, dpx.Budget(10, 1e-6), spend=dpx.Budget(epsilon, 1e-6), noise=SeededNoise(1))


def shap(model, image, background, seed=0):
    """SHAP values of superpixels, by one order and its reverse for each background image."""
    rng, d, total = np.random.default_rng(seed), GRID * GRID, np.zeros(GRID * GRID)
    for other in background:
        order = rng.permutation(d)
        for path in (order, order[::-1]):
            joined = np.zeros((d + 1, d), dtype=bool)
            for step, feature in enumerate(path):
                joined[step + 1 :, feature] = True
            mask = np.kron(joined.reshape(-1, GRID, GRID), np.ones((1, SIDE, SIDE))) > 0
            total[path] += np.diff(model(np.where(mask, image, other)))
    return total / (2 * len(background))


def main():
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "dpexplain")
    parser.add_argument("--made-up", choices=("blobs", "stripes"), help="generated images instead of faces")
    parser.set_defaults(queries=2)
    options, console, rng = parser.parse_args(), Console(width=120), np.random.default_rng(1)
    made = options.made_up
    faces = made_up(made, seed=options.seed) if made else load(data_folder(options.data), options.cache)
    fitted, model = network(faces)
    right = fitted.score(faces.test.reshape(len(faces.test), -1) / 255, faces.test_happy)
    images = faces.training[rng.permutation(len(faces.training))].astype(np.float64)
    values = means(images)
    backgrounds = {
        "other true images": images[TRUTH : TRUTH + RECORDS],
        "the same images, flat superpixels": flat(values[TRUTH : TRUTH + RECORDS]),
        "drawn from means and covariances": draw_flat_images(values, RECORDS, rng),
        "the average image, flat": flat(values.mean(axis=0)[None]).repeat(RECORDS, axis=0),
    }
    found, covered, released = {name: [] for name in backgrounds}, {}, dict(releases(faces, model))
    for shown in faces.test[: options.queries]:
        image = shown.astype(np.float64)
        truth = shap(model, image, images[:TRUTH])
        for name, background in backgrounds.items():
            found[name].append(scores(shap(model, image, background, seed=1), truth))
        for epsilon, release in released.items():
            answer = release.shapley(shown)
            found.setdefault(f"release.shapley, total ε = {epsilon:g}", []).append(scores(answer.values, truth))
            covered.setdefault(epsilon, []).append((np.abs(answer.values - truth) <= 2 * answer.error).mean())
    title = f"{GRID}x{GRID} superpixels against SHAP on {TRUTH:,} true images; the network is right about {right:.0%}"
    table = Table(f"{RECORDS} background images", "relative error", "cosine", "top 5 shared", title=title)
    for name, all_ in found.items():
        error, cosine, top = np.mean(all_, axis=0)
        table.add_row(name, f"{error:.3f}", f"{cosine:.3f}", f"{top:.1f}")
    console.print(table)
    console.print(*(f"ε = {epsilon:g}: {np.mean(shares):.0%} within two errors" for epsilon, shares in covered.items()), sep="; ")


if __name__ == "__main__":
    main()
