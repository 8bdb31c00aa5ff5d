"""Reads record batches as blocks of encoded, labelled rows, a bounded number at a time. Streaming and distributed rows share it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpexplain.backends import _kernels as kernels
from dpexplain.backends.dense import DenseRows
from dpexplain.backends.parquet import ParquetFiles, RowGroup
from dpexplain.backends.sparse import SparseRows
from dpexplain.core.arrays import Vector
from dpexplain.domain import DomainLike
from dpexplain.domain.clamping import encode_within
from dpexplain.mechanisms.ports import BatchLabels

Chunk = tuple[Any, Vector]  # encoded rows, float32 or sparse, and their labels

Part = DenseRows | SparseRows

PART_BYTES = 1 << 24  # of encoded rows in a part
MOST_ROWS, FEWEST_ROWS = 1 << 15, 1 << 10


class UsedRows:
    """A bit for each row of the files: whether the row is used. Rows beyond an owner's limit are not."""

    def __init__(self, rows: int) -> None:
        self._bits, self.count = np.zeros(-(-rows // 8), dtype=np.uint8), 0

    def write_flags(self, start: int, chosen: NDArray[np.bool_]) -> None:
        """Store the flags of rows start, start + 1, …; the flags of a row are written once."""
        before = np.zeros(start % 8, dtype=np.bool_)
        packed = np.packbits(np.concatenate([before, chosen]))
        self._bits[start // 8 : start // 8 + len(packed)] |= packed
        self.count += int(chosen.sum())

    def read_flags(self, start: int, count: int) -> NDArray[np.bool_]:
        first, last = start // 8, -(-(start + count) // 8)
        return np.unpackbits(self._bits[first:last])[start % 8 : start % 8 + count].astype(np.bool_)


@dataclass(frozen=True, slots=True)
class EncodedFiles:
    """Registered files with what is needed to read them as encoded, labelled rows, the same ones each time."""

    files: ParquetFiles
    domain: DomainLike
    labels: BatchLabels
    kept: UsedRows | None = None
    sparse: bool = False  # whether the domain encodes rows as sparse ones
    most_rows: int = MOST_ROWS  # in a part

    @property
    def rows(self) -> int:
        return self.files.rows if self.kept is None else self.kept.count

    @property
    def part_rows(self) -> int:
        """How many rows a part holds: a whole number of blocks, by the public width alone."""
        rows = self.most_rows if self.sparse else min(max(PART_BYTES // (4 * self.domain.width), FEWEST_ROWS), self.most_rows)
        return rows - rows % kernels.ROWS

    @property
    def summation_error(self) -> float:
        """The bound of a part, which does not depend on the number of rows."""
        return self.part([]).summation_error

    def parts(self, chunks: Iterable[Chunk]) -> Iterator[Part]:
        """Rows in order, `part_rows` in each part but the last."""
        return map(self.part, _regroup(chunks, self.part_rows))

    def part(self, chunks: list[Chunk]) -> Part:
        kind = SparseRows if self.sparse else DenseRows
        labels = np.concatenate([np.zeros(0), *(y for _, y in chunks)])
        return kind([X for X, _ in chunks], labels, self.domain.width, self.part_rows)

    def chunks(self, groups: Sequence[RowGroup] | None = None) -> Iterator[Chunk]:
        """Encoded rows with their labels, in order, as they come from these row groups (or all)."""
        for start, batch in self.files.batches(self._columns, self.part_rows, groups):
            labels = self.labels.of(batch, start)
            if self.kept is not None:
                kept = self.kept.read_flags(start, batch.num_rows)
                batch, labels = batch.filter(pa.array(kept)), labels[kept]
            rows = encode_within(self.domain, batch)
            yield rows if self.sparse else rows.astype(np.float32), labels

    @property
    def _columns(self) -> list[str] | None:
        if self.labels.columns is None:
            return None
        return list(dict.fromkeys([*self.domain.columns, *self.labels.columns]))


def _regroup(chunks: Iterable[Chunk], rows: int) -> Iterator[list[Chunk]]:
    """Regroup chunks of any length into groups of `rows` rows, so that results do not depend on where files and row groups end."""
    held: list[Chunk] = []
    room = rows
    for X, y in chunks:
        while len(y) >= room:
            yield [*held, (X[:room], y[:room])]
            X, y, held, room = X[room:], y[room:], [], rows
        held.append((X, y))
        room -= len(y)
    if room < rows:
        yield held
