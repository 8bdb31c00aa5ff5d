"""How the weights of reference records respond to noise, for error bars. Pure post-processing.

The released tables are taken for the truth, the known noise is drawn again, and the records are raked from their own tables to these: a change of
log weight for each record, in each of a few rehearsals. Moments are treated alike, to first order (`estimation/local_reference.py`). The normals are
public: they have the size of the noise, but are not privacy noise.

With many attributes raking is slow, and it is linearised at the records themselves: with the covariance H of a record's cells, the ridge Λ of raking
and the change g of the tables, θ solves (H + Λ)θ = g, by a few conjugate gradients in raking's own scale, for eight rehearsals at a time. With few
attributes and much noise that makes errors an eighth too small, so there every rehearsal is raked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.cells import CellCodes
from dpexplain.core.uniforms import Uniforms
from dpexplain.estimation._table_kernels import Bins, Floats, add_energies_of_eight, add_tables_of_eight
from dpexplain.estimation.gibbs import pair_shares
from dpexplain.estimation.population import redraw_tables
from dpexplain.estimation.raking import Raking, Tables

REHEARSALS = 8
LINEAR_FROM = 24  # attributes
_TOGETHER = 8  # rehearsals
_ROWS, _ROUNDS = 1 << 13, 8


def normals(uniforms: Uniforms, count: int) -> Vector:
    return np.asarray(scipy.special.ndtri(uniforms.take(count)))


def table_changes(codes: CellCodes, found: Tables, uniforms: Uniforms, rehearsals: int) -> Matrix:
    """(rehearsals, rows): what other noise on the tables adds to each record's log weight."""
    raking = Raking(codes[:: max(len(codes) // _ROWS, 1)], found)
    everyone = np.ascontiguousarray(codes.T, dtype=np.int32)
    changes = np.zeros((rehearsals, len(codes)))
    for first in range(0, rehearsals, _TOGETHER):
        last = min(first + _TOGETHER, rehearsals)
        others = [redraw_tables(found, normals(uniforms, found.pairs.size)) for _ in range(first, last)]
        energy = _energies(everyone, raking, _potentials(raking, found, others))
        changes[first:last] = energy.T[: last - first]
    return np.asarray(changes - changes.mean(axis=1, keepdims=True))


def _potentials(raking: Raking, found: Tables, others: Sequence[tuple[Vector, Matrix]]) -> Matrix:
    """(θ, η) by which the records follow each of the other margins and tables, (cells, 8)."""
    out = np.zeros((len(raking.limit), _TOGETHER))
    if found.attributes >= LINEAR_FROM:
        for k, (p, pairs) in enumerate(others):
            out[:, k] = raking.flatten(pairs - found.pairs, p - found.p)
        return respond(raking, out, _ROUNDS)
    few = raking.codes.T.astype(np.int64)
    own = pair_shares(few, found.offsets)
    for k, (p, pairs) in enumerate(others):
        margins = np.where(found.p > 0, np.maximum(np.diag(own) + p - found.p, 1e-9), 0.0)
        target = replace(found, p=margins, pairs=own + pairs - found.pairs)
        out[:, k] = Raking(few, target).minimise_dual(_ROUNDS)
    return out


def respond(raking: Raking, gaps: Matrix, rounds: int) -> Matrix:
    """(θ, η) that move the records' tables and margins by `gaps`, (cells, 8), to first order and as far as raking would."""
    scale = np.append(raking.scale, np.ones(len(raking.limit) - len(raking.scale)))[:, None]
    ridge = np.append(raking.ridge, np.zeros(len(scale) - len(raking.ridge)))[:, None] * np.square(scale)
    free = (raking.limit > 0)[:, None]
    found, rest = np.zeros_like(gaps), np.where(free, gaps * scale, 0.0)
    ahead, size = rest.copy(), np.square(rest).sum(axis=0)
    for _ in range(rounds):
        bent = np.where(free, _covariance(raking, ahead * scale) * scale, 0.0) + ridge * ahead
        length = size / np.maximum((ahead * bent).sum(axis=0), 1e-300)
        found += length * ahead
        rest -= length * bent
        left = np.square(rest).sum(axis=0)
        ahead = rest + left / np.maximum(size, 1e-300) * ahead
        size = left
    return np.asarray(np.clip(found, -raking.limit[:, None], raking.limit[:, None]) * scale)


def _covariance(raking: Raking, potentials: Matrix) -> Matrix:
    """The covariance of a record's cells with its energies."""
    energy, out = _energies(raking.codes, raking, potentials), np.zeros(potentials.shape, dtype=np.float32)
    add_tables_of_eight(raking.codes, raking.found.offsets, (energy - energy.mean(axis=0)) / np.float32(raking.rows), out)
    return out.astype(np.float64)


def _energies(codes: Bins, raking: Raking, potentials: Matrix) -> Floats:
    out = np.zeros((codes.shape[1], _TOGETHER), dtype=np.float32)
    add_energies_of_eight(codes, raking.found.offsets, np.ascontiguousarray(potentials, dtype=np.float32), out)
    return out
