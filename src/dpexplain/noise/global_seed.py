"""For foreign packages that draw from NumPy's global generator: lend it a seed, and give it back as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


@contextmanager
def temporary_global_seed(seed: int) -> Iterator[None]:
    """Within, the global generator starts at `seed`; afterwards it goes on as if nothing had happened. Not for threads."""
    state = np.random.get_state()  # noqa: NPY002 (the whole point is the old global generator)
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002
