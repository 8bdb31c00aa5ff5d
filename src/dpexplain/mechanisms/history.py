"""Everything released so far: the only past a mechanism may see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dpexplain.core.arrays import Vector


@dataclass(frozen=True, slots=True)
class Released:
    """One public answer: the point that was asked about, its explanation, and whether it was copied from a neighbour."""

    point: Vector
    values: Vector
    copied: bool = False


class History:
    """Append-only releases, in order."""

    def __init__(self) -> None:
        self._released: list[Released] = []

    def append(self, released: Released) -> None:
        self._released.append(released)

    def __len__(self) -> int:
        return len(self._released)

    def __iter__(self) -> Iterator[Released]:
        return iter(self._released)

    def __getitem__(self, index: int) -> Released:
        return self._released[index]
