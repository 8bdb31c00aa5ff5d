"""A small convolutional network that tells happy from sad faces (extra `[torch]`), trained once and kept in a cache folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from experiments.face_data import Faces


def network() -> nn.Sequential:
    """Three convolutions and two dense layers: 171 thousand weights."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.4), nn.Linear(64 * 6 * 6, 64), nn.ReLU(), nn.Linear(64, 2),
    )  # fmt: skip


@dataclass(frozen=True)
class Classifier:
    """A network behind the interface every black box has: images as given → (m, 2) probabilities of sad and happy."""

    net: nn.Sequential

    def predict_proba(self, images):
        self.net.eval()
        with torch.no_grad():
            parts = [torch.softmax(self.net(_tensor(images[i : i + 500])), 1) for i in range(0, len(images), 500)]
        return torch.cat(parts).double().numpy()

    def accuracy(self, images, happy) -> float:
        return float(((self.predict_proba(images)[:, 1] > 0.5) == happy).mean())


def _tensor(images) -> torch.Tensor:
    return torch.from_numpy(np.asarray(images, dtype=np.float32)[:, None] / 255 - 0.5)


def classifier(faces: Faces, cache: Path, epochs: int = 10, seed: int = 0) -> Classifier:
    """The trained network: from the cache, or trained now (minutes on one core)."""
    stored = cache / f"happy_sad_{epochs}_{seed}.pt"
    torch.manual_seed(seed)
    model = Classifier(network())
    if stored.exists():
        model.net.load_state_dict(torch.load(stored, weights_only=True))
    else:
        _train(model, faces, epochs, seed)
        torch.save(model.net.state_dict(), stored)
    return model


def _train(model: Classifier, faces: Faces, epochs: int, seed: int) -> None:
    images, happy = _tensor(faces.training), torch.from_numpy(faces.training_happy.astype(np.int64))
    batch, generator = 64, torch.Generator().manual_seed(seed)
    steps = epochs * -(-len(images) // batch)
    optimiser = torch.optim.Adam(model.net.parameters(), weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=3e-3, total_steps=steps)
    for epoch in range(epochs):
        model.net.train()
        for chosen in torch.randperm(len(images), generator=generator).split(batch):
            mirrored = torch.rand(len(chosen), generator=generator) < 0.5
            shown = torch.where(mirrored[:, None, None, None], images[chosen].flip(3), images[chosen])
            optimiser.zero_grad()
            nn.functional.cross_entropy(model.net(shown), happy[chosen]).backward()
            optimiser.step()
            schedule.step()
        print(f"epoch {epoch + 1}: test accuracy {model.accuracy(faces.test, faces.test_happy):.4f}", flush=True)
