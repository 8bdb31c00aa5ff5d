"""A stand-in release for tests of the page: plausible numbers for any domain, and a plain NumPy explanation of any point.

`explain` follows the definitions line by line, with dense matrices and a generic root finder, so that it shares nothing with
the code in the browser but the mathematics.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import brentq

import dpexplain as dpx
from dpexplain.core import weights
from dpexplain.privacy.relation import Neighbours

GUARANTEE = dpx.Guarantee(0.25, 1e-6, Neighbours(), subject="This release")


@dataclass
class StandIn:
    """Has what a page needs of a release."""

    domain: dpx.Domain
    seed: int = 1
    rows: int = 256
    weight: dpx.weights.Weight = field(default_factory=weights.Stable)
    radius: float = 1.0
    noise: float = 0.004
    guarantee: dpx.Guarantee = GUARANTEE

    def __post_init__(self):
        rng = np.random.default_rng(self.seed)
        self.points, self.layout = _reference(self.domain, self.rows, rng)
        self.X = dense_points(self.points, self.layout, self.domain.width)
        push = rng.standard_normal(self.domain.width)
        self.y = np.tanh(2 * (self.X - self.X.mean(0)) @ push)
        self.inverse_weight = rng.uniform(0.5, 2.0, self.rows)
        self.mean = self.X.mean(0)
        self.w, self.V = np.linalg.eigh(
            np.cov(self.X.T, bias=True).reshape(self.domain.width, -1) + 1e-3 * np.eye(self.domain.width)
        )
        self.t0, self.t1 = float(self.y.mean()), (self.X - self.mean).T @ self.y / self.rows
        self.calibration = rng.uniform(0.8, 1.5, self.domain.width)

    def payload(self):
        return {
            "mean": self.mean.tolist(),
            "eigenvalues": self.w.tolist(),
            "eigenvectors": self.V.tolist(),
            "t0": self.t0,
            "t1": self.t1.tolist(),
            "radius": self.radius,
            "weight": self.weight.to_dict(),
            "layout": self.layout,
            "reference": {"points": self.points, "labels": self.y.tolist(), "inverse_weight": self.inverse_weight.tolist()},
            "noise": {
                "sigma_t1": self.noise,
                "sigma_s2": 0.7 * self.noise,
                "sigma_s1": 0.5 * self.noise,
                "calibration": self.calibration.tolist(),
            },
        }

    def explain(self, record):
        z = self.domain.encode_query(record)
        h = self.mean - z
        A = self.V @ np.diag(self.w) @ self.V.T + np.outer(h, h)
        b = self.t1 + self.t0 * h
        phi = _in_ball(A, b, self.radius)[0]
        U = self.X - z
        a = self.weight(np.sqrt((U**2).sum(1))) * self.inverse_weight
        pull = (a / a.mean() - 1) * (self.y - U @ phi) if a.mean() > 0 else np.zeros(self.rows)
        phi, multiplier = _in_ball(A, b + U.T @ pull / self.rows, self.radius)
        return phi, self._error(A, h, phi, multiplier)

    def _error(self, A, h, phi, multiplier):
        K = np.linalg.inv(A + multiplier * np.eye(len(phi)))
        if multiplier > 0:
            K -= np.outer(K @ phi, K @ phi) / (phi @ K @ phi)
        spread = self.noise**2 * (1 + 0.49 * phi @ phi + 0.25 * (h @ phi) ** 2)
        return self.calibration * np.sqrt(np.diag(K @ K) * spread)


def _in_ball(A, b, radius):
    solve = lambda multiplier: np.linalg.solve(A + multiplier * np.eye(len(b)), b)  # noqa: E731
    if np.linalg.norm(solve(0.0)) <= radius:
        return solve(0.0), 0.0
    multiplier = brentq(
        lambda m: 1 / np.linalg.norm(solve(m)) - 1 / radius, 0.0, np.linalg.norm(b) / radius, xtol=1e-300, rtol=1e-15
    )
    return solve(multiplier), multiplier


def _reference(domain, rows, rng):
    points, layout = [], []
    latent = rng.standard_normal(rows)
    for block in domain.blocks:
        width = block.stop - block.start
        number = block.kind == "numeric"
        layout.append({"start": block.start, "stop": block.stop, "kind": "number" if number else "code"})
        score = 0.5 + 0.18 * (latent * rng.choice([-1, 1]) + rng.standard_normal(rows))
        if number:
            points.append(np.clip(np.rint(4096 * score), 0, 4096).astype(int).tolist())
        else:  # code = width stands for a whole block of zeros; for a binary block that is "no"
            points.append(np.clip(np.floor((width + 1) * score), 0, width).astype(int).tolist())
    return points, layout


def dense_points(points, layout, width):
    """The points of a payload as encoded rows."""
    X = np.zeros((len(points[0]), width))
    for codes, block in zip(points, layout, strict=True):
        for row, code in enumerate(codes):
            if block["kind"] == "number":
                X[row, block["start"]] = code / 4096
            elif code < block["stop"] - block["start"]:
                X[row, block["start"] + code] = 1
    return X
