"""Pair potentials of all attributes, learnt by Gibbs sampling. Pure post-processing. Repeatable, because it draws public pseudo-random numbers.

The model is p(x) ∝ exp(½ xᵀθx + η·x) over one-hot records x, started at the tree. Each turn lets Gibbs sampling refresh every attribute of every
record in the chain, counts the chain's tables q and margins m, and steps towards the released tables P̂ (stochastic maximum likelihood,
Younes 1989, Tieleman 2008): with d = p - m,

    θ += γ (P̂ - q - dpᵀ - pdᵀ - λ(θ - θ_tree)) / (max(q, e) + λ + 1/N),    η += ½ d / max(m, p).

Errors of the margins are removed from the tables' step, and margins take the larger step: otherwise every table of an attribute would correct the
same margin once more. Steps shrink with the number of attributes; the last third of the turns is averaged (Polyak).

Records are the states of the chain after the last turns, refreshed once by the averaged potentials. States of several turns are nearer to the
tables than copies of the last one, because errors of single turns cancel, and as different from each other as copies refreshed three times.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.cells import CellCodes
from dpexplain.core.marginals import Joined
from dpexplain.core.uniforms import Uniforms
from dpexplain.estimation._table_kernels import count_pairs, refresh
from dpexplain.estimation.raking import Tables

CHAIN = 1 << 13
STATES = 16  # of the chain that are kept
_TURNS = 40
_FARTHEST = 3.0  # of θ from the tree's
_SMALLEST = 1e-6  # probability in a denominator
_SLICE = 1 << 13


@dataclass(frozen=True, slots=True, eq=False)
class Potentials:
    """θ and η, and records that follow them."""

    theta: Matrix
    field: Vector
    offsets: Joined
    states: tuple[CellCodes, ...]  # of the chain, the last one last

    def records(self, rows: int, uniforms: Uniforms) -> CellCodes:
        """As many records as wanted, at most those of all states: of states at equal distances, refreshed."""
        wanted = -(-rows // len(self.states[0]))
        chosen = np.concatenate(self.states[:: -(len(self.states) // wanted)][:wanted])
        return refresh_records(chosen[:rows], self.theta, self.field, self.offsets, 1, uniforms)


class _Learner:
    """The current θ (beyond the tree's) and η during learning."""

    def __init__(self, found: Tables, start: tuple[Matrix, Vector], attributes: int, rows: int) -> None:
        owner = np.repeat(np.arange(attributes), np.diff(found.offsets))
        self.found, self.rows, (self.tree, self.field) = found, rows, start
        self.across = (owner[:, None] != owner) & (np.outer(found.p, found.p) > 0)
        self.expected = np.maximum(found.smooth, _SMALLEST)
        self.ridge = np.where(self.across, np.square(found.errors) / self.expected, 0.0)
        self.theta, self.pace = np.zeros_like(self.tree), min(0.15, 5 / attributes)

    def step(self, tables: Matrix, gamma: float) -> None:
        found, margins = self.found, np.diag(tables)
        gap = np.where(self.across, found.pairs - tables, 0.0)
        astray = found.p - margins
        blamed = np.where(self.across, np.outer(astray, found.p), 0.0)
        pull = gap - blamed - blamed.T - self.ridge * self.theta
        step = gamma * self.pace * pull / (np.maximum(tables, self.expected) + self.ridge + 1 / self.rows)
        self.theta = np.clip(self.theta + step, -_FARTHEST, _FARTHEST)
        self.field = self.field + 0.5 * astray / np.maximum(np.maximum(margins, found.p), _SMALLEST * 100)


def learn_potentials(codes: CellCodes, found: Tables, start: tuple[Matrix, Vector], uniforms: Uniforms) -> Potentials:
    """Potentials whose records have the released tables, up to noise."""
    learner, kept = _Learner(found, start, codes.shape[1], len(codes)), 0
    theta, field = np.zeros_like(learner.tree), np.zeros_like(learner.field)
    states: list[CellCodes] = []
    for turn in range(_TURNS):
        codes = refresh_records(codes, learner.tree + learner.theta, learner.field, found.offsets, 1, uniforms)
        learner.step(pair_shares(codes, found.offsets), 1.0 if turn < _TURNS // 2 else 0.5)
        if turn >= _TURNS - STATES:
            states.append(codes)
        if turn >= _TURNS - _TURNS // 3:
            theta, field, kept = theta + learner.theta, field + learner.field, kept + 1
    return Potentials(learner.tree + theta / kept, field / kept, found.offsets, tuple(states))


def refresh_records(
    codes: CellCodes, theta: Matrix, field: Vector, offsets: Joined, sweeps: int, uniforms: Uniforms
) -> CellCodes:
    """Gibbs sampling: every attribute given the others, in turn, `sweeps` times."""
    out, (rows, attributes) = np.ascontiguousarray(codes.T, dtype=np.int32), codes.shape
    pair, single = theta.astype(np.float32), field.astype(np.float32)
    for start in range(0, rows, _SLICE):
        part = np.ascontiguousarray(out[:, start : start + _SLICE])
        drawn = uniforms.take(part.shape[1] * sweeps * attributes).reshape(part.shape[1], -1)
        refresh(part, offsets, pair, single, drawn)
        out[:, start : start + _SLICE] = part
    return out.T.astype(np.int64)


def pair_shares(codes: CellCodes, offsets: Joined) -> Matrix:
    """The share of the records that have each two bins; margins on the diagonal."""
    counts = np.zeros((int(offsets[-1]), int(offsets[-1])))
    count_pairs(np.ascontiguousarray(codes.T, dtype=np.int32), offsets, counts)
    return counts / len(codes)
