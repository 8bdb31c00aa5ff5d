"""Models of reviews and faces trained with differential privacy: Opacus' DP-SGD where it is installed, and our own trainer beside it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np

import dpexplain as dpx
from dpexplain import ModelCard
from dpexplain.privacy import gdp, person_guarantees, relation
from experiments.paper import _training

EPSILONS = {"f": None, "f_10": 10.0, "f_2": 2.0, "f_0.5": 0.5}
WEAK = "f_0.5, weak"
FACES_OWN = {"f": None, "f_10": 10.0, "f_2": 2.0, "f_0.5": 0.5, "f_0.02": 0.02}
FACES_WEAKEST = {"own f_0.02": 0.02}  # right as rarely as the paper's f_0.5
FACES_REPORTED = {"f": 0.843, "f_10": 0.80, "f_2": 0.62, "f_0.5": 0.51, WEAK: 0.51}
OWN = {"own f_10": 10.0, "own f_0.5": 0.5, "own f_0.01": 0.01}
REPORTED = {"f": 0.836, "f_10": 0.81, "f_2": 0.74, "f_0.5": 0.52, WEAK: 0.52}


def has_opacus() -> bool:
    return find_spec("opacus") is not None


def models_of_reviews(rows, truth, inputs) -> dict[str, Any]:
    """{name: model}: each has `card`, `accuracy(rows, truth)` and answers ±1. The first one is not private."""
    if not has_opacus():
        own = {"f": None} | OWN
        return {name: _training.train(rows, truth, epsilon) for name, epsilon in own.items()}
    from experiments.paper import _opacus

    def make():
        return _opacus.text_network(rows.shape[1])

    recipes = (_opacus.plain(_opacus.TEXT), _opacus.TEXT, _opacus.TEXT_WEAK)
    found = _train_by_opacus(make, rows, truth, recipes, inputs, "text")
    return found | {name: _training.train(rows, truth, epsilon) for name, epsilon in OWN.items()}


def _train_by_opacus(make, rows, truth, recipes, inputs, kind) -> dict[str, Any]:
    """{name: network} without privacy, for each ε̂, and badly trained; in a quick run all see their rows once."""
    from experiments.paper import _opacus

    plain, usual, weak = (replace(one, epochs=1) for one in recipes) if inputs.quick else recipes
    place = inputs.output / "cache" / f"opacus-{kind}{'-quick' if inputs.quick else ''}"
    private = {name: epsilon for name, epsilon in EPSILONS.items() if epsilon is not None}
    found = _opacus.models(make, rows, truth, {"f": None}, plain, place)
    found |= _opacus.models(make, rows, truth, private, usual, place)
    return found | _opacus.models(make, rows, truth, {WEAK: 0.5}, weak, place)


@dataclass(frozen=True)
class OnImages:
    """A model that sees each image without its brightness and contrast, which is no use of any other image."""

    model: Any
    grid: tuple[int, int] | None  # None: every pixel, as a network of convolutions takes them

    @property
    def card(self) -> ModelCard:
        return self.model.card

    def __call__(self, images) -> np.ndarray:
        return self.model(self.standardise(images, self.grid))

    @staticmethod
    def standardise(images, grid):
        columns = dpx.ImageDomain(shape=images.shape[1:], grid=grid or images.shape[1:]).encode(images)
        spread = columns.std(axis=1, keepdims=True)
        centred = (columns - columns.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1)
        return centred / grid[0] if grid else centred.reshape(-1, 1, *images.shape[1:])


def models_of_faces(faces, inputs, grid=(24, 24)) -> dict[str, OnImages]:
    """{name: model}: the paper's network of two convolutions by Opacus; without it, or in a quick run, our own small network on means of pixels."""
    truth = np.where(faces.training_happy, 1.0, -1.0)

    def own(epsilon):
        return OnImages(_training.train(OnImages.standardise(faces.training, grid), truth, epsilon, scale=0.3), grid)

    if inputs.quick or not has_opacus():
        return {name: own(epsilon) for name, epsilon in FACES_OWN.items()}
    from experiments.paper import _opacus

    def make():
        return _opacus.face_network(faces.training.shape[1])

    rows = OnImages.standardise(faces.training, None)
    found = _train_by_opacus(make, rows, truth, (_opacus.FACE_PLAIN, _opacus.FACE, _opacus.FACE_WEAK), inputs, "face")
    return {name: OnImages(model, None) for name, model in found.items()} | {name: own(e) for name, e in FACES_WEAKEST.items()}


def describe(name, model, rows, truth, reported=REPORTED) -> dict[str, Any]:
    """A row of the table of models: accuracy beside the paper's, the accountant's ε̂, and what it was given."""
    card: ModelCard = model.card
    stated = card.parameters
    return {
        "model": name,
        "test accuracy": round(float(np.mean(model(rows) == truth)), 3),
        "in the paper": reported.get(name, ""),
        "ε̂": "none" if card.epsilon is None else round(card.epsilon, 3),
        "trainer": card.trainer,
        "noise multiplier": round(float(stated["noise_multiplier"]), 3) if "noise_multiplier" in stated else "",
        "steps": stated.get("steps", ""),
        "batch": stated.get("batch", ""),
        "a person in both sets": promise_text(card),
    }


def promise_text(card: ModelCard, epsilon: float = 0.1, delta: float = 1e-5) -> str:
    """(ε, δ) of somebody who trained the model and is among the explanation data, after one answer of this price."""
    spent = dpx.Guarantee(gdp.mu(epsilon, delta), delta, relation.Neighbours())
    both = person_guarantees.PersonGuarantees.of(spent, 1_000_000, card).both
    return "" if card.epsilon is None or both is None else f"({both.epsilon:.3g}, {both.delta:.2g})"
