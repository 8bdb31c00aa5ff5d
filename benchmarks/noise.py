"""Secure normals a second, beside NumPy's (not cryptographic), and whether the time of a draw tells how large it is."""

from __future__ import annotations

from time import thread_time

import numpy as np
from scipy.special import ndtri

from dpexplain.noise import SeededNoise, secure
from dpexplain.noise.secure import SecureNoise


def fastest(function, argument, repeat=200):
    """The least processor time of many short runs, which a busy machine disturbs little."""
    times = []
    for _ in range(repeat):
        start = thread_time()
        function(argument)
        times.append(thread_time() - start)
    return min(times)


def run():
    size = secure.BLOCK
    tail, central = np.full(5_000, 0.01), np.full(5_000, 0.3)
    rates = {
        "secure normals": size / fastest(SecureNoise().standard_normal, size),
        "seeded normals": size / fastest(SeededNoise(0).standard_normal, size),
    }
    rows = [{"what": name, "millions a second": rate / 1e6, "tail time / central time": ""} for name, rate in rates.items()]
    for name, quantile in (("SciPy's quantile", ndtri), ("ours", secure.lower_quantile)):
        rows.append(
            {
                "what": name,
                "millions a second": "",
                "tail time / central time": fastest(quantile, tail) / fastest(quantile, central),
            }
        )
    return rows
