"""Compiled loops for a release, in a process that answers often enough to make up for loading a compiler."""

from __future__ import annotations

from dataclasses import replace

from dpexplain.core.weights import DEFAULT_WEIGHT
from dpexplain.estimation.compiled_planes import CompiledPlanes
from dpexplain.release.release import Release


def compile_release(release: Release) -> Release:
    """The same release with compiled planes, its other classes and models too. Compiling takes seconds once; the result is cached between processes."""
    made = CompiledPlanes(release.planes)
    made.fit(release.average[None], DEFAULT_WEIGHT)
    return replace(release, compiled=made, named={name: compile_release(one) for name, one in release.named.items()})
