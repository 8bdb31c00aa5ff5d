"""SHAP values of superpixels, compared with flat images that have the moments of a release."""

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.errors import DataError, ParameterError, QueryError
from dpexplain.noise.seeded import SeededNoise
from dpexplain.registration.presentation import same_kind_of_images

GRID = dpx.ImageDomain(shape=(12, 12), grid=(3, 3))


def photographs(count, dtype=np.uint8, seed=0):
    rng = np.random.default_rng(seed)
    tones = rng.uniform(40, 200, (count, 1, 1)) + rng.normal(0, 40, (count, 3, 3))
    pixels = np.kron(tones, np.ones((1, 4, 4))) + rng.normal(0, 10, (count, 12, 12))
    return np.clip(np.rint(pixels), 0, 255).astype(dtype)


def model(images):
    """A product of two superpixels, and one more by itself."""
    x = np.asarray(images, dtype=float) / 255
    means = x.reshape(len(x), 3, 4, 3, 4).mean(axis=(2, 4))
    return np.tanh(4 * (means[:, 0, 0] - 0.5) * means[:, 1, 1] + means[:, 2, 2] - 0.5)


@pytest.fixture(scope="module")
def release():
    data = dpx.PrivateData(photographs(4000), GRID, model=model)
    return dpx.release(data, dpx.Budget(1.0, 1e-6), noise=SeededNoise(0))


def exact(image, others):
    """SHAP values over true images, by the model's own three superpixels."""
    from dpexplain.estimation.coalitions import record_values

    def worth(records, joined):
        mixed = np.where(GRID.on_pixels(joined), image, others[records])
        return model(mixed)

    return record_values(worth, model(others), float(model(image[None])[0]), 9).mean(axis=0)


def test_they_add_up_and_are_near_those_over_true_images(release):
    image = photographs(1, seed=9)[0]
    found, truth = release.shapley(image), exact(image, photographs(2000, seed=5))
    assert found.names == GRID.names
    assert found.base + found.values.sum() == pytest.approx(found.answer, abs=1e-12)
    assert found.answer == pytest.approx(float(model(image[None])[0]), abs=1e-9)
    assert np.linalg.norm(found.values - truth) < 0.2 * np.linalg.norm(truth)
    assert (np.abs(found.values - truth) <= 3.5 * found.error).all()
    ignored = [1, 2, 3, 5, 6, 7]
    assert (found.values[ignored] == 0).all()
    assert (found.error[ignored] > 0).all()
    assert found.details["source"] == "superpixels"
    assert found.guarantee == release.guarantee


def test_what_flat_images_do_not_show_is_in_the_bars():
    images = photographs(2000)
    edges = lambda pictures: np.tanh(np.abs(np.diff(np.asarray(pictures, dtype=float), axis=1)).mean(axis=(1, 2)) / 20)  # noqa: E731
    release = dpx.release(
        dpx.PrivateData(images, GRID, model=edges, output="value", bounds=(-1, 1)), dpx.Budget(1.0, 1e-6), noise=SeededNoise(0)
    )
    found = release.shapley(images[0], background=64)
    average = edges(images).mean()
    assert found.base < average - 0.1  # flat images have edges between superpixels only
    assert abs(found.base - average) <= 2 * found.base_error
    assert (found.error > 0.1 / 9).all()


def test_many_images_are_the_single_ones(release):
    images = photographs(2, seed=9)
    many = release.shapley_many(images, background=64)
    np.testing.assert_array_equal(many[1].values, release.shapley(images[1], background=64).values)
    assert release.shapley_many(list(images[:0])).values.shape == (0, 9)
    assert many.details["records"] == 64


def test_a_file_needs_the_model_and_answers_alike(release, tmp_path):
    image = photographs(1, seed=9)[0]
    release.save(tmp_path / "images.dpx")
    loaded = dpx.load(tmp_path / "images.dpx")
    np.testing.assert_allclose(loaded.shapley(image, model=model).values, release.shapley(image).values)
    with pytest.raises(ParameterError, match="model="):
        loaded.shapley(image)


def test_mistakes_are_found_before_anything_is_said(release):
    with pytest.raises(QueryError, match="shape"):
        release.shapley(np.zeros((5, 5), dtype=np.uint8))
    with pytest.raises(DataError):
        release.shapley(photographs(1)[0], model=lambda images: np.full(len(images), np.nan))
    with pytest.raises(ParameterError, match="superpixels"):
        release.summary()


def test_the_model_is_shown_images_of_the_registered_kind():
    seen = []

    def watched_model(images):
        seen.append(images.dtype)
        return model(images * 255)

    domain = dpx.ImageDomain(shape=(12, 12), grid=(3, 3), bounds=(0, 1))
    images = (photographs(500) / 255).astype(np.float32)
    release = dpx.release(dpx.PrivateData(images, domain, model=watched_model), dpx.Budget(1.0, 1e-6), noise=SeededNoise(0))
    release.shapley(images[0], background=64)
    assert set(seen) <= {np.dtype(np.float32), np.dtype(np.float64)}  # made-up images of the first trial are float64
    assert seen[-1] == np.float32
    whole = np.array([[[0.4, 1.6]]])
    assert same_kind_of_images(np.zeros((1, 1, 2), dtype=np.int16))({"image": whole}).tolist() == [[[0, 2]]]
    assert isinstance(same_kind_of_images([])({"image": whole}), list)
    assert set(same_kind_of_images({"image": []})({"image": whole})) == {"image"}


def test_colours_are_players_of_their_own():
    domain = dpx.ImageDomain(shape=(4, 4, 3), grid=(2, 2))
    images = np.random.default_rng(0).integers(0, 256, (500, 4, 4, 3), dtype=np.uint8)
    red = lambda pictures: np.asarray(pictures, dtype=float)[..., 0].mean(axis=(1, 2)) / 128 - 1  # noqa: E731
    release = dpx.release(dpx.PrivateData(images, domain, model=red), dpx.Budget(4.0, 1e-6), noise=SeededNoise(0))
    found = release.shapley(images[0], background=64)
    assert [name for name, value in zip(found.names, found.values, strict=True) if value != 0] == [
        name for name in domain.names if name.endswith("red")
    ]
