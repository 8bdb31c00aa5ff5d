"""Tiles of register sums, on whatever registers a machine has."""

import os
import subprocess
import sys

import numpy as np
import pytest

from dpexplain.backends import _kernels as kernels
from dpexplain.backends import _tiles
from dpexplain.backends.dense import DenseRows
from dpexplain.core import weights
from dpexplain.core.moments import RawMoments


def error(width):
    """The largest relative error of all sums at once, against NumPy."""
    rng = np.random.default_rng(width)
    X, y, z = rng.random((700, width)).astype(np.float32), rng.uniform(-1, 1, 700), rng.random(width)
    found = DenseRows([X], y, width).raw(RawMoments(z, weights.Stable()))
    u = X - z
    alpha = weights.Stable()(np.linalg.norm(u, axis=1))
    r = np.column_stack([u, np.ones(700), y])
    true = (r.T * alpha) @ r
    mine = np.block([[found.S2, found.S1[:, None], found.t1[:, None]], [found.S1, found.S0, found.t0]])
    return float(np.max(np.abs(mine - true[:-1]) / (alpha @ (np.abs(r).max(axis=1) ** 2))))


@pytest.mark.parametrize("width", [1, 2, 3, 5, 6, 10, 23])
def test_every_width_fills_its_last_tiles(width):
    assert error(width) < 1e-14


@pytest.mark.slow
@pytest.mark.parametrize(("features", "lanes"), [({"avx": True}, 4), ({}, 2)])
def test_narrower_registers_give_the_same_sums(features, lanes, tmp_path):
    """Compiled anew as if the machine had fewer of them, in a process of its own."""
    script = f"""
from unittest.mock import patch
from llvmlite.binding.targets import FeatureMap
with patch("llvmlite.binding.get_host_cpu_features", lambda: FeatureMap({features!r})):
    from dpexplain.backends import _tiles
from tests.unit.test_tiles import error
assert _tiles.LANES == {lanes}
assert error(5) < 1e-14
"""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr


def test_tiles_come_back_as_a_symmetric_matrix():
    numbers = np.arange(kernels.gram_size(4), dtype=np.float64)
    matrix = kernels.matrix(numbers, 4)
    assert matrix.shape == (6, 6)
    assert (matrix == matrix.T).all()
    assert (matrix[0, : _tiles.SIDE] == np.arange(_tiles.SIDE)).all()
