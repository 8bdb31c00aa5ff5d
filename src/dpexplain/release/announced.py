"""A progress bar for releases of many columns or with a reference, which take long: it moves with each rehearsal of the noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from dpexplain.core.arrays import Vector
from dpexplain.estimation.calibrate import rehearsal_draws
from dpexplain.mechanisms.door import Door
from dpexplain.progress import ProgressCallback, progress_steps
from dpexplain.release.plan import ReleasePlan

T = TypeVar("T")
WIDE = 150  # columns from which a release takes long enough for a bar


def with_progress(make: Callable[[Door], T], plan: ReleasePlan) -> Callable[[Door], T]:
    """`make`, with a bar on a terminal where the release of this plan takes long."""
    layout = plan.sketch.layout
    if layout.width < WIDE and not plan.rows:
        return make

    def make_with_bar(door: Door) -> T:
        with progress_steps(f"releasing {layout.width:,} columns", rehearsal_draws(layout)) as watch:
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
