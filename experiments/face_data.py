"""FER2013, happy against sad: the images. They are not part of the project, and are kept in a cache folder outside it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

HAPPY, SAD = 3, 4


@dataclass(frozen=True)
class Faces:
    """8-bit images (m, 48, 48) and whether each is happy; `training` are the paper's explanation data."""

    training: np.ndarray
    training_happy: np.ndarray
    test: np.ndarray
    test_happy: np.ndarray


def load(folder: Path, cache: Path) -> Faces:
    """Happy and sad faces without blank images and exact copies (the first of each is kept, training images first)."""
    stored = cache / "happy_sad.npy"
    if not stored.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with np.load(folder / "fer2013_48x48.npz") as raw:
            kept = _distinct(raw["images"], raw["emotion"], raw["usage"])
        np.save(stored, kept)
    table = np.load(stored)
    images, emotion, usage = table[:, :-2].reshape(-1, 48, 48), table[:, -2], table[:, -1]
    train, happy = usage == 0, emotion == HAPPY
    return Faces(images[train], happy[train], images[~train], happy[~train])


def _distinct(images, emotion, usage):
    """One row an image: its pixels, emotion and usage."""
    chosen = np.flatnonzero(np.isin(emotion, (HAPPY, SAD)))
    chosen = chosen[np.argsort(usage[chosen], kind="stable")]
    pixels = images[chosen].reshape(len(chosen), -1)
    first = np.sort(np.unique(pixels, axis=0, return_index=True)[1])
    first = first[pixels[first].min(axis=1) < pixels[first].max(axis=1)]
    return np.column_stack([pixels[first], emotion[chosen][first], usage[chosen][first]]).astype(np.uint8)
