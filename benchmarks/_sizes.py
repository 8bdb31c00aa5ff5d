"""Small sizes, with which all benchmarks run in minutes: they show that each works, and their ratios mean little."""

from __future__ import annotations

from importlib import import_module
from typing import Any

SMALL: dict[str, dict[str, Any]] = {
    "cluster": {"ROWS": 40_000},
    "commit_costs": {"COMMITS": 40, "ROUNDS": 1, "GROWN": 40},
    "explainers": {"ROWS": 100_000, "TREES": 50, "SAMPLES": 1_000},
    "faults": {"KILLS": 3, "KILLS_AT_A_STEP": 1, "TRUNCATIONS": 8, "FLIPS": 20, "WRITERS": 2},
    "growth": {
        "ROWS": ((20_000, 50), (80_000, 50), (320_000, 50)),
        "COLUMNS": ((20_000, 50), (20_000, 100), (20_000, 200)),
        "RELEASED": (10_000, 40_000),
    },
    "ledger": {"SECONDS": 0.3, "ROUNDS": 1},
    "query": {"ROWS": 150_000},
    "reference": {"ROWS": 20_000, "RECORDS": 1 << 12},
    "release": {"ROWS": 4_000, "ASKED": (400, 100)},
    "roofline": {"SHAPES": ((150_000, 14), (150_000, 50), (20_000, 200)), "SIDE": 500},
    "scaling": {"ROWS": 40_000, "WORKERS": (1, 2), "REPEAT": 2},
    "service": {"ROWS": 10_000, "SECONDS": 1.0, "ROUNDS": 1},
    "sparse": {"ROWS": 100_000, "FEWER": 10_000, "ROUNDS": 1},
    "wide": {"COLUMNS": (100,), "ROWS": 4_000, "MIXED_ROWS": 4_000},
}


def make_small() -> None:
    """Set the sizes of every benchmark for this process."""
    for name, sizes in SMALL.items():
        module = import_module(f"benchmarks.{name}")
        for size, value in sizes.items():
            if not hasattr(module, size):
                raise AttributeError(f"benchmarks.{name} has no {size}. Correct the small sizes")
            setattr(module, size, value)
