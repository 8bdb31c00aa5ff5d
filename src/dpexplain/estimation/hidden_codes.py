"""Codes that noise may have hidden: what they could change about averages over the reference. Pure post-processing.

The released tables give the share of every code an error e. A code of a true share near e or below it may be missing from the records, and no rehearsal that
reweights records can bring it back. But the model can be asked about any public point, so also about records that have the code: with p the share that
the code has among the records, as much as the root of e² - p² more of all could have it. Moving that share to the code changes an average of φ by

    √(e² - p²) E[φ(x with the code) - φ(x)],

whose square is added to the variance, for every code. *Alternatives* are background records with such a code in place of their own. They are chosen among
more candidates in proportion to how far the code moves the model's answer, and weighted accordingly (Horvitz & Thompson 1952).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.cells import CellCodes
from dpexplain.core.layout import Layout
from dpexplain.core.marginals import Bins
from dpexplain.estimation.reference import NUMBER_STEPS

if TYPE_CHECKING:
    from dpexplain.estimation.raking import Tables

Positions = NDArray[np.intp]

_MOST, _RECORDS = 1 << 12, 32  # candidates that the model is asked about, and those of each code, at most
_PER_RECORD, _FEWEST = 16, 32  # background records for each alternative, and the least number of alternatives


def find_hidden_codes(found: Tables, bins: Bins, layout: Layout) -> Matrix:
    """(attribute, code as the reference stores it, √(e² - p²)), for each code of a share p below its error e.

    Numbers have bins of about equal shares, none of which vanishes; the code of missing values is left out, because a model may not accept it.
    """
    sizes = np.array([np.count_nonzero(found.p[found.block(a)]) for a in range(found.attributes)])
    rows = []
    for a, (cell, joined) in enumerate(zip(bins.cells, bins.joined, strict=True)):
        known = np.delete(np.arange(cell.count), [] if cell.unknown is None else cell.unknown)
        if len(np.unique(joined[known])) < len(known):
            continue
        error = found.error / np.sqrt((1 / np.delete(sizes, a)).sum())
        left = np.sqrt(np.maximum(error**2 - np.square(found.p[found.block(a)][joined[known]]), 0.0))
        numbers = np.rint(cell.columns(known, np.zeros(len(known)))[:, 0] * NUMBER_STEPS) if layout.is_number[a] else known
        rows.append(np.column_stack([np.full(len(known), a), numbers, left])[left > 0])
    return np.concatenate(rows) if rows else np.empty((0, 3))


@dataclass(frozen=True, slots=True, eq=False)
class Alternatives:
    """Background records with another code: which records they were, attributes and codes, which hidden code it is, and the weight of each."""

    records: Positions
    attributes: Positions
    codes: CellCodes
    hidden: Positions
    weights: Vector

    def __len__(self) -> int:
        return len(self.records)

    def of(self, stored: CellCodes) -> CellCodes:
        """The alternatives of background records, both (attributes, records) as the reference stores them."""
        made = stored[:, self.records]
        made[self.attributes, np.arange(len(self))] = self.codes
        return made

    def shifts(self, values: Matrix) -> Matrix:
        """(hidden codes, columns): by how much each hidden code may move averages of `values`, of background records and then of alternatives."""
        moved = values[len(values) - len(self) :] - values[self.records]
        found = np.zeros((int(self.hidden.max(initial=-1)) + 1, values.shape[1]))
        np.add.at(found, self.hidden, self.weights[:, None] * moved)
        return found

    def take(self, positions: Positions, times: Vector | float = 1.0) -> Alternatives:
        """Some of them, with weights enlarged by `times`."""
        chosen = self.records[positions], self.attributes[positions], self.codes[positions], self.hidden[positions]
        return Alternatives(*chosen, self.weights[positions] * times)

    def worth_keeping(self, effects: Vector) -> tuple[Positions, Vector]:
        """(positions, how many each represents): some, in proportion to the sizes of the `effects` of each."""
        from dpexplain.estimation.coded_rows import thin  # which compiles its loops

        count = max(int(self.records.max(initial=0)) // _PER_RECORD, _FEWEST)
        kept, times = thin(self.weights * np.abs(effects), count)
        moving = effects[kept] != 0
        return kept[moving], times[moving]


def propose_alternatives(hidden: Matrix, background: int) -> Alternatives:
    """Every hidden code in some of `background` records, or the codes of the largest shares where there are too many."""
    known = hidden[np.argsort(-hidden[:, 2], kind="stable")[:_MOST]]
    each = min(max(_MOST // max(len(known), 1), 1), _RECORDS, background)
    owner = np.repeat(np.arange(len(known)), each)
    records = (np.arange(len(owner)) * background // each + owner) % background  # at equal distances, others for each code
    return Alternatives(
        records.astype(np.intp),
        known[owner, 0].astype(np.intp),
        known[owner, 1].astype(np.int64),
        owner.astype(np.intp),
        known[owner, 2] / each,
    )
