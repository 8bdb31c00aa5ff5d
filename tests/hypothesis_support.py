"""How many examples Hypothesis tries: as many as a test asks for, and a few in the fast profile (`HYPOTHESIS_PROFILE=fast`)."""

from __future__ import annotations

import os

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "full")
FAST = 3


def examples(count: int) -> int:
    return min(count, FAST) if PROFILE == "fast" else count
