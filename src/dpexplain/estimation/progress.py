"""A way to say how far long work has come. What is said is public: names of steps, never a number that rows decided."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

ProgressCallback: TypeAlias = Callable[[str], None]


def no_progress(step: str) -> None:
    """Nobody is watching."""
