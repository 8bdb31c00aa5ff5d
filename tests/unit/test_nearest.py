"""Widths chosen for each question: from released records alone, on a public grid, and refused where rows would be read."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.cli import app
from dpexplain.core import weights
from dpexplain.demo.people import DOMAIN, people
from dpexplain.errors import ParameterError
from dpexplain.estimation.nearest import FEWEST, STEPS, choose_widths, wanted_share, width_at
from dpexplain.noise import SeededNoise
from dpexplain.service.config import load_config
from service_support import RECORD, write_config, write_owner_files

SIZE = 3000


@pytest.fixture(scope="module")
def data():
    rows, above = people(SIZE, seed=2)
    return dpx.PrivateData(rows, DOMAIN, labels=2.0 * above - 1)


@pytest.fixture(scope="module")
def release(data):
    return dpx.release(data, dpx.Budget(2.0, 1e-6), noise=SeededNoise(0))


def asked_records(count):
    rows, _ = people(count, seed=9)
    return [{name: column[i] for name, column in rows.items()} for i in range(count)]


def test_a_chosen_width_is_a_function_of_what_is_released(release, data, tmp_path):
    release.save(tmp_path / "people.dpx")
    alone = dpx.load(tmp_path / "people.dpx")
    before = data.spent
    for weight in (dpx.weights.Nearest(500), dpx.weights.Nearest(1500)):
        many, again = (one.explain_many(asked_records(12), weight=weight) for one in (release, alone))
        assert (many.widths == again.widths).all()
        assert (many.values == again.values).all()
    assert data.spent == before


def test_the_answer_is_that_of_the_width_it_states(release):
    records, weight = asked_records(10), dpx.weights.Nearest(600)
    many = release.explain_many(records, weight=weight, anchor=[0.1] * 10)
    for i, record in enumerate(records):
        one = release.explain(record, weight=weight)
        own = release.explain(record, weight=dpx.weights.Gaussian(one.details["width"]))
        assert one.values == pytest.approx(own.values)
        assert one.error == pytest.approx(own.error)
        assert one.details["effective_rows"] == own.details["effective_rows"]
        assert many[i].details["width"] == one.details["width"]
        assert many[i].details["anchor"] == 0.1
    paper = release.explain(records[0], weight=weight, plane="paper")
    assert paper.values == pytest.approx(
        release.explain(records[0], weight=dpx.weights.Gaussian(paper.details["width"]), plane="paper").values
    )
    assert release.influence(records[0], weight=weight).details["width"] == paper.details["width"]
    assert len(release.explain_many([], weight=weight)) == 0


def test_about_as_many_rows_count_as_were_asked_for(release):
    for rows in (300, 1000):
        found = release.explain_many(asked_records(20), weight=dpx.weights.Nearest(rows))
        counted = np.array([one.details["effective_rows"] for one in found])
        assert (counted >= rows * 0.999).all()
        narrower = release.explain_many(asked_records(20), weight=dpx.weights.Gaussian(float(found.widths.min()) * 0.5))
        assert all(one.details["effective_rows"] < rows for one in narrower)
        assert len(set(found.widths)) > 1  # where people are rare, the neighbourhood is wider


@given(st.integers(0, 10_000), st.floats(0.02, 0.9), st.floats(1e-3, 1e3))
def test_the_width_is_the_smallest_of_the_grid_and_scales_with_the_columns(seed, share, factor):
    rng = np.random.default_rng(seed)
    points, query = rng.random((200, 3)), rng.random((1, 3))
    (width,) = choose_widths(points, np.ones(200), query, share)

    def effective_share(w):
        local = np.exp(-(np.square(points - query).sum(axis=1) / w**2))
        return local.sum() ** 2 / (200 * np.square(local).sum())

    step = round(np.log2(width) * STEPS)
    assert width == width_at(step)
    assert effective_share(width) >= share * (1 - 1e-9)
    if effective_share(width_at(step - 1)) > 0:  # not so near that every weight vanishes
        assert effective_share(width_at(step - 1)) <= share * (1 + 1e-9)
    (scaled,) = choose_widths(factor * points, np.ones(200), factor * query, share)
    assert abs(np.log2(scaled / (factor * width))) <= 1.01 / STEPS


def test_never_so_few_records_that_they_cannot_tell():
    assert wanted_share(10, 1_000_000, 2000, 7) == 7 * FEWEST / 2000
    assert wanted_share(2000, 10_000, 2000, 7) == 0.2
    assert wanted_share(5000, 1000, 2000, 7) == 1.0


def test_more_rows_than_there_are_means_everybody(release):
    found = release.explain(RECORD, weight=dpx.weights.Nearest(10 * SIZE))
    assert found.values == pytest.approx(release.explain(RECORD, weight=dpx.weights.Gaussian(1e6)).values, abs=1e-6)


def test_it_can_be_a_releases_own_weight_and_comes_back_from_its_file(data, tmp_path):
    made = dpx.release(data, dpx.Budget(2.0, 1e-6), weight=dpx.weights.Nearest(800), noise=SeededNoise(0))
    made.save(tmp_path / "near.dpx")
    loaded = dpx.load(tmp_path / "near.dpx")
    assert loaded.weight == dpx.weights.Nearest(800)
    assert loaded.explain(RECORD).details["width"] == made.explain(RECORD).details["width"]
    made.publish(tmp_path / "near.html")
    assert "nearest weight (rows 800)" in (tmp_path / "near.html").read_text()


@pytest.mark.parametrize(
    "mechanism", [dpx.Basic, dpx.Adaptive, dpx.Enhanced, lambda **options: dpx.Influence(0.1, 1e-6, **options)]
)
def test_mechanisms_that_read_rows_refuse_it_before_anything_is_spent(data, mechanism):
    before = data.spent
    with pytest.raises(ParameterError, match="need a public width"):
        dpx.Explainer(data, dpx.Budget(1, 1e-6), mechanism(weight=dpx.weights.Nearest(500))).explain(RECORD)
    assert data.spent == before


def test_evaluation_and_non_interactive_answers_refuse_it_with_the_remedy(data):
    with pytest.raises(ParameterError, match="details\\['width'\\]"):
        evaluation.optimum(data, RECORD, weight=dpx.weights.Nearest(500))


@pytest.mark.parametrize("rows", [0, -1, float("nan"), float("inf"), "many", None, True])
def test_a_number_of_rows_makes_sense(rows):
    with pytest.raises(ParameterError, match="nearest rows"):
        dpx.weights.Nearest(rows)


def test_it_is_written_as_text_and_as_a_dict():
    assert weights.from_text("nearest:2000") == dpx.weights.Nearest(2000)
    assert weights.from_dict(dpx.weights.Nearest(50).to_dict()) == dpx.weights.Nearest(50)
    assert weights.from_text("gaussian:0.8") == dpx.weights.Gaussian(0.8)
    assert weights.from_text("stable") == dpx.weights.Stable()
    with pytest.raises(ParameterError, match="Write one of"):
        weights.from_text("nearest:few")


def test_the_command_line_takes_it_and_a_service_refuses_it_for_paid_answers(release, tmp_path):
    release.save(tmp_path / "people.dpx")
    words = ["explain", str(tmp_path / "people.dpx"), "--record", json.dumps(RECORD), "--weight", "nearest:500", "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["details"]["width"] > 0
    config = write_config(write_owner_files(tmp_path, 50))
    text = config.read_text().replace("[mechanism]", '[mechanism]\nweight = { kind = "nearest", rows = 500 }')
    config.write_text(text)
    with pytest.raises(ParameterError, match="need a public width"):
        load_config(config)


@pytest.mark.slow
def test_a_rehearsal_judges_by_the_width_that_each_answer_states(data):
    found = evaluation.rehearse(data, [2.0], draws=2, queries=8, weight=dpx.weights.Nearest(1000))
    assert found.weight == "nearest"
    assert 400 < found.near.median < 2500
    assert found.qualities[0].effective_rows >= 999
