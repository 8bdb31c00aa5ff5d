"""A temporary seed of NumPy's global generator, for packages that draw from it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


@contextmanager
def temporary_global_seed(seed: int) -> Iterator[None]:
    """Seed NumPy's global generator within the context, and restore its state afterwards. Not safe with threads."""
    state = np.random.get_state()  # noqa: NPY002 (the whole point is the old global generator)
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002
