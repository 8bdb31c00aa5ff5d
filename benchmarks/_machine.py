"""The machine in general terms, and how busy it was: without these a number means nothing."""

from __future__ import annotations

import os
import platform

import llvmlite.binding as llvm
import numba
import numpy as np


def machine_facts() -> list[dict[str, object]]:
    features = llvm.get_host_cpu_features()
    vectors = next(
        (name for key, name in (("avx512f", "AVX-512"), ("avx2", "AVX2"), ("neon", "NEON")) if features.get(key)), "plain"
    )
    facts: dict[str, object] = {
        "processor": f"{os.cpu_count()} cores, {platform.machine()}, {vectors} vectors",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "software": f"Python {platform.python_version()}, NumPy {np.__version__}, Numba {numba.__version__}",
    }
    return [{"machine": key, "value": value} for key, value in facts.items()] + load("load at the start")


def load(when: str) -> list[dict[str, object]]:
    """Processes that want a core, mean of a minute: above the number of cores the machine was busy with other things."""
    return [{"machine": when, "value": f"{os.getloadavg()[0]:.1f} of {os.cpu_count()} cores"}]
