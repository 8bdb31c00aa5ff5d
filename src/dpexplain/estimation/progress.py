"""Progress callbacks of long computations. They pass names of steps, which are public, and never a number that depends on rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

ProgressCallback: TypeAlias = Callable[[str], None]


def no_progress(step: str) -> None:
    """No-op callback."""
