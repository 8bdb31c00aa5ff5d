"""Images from arrays to answers: private data, an interactive explainer, a release and its file."""

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.errors import ParameterError

SHAPE = (48, 48)


@pytest.fixture(scope="module")
def faces():
    """Made-up faces; what makes one smile are two dark spots at the corners of the mouth, in superpixels r8c3 and r8c8."""
    rng = np.random.default_rng(5)
    y, x = np.mgrid[0:48, 0:48] / 47 * 2 - 1
    corners = np.zeros(SHAPE)
    corners[32:36, 12:16] = corners[32:36, 32:36] = 1
    smiles = rng.random(4000) < 0.5
    oval = 110.0 * ((x / 0.75) ** 2 + (y / 0.95) ** 2 < 1)
    light = rng.normal(0, 15, (4000, 1, 1))
    images = 70 + oval + light - 90 * smiles[:, None, None] * corners + rng.normal(0, 10, (4000, *SHAPE))
    return np.clip(images, 0, 255).astype(np.uint8)


def black_box(images):
    """Asked about the images as given: 8-bit arrays."""
    assert images.dtype == np.uint8
    assert images.shape[1:] == SHAPE
    return np.where(images[:, 32:36, 12:16].mean(axis=(1, 2)) < 140, 1.0, -1.0)


@pytest.fixture(scope="module")
def data(faces):
    return dpx.PrivateData(faces, dpx.ImageDomain(shape=(48, 48), grid=(12, 12)), model=black_box)


def test_a_private_explanation_finds_the_smile(faces, data):
    explainer = dpx.Explainer(data, dpx.Budget(4, 1e-6), dpx.Basic(epsilon=2, delta=1e-6))
    explanation = explainer.explain(faces[0])
    assert {name for name, _, _ in explanation.top(2)} == {"r8c3", "r8c8"}
    assert evaluation.score(explanation.values, data, faces[0], plane="paper").cosine > 0.8
    plane = data.domain.image(explanation.values)
    assert plane[33, 13] < 0  # darker there is more of a smile
    assert explanation.plot().axes[0].images[0].get_array().shape == SHAPE
    assert len(explainer.explain_many(faces[:2])) <= 2
    assert len(dpx.NonInteractive(explainer.history, "neighbour").explain(faces[1]).values) == 144


def test_a_release_explains_images_from_its_file(faces, tmp_path):
    data = dpx.PrivateData(faces, dpx.ImageDomain(SHAPE, grid=(6, 6)), model=black_box)
    release = dpx.release(data, dpx.Budget(4, 1e-6))
    release.save(tmp_path / "faces.dpx")
    loaded = dpx.load(tmp_path / "faces.dpx")
    assert loaded.domain == data.domain
    explanation = loaded.explain(faces[3])
    assert {name for name, _, _ in explanation.top(2)} == {"r4c1", "r4c4"}
    np.testing.assert_array_equal(explanation.values, release.explain(faces[3]).values)
    assert loaded.explain_many(faces[:3])[0].plot().axes[0].images[0].get_array().shape == SHAPE
    with pytest.raises(ParameterError, match="kind 'image'"):
        loaded.publish(tmp_path / "faces.html")


def test_reference_records_are_for_tables(data):
    before = data.spent.mu
    with pytest.raises(ParameterError, match="Leave reference= out"):
        dpx.release(data, dpx.Budget(1, 1e-6), reference=True)
    assert data.spent.mu == before


def test_a_release_of_single_pixels_is_refused_before_anything_is_spent(faces):
    data = dpx.PrivateData(faces[:20], dpx.ImageDomain(SHAPE), labels=np.ones(20))
    with pytest.raises(ParameterError, match="a coarser grid"):
        dpx.release(data, dpx.Budget(1, 1e-6))
    assert data.spent.mu == 0


def test_owners_keep_one_image_each(faces):
    rows = {"image": faces[:6], "person": ["a", "a", "b", "b", "b", "c"]}
    kept = dpx.PrivateData(rows, dpx.ImageDomain(SHAPE, (4, 4)), labels=np.ones(6), unit="person")
    assert kept.size == 3
