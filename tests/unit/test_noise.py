"""Both sources keep the port's promises; the secure one cannot be replayed, by anyone, in any process."""

import copy
import multiprocessing
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.special import ndtri

from dpexplain.errors import ParameterError
from dpexplain.noise import secure
from dpexplain.noise.secure import SecureNoise, normals, uniforms
from dpexplain.noise.seeded import SeededNoise

sources = pytest.mark.parametrize("noise", [SecureNoise(), SeededNoise(3)], ids=repr)
TOP = np.array([2**64 - 1], dtype=np.uint64)
ZERO = np.array([0], dtype=np.uint64)


@sources
@pytest.mark.parametrize("size", [0, 1, 7, secure.BLOCK, secure.BLOCK + 1])
def test_draws_have_the_asked_size_and_are_finite(noise, size):
    for draws in (noise.standard_normal(size), noise.uniform(size)):
        assert draws.shape == (size,)
        assert draws.dtype == np.float64
        assert np.isfinite(draws).all()


@sources
def test_uniforms_stay_inside_the_open_interval(noise):
    draws = noise.uniform(100_000)
    assert 0 < draws.min() < 1e-3
    assert 1 - 1e-3 < draws.max() < 1


@sources
def test_no_two_draws_or_blocks_are_equal(noise):
    draws = np.concatenate([noise.standard_normal(3 * secure.BLOCK), noise.standard_normal(1000)])
    assert np.unique(draws).size == draws.size


def test_only_the_secure_source_says_so_and_neither_can_be_told_otherwise():
    assert SecureNoise().secure is True
    assert SeededNoise(0).secure is False
    with pytest.raises(AttributeError):
        SeededNoise(0).secure = True


def test_a_seed_repeats_and_another_does_not():
    first = SeededNoise(5).standard_normal(10)
    np.testing.assert_array_equal(first, SeededNoise(5).standard_normal(10))
    assert not np.isin(first, SeededNoise(6).standard_normal(10)).any()


@pytest.mark.parametrize("seed", [-1, 1.5, None, "7"])
def test_a_meaningless_seed_is_refused(seed):
    with pytest.raises(ParameterError, match="SecureNoise"):
        SeededNoise(seed)


# The secure source cannot be replayed


def test_the_secure_source_takes_no_seed_and_holds_nothing():
    with pytest.raises(TypeError):
        SecureNoise(1)
    assert SecureNoise.__slots__ == ()
    assert repr(SecureNoise()) == "SecureNoise()"


@pytest.mark.parametrize("replay", [pickle.dumps, copy.copy, copy.deepcopy])
def test_the_secure_source_refuses_to_be_copied(replay):
    with pytest.raises(TypeError, match=r"Create a new SecureNoise\(\)"):
        replay(SecureNoise())


def test_every_block_has_its_own_key(monkeypatch):
    asked, urandom = [], secure.os.urandom
    monkeypatch.setattr(secure.os, "urandom", lambda size: asked.append(size) or urandom(size))
    SecureNoise().standard_normal(2 * secure.BLOCK + 1)
    assert asked == [32, 16] * 3


def test_the_keystream_is_aes_256_in_counter_mode(monkeypatch):
    """NIST SP 800-38A, F.5.5: the keystream under that key and counter is the plaintext xor the ciphertext."""
    key = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    counter = bytes(range(0xF0, 0x100))
    monkeypatch.setattr(secure.os, "urandom", lambda size: key if size == 32 else counter)
    assert secure._words(1).tobytes().hex() == "0bdf7df1591716335e9a8b15c860c502"


def _send_draws(pipe, noise=None):
    pipe.send_bytes((noise or SecureNoise()).standard_normal(64).tobytes())
    pipe.close()


def _draws_of_child(method, *args):
    context = multiprocessing.get_context(method)
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_send_draws, args=(sender, *args))
    child.start()
    draws = np.frombuffer(receiver.recv_bytes())
    child.join()
    return draws


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_forked_children_and_their_parent_draw_different_noise():
    noise = SecureNoise()
    noise.standard_normal(10)
    streams = [_draws_of_child("fork", noise), _draws_of_child("fork", noise), noise.standard_normal(64)]
    assert np.unique(streams).size == 3 * 64


@pytest.mark.slow
def test_spawned_children_draw_different_noise():
    streams = [_draws_of_child("spawn"), _draws_of_child("spawn"), SecureNoise().standard_normal(64)]
    assert np.unique(streams).size == 3 * 64


def test_threads_never_share_a_draw():
    noise = SecureNoise()
    with ThreadPoolExecutor(8) as pool:
        draws = np.concatenate(list(pool.map(noise.standard_normal, [500] * 200)))
    assert np.unique(draws).size == draws.size


# From random words to numbers


def test_uniforms_reach_both_ends_without_touching_them():
    assert uniforms(TOP, TOP)[0] == 1 - 2.0**-53
    assert uniforms(ZERO, ZERO)[0] == 2.0**-128


def test_small_uniforms_keep_full_relative_precision():
    low = np.arange(2**63, 2**63 + 4096 * 8, 4096, dtype=np.uint64)
    values = uniforms(np.zeros(8, dtype=np.uint64), low)
    np.testing.assert_allclose(np.diff(values) / values[0], 2.0**-51, rtol=1e-9)


def test_normals_are_symmetric_and_bounded():
    assert normals(ZERO, ZERO)[0] == ndtri(2.0**-129)
    assert normals(ZERO, ZERO + np.uint64(1))[0] == -ndtri(2.0**-129)
    assert abs(normals(ZERO, ZERO)[0]) < 13.2


def test_a_normal_is_as_close_to_its_real_number_as_the_proof_needs():
    """|computed - real| < 2⁻⁴⁶ for U ≥ 2⁻⁷⁵, leaving half of the proof's 2⁻⁴⁵ to the product and the sum that follow."""
    mpmath = pytest.importorskip("mpmath")
    rng = np.random.default_rng(0)
    high = (2.0 ** rng.uniform(0, 64, 800)).astype(np.uint64)
    low = rng.integers(0, 2**64, 800, dtype=np.uint64, endpoint=False)
    with mpmath.workprec(150):
        for h, w, computed in zip(high, low, normals(high, low), strict=True):
            p = (mpmath.mpf(int(h)) + (mpmath.mpf(int(w) >> 1) + 0.5) / 2**63) / 2**65
            size = -mpmath.mpf(abs(float(computed)))
            newton = (mpmath.ncdf(size) - p) / mpmath.npdf(size)  # its own error is of second order: below 2⁻⁸⁰
            assert abs(newton) < mpmath.mpf(2) ** -46


def test_numbers_that_protect_nothing_use_up_no_keys(monkeypatch):
    """Those of seeded noise repeat with the rest of it; those beside secure noise are new each time."""
    monkeypatch.setattr(secure, "_words", lambda count: pytest.fail("a key was drawn"))
    first, second = (SecureNoise().auxiliary_normal(1000) for _ in range(2))
    assert not np.isin(first, second).any()
    assert abs(first.mean()) < 0.3
    assert SeededNoise(5).auxiliary_normal(10).tolist() == SeededNoise(5).standard_normal(10).tolist()
