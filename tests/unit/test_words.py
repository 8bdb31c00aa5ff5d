"""Sums of words at several scales are those of scaled columns, and LIME for several models is the package's for each."""

import numpy as np
import pytest
from experiments.paper import _lime
from experiments.paper._words import sums_around

import dpexplain as dpx
from dpexplain import evaluation, weights

RNG = np.random.default_rng(7)
WORDS = [f"w{i}" for i in range(70)]
TEXTS = [" ".join(np.array(WORDS)[RNG.random(70) < share]) or "w0" for share in RNG.uniform(0.05, 0.6, 900)]
LABELS = np.where(RNG.random(900) < 0.5, 1.0, -1.0)
DOMAIN = dpx.TextDomain(WORDS)


def test_sums_at_a_scale_are_those_of_scaled_columns():
    data = dpx.PrivateData(TEXTS, DOMAIN, labels=LABELS)
    point, rows = DOMAIN.encode_query(TEXTS[3]), DOMAIN.encode(TEXTS).toarray()
    for scale, sums in sums_around(data, point, (1.0, 0.3, 0.03)).items():
        gaps = scale * (rows - point)
        alpha = weights.Stable()(np.linalg.norm(gaps, axis=1))
        assert pytest.approx((gaps * alpha[:, None]).T @ gaps / 900, abs=1e-12) == sums.A
        assert sums.b == pytest.approx((alpha * LABELS) @ gaps / 900, abs=1e-12)


def test_both_readings_of_mim_follow_from_the_sums():
    data, label = dpx.PrivateData(TEXTS, DOMAIN, labels=LABELS), LABELS[3]
    point = DOMAIN.encode_query(TEXTS[3])
    sums = sums_around(data, point, (1.0,))[1.0]
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
