"""Images as superpixel means: against a naive loop, with every private pixel read and every odd query refused."""

import io
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import dpexplain as dpx
from dpexplain.errors import DataError, DomainError, QueryError
from dpexplain.mechanisms.history import History

FACE = np.random.default_rng(0).integers(0, 256, (5, 48, 48), dtype=np.uint8)


def naive(domain, image, low=0.0, high=255.0):
    """Cell by cell, pixel by pixel."""
    (h, w), (rows, columns) = domain.shape[:2], domain.grid
    planes = image.reshape(h, w, -1)
    means = []
    for i in range(rows):
        for j in range(columns):
            for k in range(planes.shape[2]):
                inside = [
                    (min(max(float(planes[y, x, k]), low), high) - low) / (high - low)
                    for y in range(i * h // rows, (i + 1) * h // rows)
                    for x in range(j * w // columns, (j + 1) * w // columns)
                ]
                means.append(sum(inside) / len(inside))
    return np.array(means)


@pytest.mark.parametrize(
    ("shape", "grid"),
    [((48, 48), (12, 12)), ((7, 5), (3, 4)), ((6, 6), None), ((5, 9, 3), (2, 4)), ((4, 4, 1), (4, 1)), ((3, 3, 5), (1, 1))],
)
def test_means_are_those_of_a_naive_loop(shape, grid):
    domain = dpx.ImageDomain(shape, grid)
    images = np.random.default_rng(1).integers(0, 256, (3, *shape), dtype=np.uint8)
    encoded = domain.encode(images)
    assert encoded.shape == (3, domain.width) == (3, len(domain.names)) == (3, domain.blocks[-1].stop)
    for image, row in zip(images, encoded, strict=True):
        np.testing.assert_allclose(row, naive(domain, image), atol=1e-12)
        np.testing.assert_array_equal(row, domain.encode_query(image))
    np.testing.assert_array_equal(encoded, domain.encode(list(images)))
    np.testing.assert_array_equal(encoded, domain.encode({"image": images, "person": [1, 2, 3]}))
    np.testing.assert_array_equal(encoded, domain.encode_queries({"image": images.tolist()}))


def test_a_constant_cell_reaches_the_ends_of_the_interval():
    domain = dpx.ImageDomain((10, 7), (3, 2))
    assert (domain.encode(np.full((1, 10, 7), 255, dtype=np.uint8)) == 1.0).all()
    assert (domain.encode(np.zeros((1, 10, 7), dtype=np.uint8)) == 0.0).all()


def test_pixels_are_the_default_grid():
    domain = dpx.ImageDomain((3, 4))
    assert domain.grid == (3, 4)
    image = np.arange(12, dtype=np.uint8).reshape(3, 4)
    np.testing.assert_array_equal(domain.encode_query(image), np.arange(12) / 255)


def test_names_say_row_column_and_channel():
    assert dpx.ImageDomain((48, 48), (12, 12)).names[12 * 3 + 7] == "r3c7"
    assert dpx.ImageDomain((4, 4, 3), (1, 1)).names == ("r0c0 red", "r0c0 green", "r0c0 blue")
    assert dpx.ImageDomain((4, 4, 2), (1, 1)).names == ("r0c0 channel0", "r0c0 channel1")


@pytest.mark.parametrize(("shape", "grid"), [((48, 48), (12, 12)), ((7, 5, 3), (3, 2))])
def test_numbers_come_back_on_the_image_plane(shape, grid):
    domain = dpx.ImageDomain(shape, grid, bounds=(0, 1))
    values = np.random.default_rng(2).uniform(0, 1, domain.width)
    plane = domain.image(values)
    assert plane.shape == shape
    np.testing.assert_allclose(domain.encode_query(plane), values, atol=1e-12)
    with pytest.raises(DataError, match="one number for each"):
        domain.image(np.ones(3))


pixels = st.floats(width=64) | st.sampled_from([np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324])


@settings(deadline=None)
@given(arrays(np.float64, (4, 5, 3), elements=pixels), st.integers(1, 5), st.integers(1, 3))
def test_no_private_pixel_raises_leaves_the_interval_or_moves_another_image(images, rows, columns):
    domain = dpx.ImageDomain((5, 3), (rows, columns), bounds=(-1, 3))
    encoded = domain.encode(images)
    assert ((encoded >= 0) & (encoded <= 1)).all()
    for i, image in enumerate(images):
        np.testing.assert_array_equal(domain.encode(image[None])[0], encoded[i])


def test_the_public_rules_for_missing_infinite_and_outlying_pixels():
    domain = dpx.ImageDomain((1, 5), bounds=(0, 2))
    image = np.array([[[np.nan, np.inf, -np.inf, 7.0, 1.5]]])
    assert domain.encode(image).tolist() == [[0.5, 1.0, 0.0, 1.0, 0.75]]


def test_images_are_encoded_a_few_at_a_time(monkeypatch):
    domain = dpx.ImageDomain((48, 48), (5, 7))
    whole = domain.encode(FACE)
    monkeypatch.setattr("dpexplain.domain.image._PIXELS", 2 * 48 * 48)
    np.testing.assert_array_equal(domain.encode(FACE), whole)
    np.testing.assert_array_equal(domain.encode(list(FACE)), whole)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (FACE / 255, "Declare the range of pixels"),
        (FACE.astype(np.int64), "8-bit"),
        (FACE.astype(str), "8-bit"),
        (FACE[:, :40], "shape"),
        (FACE[0], "shape"),
        ([FACE[0][:3], FACE[0][:4]], "shape"),
        ([FACE[0].tolist()], "list of arrays"),
        (np.ma.masked_array(FACE), "masked"),
        ("faces", "list of arrays"),
        ({"picture": FACE}, "column 'image'"),
    ],
)
def test_a_wrong_schema_is_refused(rows, reason):
    with pytest.raises(DataError, match=reason):
        dpx.ImageDomain((48, 48)).encode(rows)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (FACE[0] / 255, "whole numbers"),
        (FACE[0][:40], "shape"),
        (FACE[0].astype(int) + 200, "within the declared bounds"),
        (FACE[0].astype(int) - 300, "within the declared bounds"),
        ({"picture": FACE[0]}, "one field 'image'"),
        ({"image": FACE[0], "person": 1}, "one field 'image'"),
        ({"image": [[1, 2], [3]]}, "nested"),
        ([["a"] * 48] * 48, "whole numbers"),
        ([[10**40] * 48] * 48, "whole numbers"),
        (None, "shape"),
        ("face", "shape"),
    ],
)
def test_queries_are_strict(query, reason):
    domain = dpx.ImageDomain((48, 48), (12, 12))
    with pytest.raises(QueryError, match=reason):
        domain.encode_query(query)
    with pytest.raises(QueryError, match="image 1: "):
        domain.encode_queries([FACE[0], query])


@pytest.mark.parametrize("records", [None, "faces", {"picture": FACE}, 3])
def test_a_batch_is_a_list_of_images(records):
    with pytest.raises(QueryError, match="list of arrays"):
        dpx.ImageDomain((48, 48)).encode_queries(records)


def test_nan_is_no_query():
    with pytest.raises(QueryError, match="within the declared bounds"):
        dpx.ImageDomain((1, 2), bounds=(0, 1)).encode_query([[0.5, np.nan]])


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (((48,),), "shape"),
        (((48, 0),), "shape"),
        (((48.0, 48),), "shape"),
        ((48,), "shape"),
        (((48, 48), (49, 1)), "more cells"),
        (((48, 48), (2, 2, 2)), "grid"),
        (((48, 48), None, (1, 0)), "below"),
        (((48, 48), None, (0, np.inf)), "finite"),
        (((48, 48), None, 255), "pair"),
    ],
)
def test_a_wrong_declaration_is_refused(arguments, reason):
    with pytest.raises(DomainError, match=reason):
        dpx.ImageDomain(*arguments)


@pytest.mark.parametrize("domain", [dpx.ImageDomain((48, 48), (12, 12)), dpx.ImageDomain((5, 4, 3), bounds=(-1, 1))])
def test_descriptions_come_back_exactly(domain, tmp_path):
    assert dpx.Domain.from_dict(domain.to_dict()) == domain
    assert dpx.Domain.from_json(domain.to_json()) == dpx.Domain.from_toml(domain.to_toml()) == domain
    domain.save(tmp_path / "faces.toml")
    assert dpx.Domain.load(tmp_path / "faces.toml").fingerprint == domain.fingerprint
    assert hash(domain) == hash(dpx.Domain.from_dict(domain.to_dict()))


def test_fingerprints_tell_declarations_apart():
    declared = [dpx.ImageDomain((48, 48)), dpx.ImageDomain((48, 48), (12, 12)), dpx.ImageDomain((48, 48), bounds=(0, 255))]
    assert len({domain.fingerprint for domain in declared}) == 3


def test_a_wrong_description_is_refused():
    with pytest.raises(DomainError, match="did you mean 'grid'"):
        dpx.Domain.from_dict({"kind": "image", "shape": [4, 4], "gird": [2, 2]})
    with pytest.raises(DomainError, match="shape"):
        dpx.Domain.from_dict({"kind": "image"})
    with pytest.raises(DomainError, match="does not describe"):
        dpx.ImageDomain.from_dict({"kind": "text"})


def test_it_prints_what_it_is():
    assert repr(dpx.ImageDomain((48, 48), (12, 12))) == "<ImageDomain: 48×48 images in 12×12 superpixels → 144 columns>"


@pytest.mark.parametrize(
    "mechanism",
    [dpx.Basic(1.0), dpx.Adaptive(1.0, steps=20), dpx.Enhanced(1.0, steps=20), dpx.Influence(1.0)],
    ids=lambda m: type(m).__name__,
)
def test_every_mechanism_explains_images_however_they_are_given(mechanism):
    domain = dpx.ImageDomain((48, 48), (2, 3))
    for rows in (FACE, list(FACE), {"image": FACE}):
        data = dpx.PrivateData(rows, domain, labels=np.array([1, -1, 1, -1, 1.0]))
        explainer = dpx.Explainer(data, dpx.Budget(8.0, 1e-6), mechanism)
        assert explainer.explain(FACE[2]).values.shape == (6,)
        history = History.from_dict(explainer.history.to_dict())
        assert history.domain == domain
        assert dpx.NonInteractive(history, "neighbour").explain(FACE[1]).plot().axes


@pytest.mark.slow
def test_an_explanation_is_drawn_over_the_image():
    domain = dpx.ImageDomain((48, 48), (6, 6))
    data = dpx.PrivateData(FACE, domain, labels=np.ones(5), size=5)
    descent = dpx.Basic(steps=5)  # it has no errors: nothing is left out of the picture
    explanation = dpx.Explainer(data, dpx.Budget(1.0, 1e-6), descent).explain(FACE[0])
    axes = explanation.plot().axes[0]
    picture, heat = axes.images
    assert picture.get_array().shape == (48, 48)
    np.testing.assert_array_equal(heat.get_array(), domain.image(explanation.values))
    safe = explanation.plot(palette="blue-orange").axes[0].images[1].get_cmap()
    assert safe(1.0) != heat.get_cmap()(1.0)
    read_back = dpx.Explanation.from_dict(explanation.to_dict())
    read_back.plot().savefig(io.BytesIO(), format="png", dpi=40)  # bars: a dict does not carry the domain
    assert len(read_back.plot().axes[0].images) == 0


@pytest.mark.slow
def test_the_documented_examples_run():
    page = (Path(__file__).parents[2] / "docs/images.md").read_text(encoding="utf-8")
    names = {}
    for example in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(example, "docs/images.md", "exec"), names)
    assert names["plane"].shape == (48, 48)
