"""A progress bar for releases of many columns, which take minutes: it moves with each rehearsal of the noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from dpexplain.core.arrays import Vector
from dpexplain.core.layout import Layout
from dpexplain.estimation.calibrate import replicates
from dpexplain.mechanisms.door import Door
from dpexplain.progress import ProgressCallback, progress_steps

T = TypeVar("T")
WIDE = 150  # columns from which a release takes long enough for a bar


def with_progress(make: Callable[[Door], T], layout: Layout) -> Callable[[Door], T]:
    """`make`, with a bar on a terminal where there are many columns."""
    if layout.width < WIDE:
        return make

    def make_with_bar(door: Door) -> T:
        with progress_steps(f"releasing {layout.width:,} columns", 3 * replicates(layout)) as watch:
            return make(cast(Door, _AnnouncingDoor(door, watch)))

    return make_with_bar


class _AnnouncingDoor:
    """A door that advances the bar when a rehearsal draws its numbers. It delegates everything else."""

    def __init__(self, door: Door, watch: ProgressCallback) -> None:
        self._door, self._watch = door, watch

    def auxiliary_normal(self, size: int) -> Vector:
        self._watch("rehearsing the noise")
        return self._door.auxiliary_normal(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._door, name)
