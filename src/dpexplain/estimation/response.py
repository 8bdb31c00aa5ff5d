"""How the weights of reference records respond to noise, for error bars. Pure post-processing.

The released tables are taken for the truth, the known noise is drawn again, and the records are raked from their own tables to these: a change of
log weight for each record, in each of a few rehearsals. Moments are treated alike, to first order (`estimation/local_reference.py`). The normals
are public: they have the size of the noise, and protect nothing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.cells import CellCodes
from dpexplain.core.uniforms import Uniforms
from dpexplain.estimation.gibbs import pair_shares
from dpexplain.estimation.population import Tables, redraw_tables
from dpexplain.estimation.raking import Raking

REHEARSALS = 8
_ROWS, _ROUNDS = 1 << 13, 8


def normals(uniforms: Uniforms, count: int) -> Vector:
    return np.asarray(scipy.special.ndtri(uniforms.take(count)))


def table_changes(codes: CellCodes, found: Tables, uniforms: Uniforms, rehearsals: int = REHEARSALS) -> Matrix:
    """(rehearsals, rows): what other noise on the tables adds to each record's log weight."""
    everyone, few = Raking(codes, found), codes[:: max(len(codes) // _ROWS, 1)]
    own = pair_shares(few, found.offsets)
    changes = []
    for _ in range(rehearsals):
        other = redraw_tables(found, normals(uniforms, found.pairs.size))
        margins = np.where(found.p > 0, np.maximum(np.diag(own) + other.p - found.p, 1e-9), 0.0)
        target = replace(found, p=margins, pairs=own + other.pairs - found.pairs)
        energy = everyone.energy(Raking(few, target).minimise_dual(_ROUNDS))
        changes.append(energy - energy.mean())
    return np.array(changes).reshape(rehearsals, len(codes))
