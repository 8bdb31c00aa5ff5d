"""Sums of words at several scales are the library's at each of them, and LIME for several models is the package's for each."""

import numpy as np
import pytest
from experiments.paper import _lime
from experiments.paper._words import Words

import dpexplain as dpx
from dpexplain import evaluation, weights

pytestmark = pytest.mark.slow  # its kernels are compiled for experiments alone
RNG = np.random.default_rng(7)
WORDS = [f"w{i}" for i in range(70)]
TEXTS = [" ".join(np.array(WORDS)[RNG.random(70) < share]) or "w0" for share in RNG.uniform(0.05, 0.6, 900)]
LABELS = np.where(RNG.random(900) < 0.5, 1.0, -1.0)
DOMAIN = dpx.TextDomain(WORDS)


class Nearer(weights.Stable):
    """The stable weight of distances times s."""

    def __init__(self, scale):
        super().__init__()
        object.__setattr__(self, "scale", scale)

    def __call__(self, distance):
        return super().__call__(np.asarray(distance) * self.scale)


def test_sums_at_all_scales_are_the_librarys():
    data = dpx.PrivateData(TEXTS, DOMAIN, labels=LABELS)
    words = Words.of(DOMAIN.encode(TEXTS), LABELS)
    point, scales = DOMAIN.encode_query(TEXTS[3]), (1.0, 0.3, 0.03)
    found = words.sums(point, scales)
    assert tuple(found) == scales
    for scale, sums in found.items():
        there = evaluation.local_moments_of(data, [point], Nearer(scale))[0]
        assert pytest.approx(there.A * scale**2 / 900, rel=1e-10, abs=1e-15) == sums.A
        assert pytest.approx(there.b * scale / 900, rel=1e-10, abs=1e-15) == sums.b


def test_both_readings_of_mim_follow_from_the_sums():
    data, label = dpx.PrivateData(TEXTS, DOMAIN, labels=LABELS), LABELS[3]
    point = DOMAIN.encode_query(TEXTS[3])
    sums = Words.of(DOMAIN.encode(TEXTS), LABELS).sums(point, (1.0,))[1.0]
    assert evaluation.mim(data, point, label=label, others="ignored") == pytest.approx((sums.first * label + sums.b) / 2)
    assert evaluation.mim(data, point, others="against") == pytest.approx(sums.b)


def test_lime_for_several_models_is_the_packages(monkeypatch):
    pytest.importorskip("lime")
    monkeypatch.setattr(_lime, "SAMPLES", 300)
    _lime.try_texts.cache_clear()
    slopes = RNG.normal(size=(2, 70))
    models = {"linear": lambda rows: np.tanh(rows @ slopes[0]), "hard": lambda rows: np.sign(rows @ slopes[1] + 0.1)}
    data = dpx.PrivateData(TEXTS[:50], DOMAIN, labels=LABELS[:50])
    for text in TEXTS[:2]:
        found = _lime.explain_by_lime(models, DOMAIN.encode_query(text), seed=4)
        for name, ask in models.items():
            there = evaluation.lime(data, text, model=ask, samples=300, seed=4)
            assert found[name] == pytest.approx(there, abs=1e-9)
    _lime.try_texts.cache_clear()
