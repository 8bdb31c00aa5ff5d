"""Networks trained with differential privacy by Opacus (extra `[torch]`): DP-SGD with Poisson sampling, clipped gradients and Gaussian noise.

A model's card has the accountant's ε̂ and the parameters it was given. A recipe fixes the number of epochs and takes the noise that ε̂ needs, or
fixes the noise and stops training when the accountant has reached ε̂. What makes models weak at small ε̂ is the size of a batch: noise on a mean
gradient is the multiplier over the batch, so that a batch of 16, as one has it without privacy, drowns the gradient, and one of 700 does not.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from opacus import PrivacyEngine
from opacus.accountants import create_accountant
from opacus.accountants.utils import get_noise_multiplier
from opacus.version import __version__ as opacus_version
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from dpexplain import ModelCard

DELTA = 1e-5
ACCOUNTANT = "prv"


@dataclass(frozen=True)
class Recipe:
    """How a network is trained; `noise` is the multiplier for "stopped", and None takes what ε̂ needs for all epochs.

    `decay` of weights, images that are `mirrored` half of the time, and a rate that is `annealed` (one cycle: up and down to 0) are for plain training.
    """

    batch: int
    epochs: int
    rate: float
    momentum: float = 0.0
    clip: float = 1.0
    noise: float | None = None
    decay: float = 0.0
    mirrored: bool = False
    annealed: bool = False


TEXT = Recipe(batch=700, epochs=15, rate=4.0)
TEXT_STOPPED = Recipe(batch=256, epochs=40, rate=0.15, noise=1.5)  # 575 steps at ε̂ = 0.5
TEXT_WEAK = Recipe(batch=16, epochs=1, rate=4.0)
FACE = Recipe(batch=256, epochs=4, rate=0.25, momentum=0.8)
FACE_WEAK = Recipe(batch=16, epochs=1, rate=0.5)
FACE_PLAIN = Recipe(batch=64, epochs=20, rate=0.05, momentum=0.9, decay=5e-4, mirrored=True, annealed=True)  # without privacy


def text_network(width: int = 500) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, 16), nn.Tanh(), nn.Linear(16, 2))


def face_network(side: int = 48) -> nn.Sequential:
    """Two convolutions with 5 x 5 filters, each with max-pooling, and a fully connected layer, as the paper has."""
    left = side // 4
    return nn.Sequential(
        nn.Conv2d(1, 8, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(16 * left * left, 2),
    )  # fmt: skip


@dataclass(frozen=True)
class Trained:
    """A network behind ±1 answers, with its card."""

    net: nn.Module
    card: ModelCard

    def __call__(self, rows) -> np.ndarray:
        self.net.eval()
        with torch.no_grad():
            parts = [self.net(_tensor(rows[i : i + 1000])).argmax(1) for i in range(0, rows.shape[0], 1000)]
        return np.where(torch.cat(parts).numpy() == 1, 1.0, -1.0)

    def accuracy(self, rows, truth) -> float:
        return float((self(rows) == truth).mean())


def _tensor(rows) -> torch.Tensor:
    dense = rows.toarray() if hasattr(rows, "toarray") else rows
    return torch.from_numpy(np.asarray(dense, dtype=np.float32))


def train(net: nn.Module, rows, truth, epsilon: float | None, recipe: Recipe, seed: int = 0) -> Trained:
    """Train by the recipe; `epsilon=None` is plain SGD, without clipping or noise."""
    torch.manual_seed(seed)
    loader, optimiser = _loader(rows, truth, recipe), _optimiser(net, recipe)
    if epsilon is None:
        _train_plainly(net, loader, optimiser, recipe)
        return Trained(
            net, ModelCard(None, trainer=f"torch {torch.__version__}", rows=len(truth), parameters=_recipe_facts(recipe))
        )
    return _train_privately(net, loader, optimiser, len(truth), epsilon, recipe)


def _loader(rows, truth, recipe) -> DataLoader:
    wanted = torch.from_numpy((np.asarray(truth) > 0).astype(np.int64))
    return DataLoader(TensorDataset(_tensor(rows), wanted), batch_size=min(recipe.batch, len(truth)), shuffle=True)


def _optimiser(net, recipe) -> torch.optim.Optimizer:
    return torch.optim.SGD(net.parameters(), lr=recipe.rate, momentum=recipe.momentum, weight_decay=recipe.decay)


def _train_plainly(net, loader, optimiser, recipe) -> None:
    steps = recipe.epochs * len(loader)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, recipe.rate, total_steps=steps) if recipe.annealed else None
    for _ in range(recipe.epochs):
        _epoch(net, loader, optimiser, mirrored=recipe.mirrored, schedule=schedule)


def _mirror_some(images: torch.Tensor) -> torch.Tensor:
    """Half of the images, by chance, from left to right."""
    chosen = torch.rand(len(images)) < 0.5
    return torch.where(chosen[:, None, None, None], images.flip(3), images)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without Opacus' warnings: random numbers are no secret here, orders of Rényi divergence are not used for ε̂, hooks warn at their first call."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _train_privately(net, loader, optimiser, count, epsilon, recipe) -> Trained:
    share = loader.batch_size / count
    with _quiet():
        noise = recipe.noise or get_noise_multiplier(
            target_epsilon=epsilon, target_delta=DELTA, sample_rate=share, epochs=recipe.epochs, accountant=ACCOUNTANT
        )
        engine = PrivacyEngine(accountant=ACCOUNTANT)
        private, noisy, sampled = engine.make_private(
            module=net, optimizer=optimiser, data_loader=loader, noise_multiplier=noise, max_grad_norm=recipe.clip
        )
        left = steps_within(epsilon, noise, share, recipe.epochs * len(sampled)) if recipe.noise else recipe.epochs * len(sampled)
        while left > 0:
            left -= _epoch(private, sampled, noisy, left)
    steps = sum(one[2] for one in engine.accountant.history)
    used = {"noise_multiplier": round(noise, 6), "sample_rate": share, "steps": steps, "accountant": ACCOUNTANT}
    card = ModelCard(
        round(epsilon_of_steps(noise, share, steps), 6),
        DELTA,
        trainer=f"Opacus {opacus_version}",
        rows=count,
        parameters=used | _recipe_facts(recipe),
    )
    return Trained(net, card)


def steps_within(epsilon: float, noise: float, share: float, most: int) -> int:
    """The largest number of steps, up to `most`, for which the accountant's ε̂ is at most this; at least 1."""
    low, high = 1, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if epsilon_of_steps(noise, share, middle) <= epsilon else (low, middle - 1)
    return low


def epsilon_of_steps(noise: float, share: float, steps: int) -> float:
    """Opacus' ε̂ at DELTA of so many steps: an upper bound, by at most 0.001."""
    accountant = create_accountant(ACCOUNTANT)
    accountant.history = [(noise, share, steps)]
    with _quiet():
        return float(accountant.get_epsilon(DELTA, eps_error=1e-3))


def _epoch(net, loader, optimiser, most: int | None = None, *, mirrored: bool = False, schedule: Any = None) -> int:
    """One pass over the rows, of at most so many steps; returns their number."""
    net.train()
    number = 0
    for batch, wanted in islice(loader, most):
        number += 1
        optimiser.zero_grad()
        shown = _mirror_some(batch) if mirrored else batch
        nn.functional.cross_entropy(net(shown), wanted, reduction="mean" if len(wanted) else "sum").backward()
        optimiser.step()
        if schedule is not None:
            schedule.step()
    return number


def _recipe_facts(recipe) -> dict[str, Any]:
    names = ("batch", "epochs", "rate", "momentum", "clip") + (("decay", "mirrored", "annealed") if recipe.annealed else ())
    return {name: getattr(recipe, name) for name in names}


def models(make, rows, truth, wanted: dict[str, float | None], recipe: Recipe, cache: Path | None = None, seed: int = 0):
    """{name: trained network} for several ε̂, from the cache where they are there."""
    return {name: _load_or_train(f"{name}", make, rows, truth, epsilon, recipe, cache, seed) for name, epsilon in wanted.items()}


def _load_or_train(name, make, rows, truth, epsilon, recipe, cache, seed) -> Trained:
    torch.manual_seed(seed)
    net = make()
    if cache is not None and (cache / f"{name}.pt").exists():
        net.load_state_dict(torch.load(cache / f"{name}.pt", weights_only=True))
        return Trained(net, ModelCard.read(cache / f"{name}.json"))
    found = train(net, rows, truth, epsilon, recipe, seed)
    if cache is not None:
        cache.mkdir(parents=True, exist_ok=True)
        torch.save(found.net.state_dict(), cache / f"{name}.pt")
        found.card.save(cache / f"{name}.json")
    return found


def plain(recipe: Recipe) -> Recipe:
    """The recipe of the model without privacy: rates that are right for clipped sums are too large without clipping."""
    return replace(recipe, rate=0.1, momentum=0.9, noise=None)
