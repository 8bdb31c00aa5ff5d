"""A progress bar for releases of many columns or with a reference, which take long: it advances with each rehearsal of the noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dpexplain.core.arrays import Vector
from dpexplain.estimation.calibrate import Normals, rehearsal_draws
from dpexplain.mechanisms.release_plan import ReleasePlan
from dpexplain.progress import ProgressCallback, progress_steps

WIDE = 150  # columns from which a release takes long enough for a bar


@contextmanager
def announce_draws(normals: Normals, plan: ReleasePlan) -> Iterator[Normals]:
    """`normals`, with a bar on a terminal that each draw advances, where the release of this plan takes long."""
    layout = plan.sketch.layout
    if layout.width < WIDE and not plan.rows:
        yield normals
        return
    with progress_steps(f"releasing {layout.width:,} columns", rehearsal_draws(layout)) as watch:
        yield _advance_with(normals, watch)


def _advance_with(normals: Normals, watch: ProgressCallback) -> Callable[[int], Vector]:
    def draw(size: int) -> Vector:
        watch("rehearsing the noise")
        return normals(size)

    return draw
