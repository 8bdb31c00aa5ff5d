"""Every table and figure of the paper can be run, draws itself from what it stored, and has its line in the documentation."""

import json
import re
import subprocess
import sys
from math import sqrt
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from experiments.paper import __main__ as runner
from experiments.paper import (
    _fitted_models,
    _lime,
    _printed_texts,
    _private_models,
    _streams,
    _training,
    figure_1,
    figure_4,
    figure_5,
    figure_6,
)
from experiments.paper._study import Inputs
from experiments.text import RememberedTexts
from typer.testing import CliRunner

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.cli import app
from dpexplain.errors import DataError
from dpexplain.privacy import gdp, paper
from reproduction_support import MadeUp

PAGE = Path("docs/reproduction.md").read_text(encoding="utf-8")
NUMBERED = ["table-2", "table-3", *(f"figure-{i}" for i in range(1, 10))]  # table 1 is notation


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    return MadeUp(tmp_path_factory.mktemp("reproduced"))


class Silent:
    """A release that explains nothing: the real ones take half a second each and are tested elsewhere."""

    def __init__(self, data, budget, noise):
        self.domain, self.guarantee = data.domain, budget

    def explain(self, record, plane):
        assert plane in ("paper", "fitted")  # what studies judge by
        return SimpleNamespace(values=np.zeros(self.domain.width))


@pytest.fixture
def small(monkeypatch):
    """Fewer pixels, shards, steps and past answers, and stand-ins for LIME and releases: what is computed around them stays the same."""
    monkeypatch.setattr("dpexplain.release", Silent)
    monkeypatch.setattr(_streams, "SHARDS", 2)
    monkeypatch.setattr(_streams, "STEPS", 30)
    monkeypatch.setattr(_private_models, "has_opacus", lambda: False)
    monkeypatch.setattr(_private_models, "OWN", {"f_10": 10.0})
    monkeypatch.setattr(_private_models, "FACES_OWN", {"f": None, "f_2": 2.0})
    monkeypatch.setattr(figure_4, "HISTORY", 4)
    monkeypatch.setattr(figure_1, "GRIDS", (6, 4))
    monkeypatch.setattr(figure_6, "KINDS", {name: (6, one) for name, (_, one) in figure_6.KINDS.items()})
    monkeypatch.setattr(figure_6, "SEEN", (6, 6))
    monkeypatch.setattr(_training, "STEPS", 5)
    monkeypatch.setattr(_fitted_models, "MODELS", {"own f": None, "own f_10": 10.0})
    monkeypatch.setattr(_lime, "SAMPLES", 40)
    _lime.try_texts.cache_clear()


def test_every_numbered_table_and_figure_is_there_and_documented():
    assert set(NUMBERED) < set(runner.names())
    assert set(re.findall(r"^\| \[`([\w-]+)`\]", PAGE, re.MULTILINE)) == set(runner.names())


@pytest.mark.parametrize("name", runner.names())
def test_a_study_declares_itself(name):
    study = runner.study(name)
    assert study.name == name
    assert study.full > study.quick >= 1
    assert study.files
    assert all(file in PAGE for file in study.files)


@pytest.mark.parametrize(
    ("name", "sources"), [("figure-5", ("figure-2", "figure-3")), ("figure-8", ("figure-7",)), ("table-2", ("table-3",))]
)
def test_a_study_made_from_others_asks_for_as_many_queries(name, sources):
    """Else it would run them again, and overwrite what they had found."""
    sizes = {(one.full, one.quick) for one in map(runner.study, (name, *sources))}
    assert len(sizes) == 1


def test_what_a_study_is_made_from_counts_for_the_time_left():
    assert runner.with_sources(["figure-8", "figure-4"]) == {"figure-8", "figure-4", "figure-7"}
    assert runner.with_sources(runner.names()) == set(runner.names())


@pytest.mark.parametrize("together", [False, True])
def test_all_studies_but_those_made_from_others_run_once_beside_each_other(together):
    chains = runner.in_turn(runner.names(), together)
    asked = [name for chain in chains for name in chain]
    assert sorted(asked) == sorted(set(runner.names()) - set(runner.MADE_FROM_OTHERS))
    assert asked.index("table-2") == asked.index("table-3") + 1  # the second takes what the first has stored
    assert len(chains) == 2 if together else len(chains) > 8


@pytest.mark.slow
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", runner.names())
def test_it_runs_on_made_up_data_and_draws_from_its_file(name, inputs):
    found = inputs.result(runner.study(name), 2)
    assert found["rows"]
    assert found == json.loads((inputs.output / f"{name}.json").read_text(encoding="utf-8"))
    assert found == inputs.result(runner.study(name), 2)  # from the file
    runner.study(name).draw(found).savefig(inputs.output / f"{name}.png", dpi=30)
    assert (inputs.output / f"{name}.png").stat().st_size > 2000


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_long_walks_on_reviews_take_the_noise_of_several_seeds(inputs):
    lanes = _printed_texts.algorithms(100, 12, 7, 1000)
    assert {one.lanes for (_, kind), one in lanes.items() if kind == "paper, T = 3000"} == {2}
    noise = np.arange(7 * 1000 * 2).reshape(7, 1000, 2)
    walks = _printed_texts.in_walks(noise, lanes[0.1, "paper, T = 3000"])
    assert walks.shape == (2, 3000, 2)
    assert len(np.unique(walks)) == walks.size
    assert _printed_texts.in_walks(noise, lanes[0.1, "paper"]) is noise


def test_texts_that_were_read_before_are_encoded_the_same(monkeypatch):
    plain, remembering = dpx.TextDomain(["good", "bad", "long"]), RememberedTexts(["good", "bad", "long"])
    texts = ["a good, long film", "nothing known", "bad", "a good, long film", ""]
    for rows in (texts, texts[::-1], ["bad and good", *texts[:2]], []):
        assert np.array_equal(remembering.encode(rows).toarray(), plain.encode(rows).toarray())
    other = RememberedTexts(["long", "film"])  # the same texts in other words
    assert np.array_equal(other.encode(texts).toarray(), dpx.TextDomain(["long", "film"]).encode(texts).toarray())
    monkeypatch.setattr(dpx.TextDomain, "encode", lambda *_: pytest.fail("read again"))
    assert remembering.encode(texts).sum() == 5


def test_basic_answers_have_one_draw_of_noise_and_others_as_many_as_are_asked_for():
    kinds = {name: _streams.draws(one, 3) for name, one in _streams.our_mechanisms(0.1).items()}
    assert kinds["basic, ours"] == 1
    assert kinds["adaptive, ours"] == kinds["enhanced, ours"] == 3


def test_fitted_planes_about_several_models_are_judged_by_their_own_sums(inputs):
    """Curvature is computed once for all models; the optimum of each is the library's."""
    reviews = inputs.reviews
    rows, rng = reviews.domain.encode(reviews.texts), np.random.default_rng(0)
    labels = np.array([reviews.truth, np.where(rng.random(len(reviews.texts)) < 0.3, 1.0, -1.0)])
    data = [dpx.PrivateData(reviews.texts, reviews.domain, labels=one) for one in labels]
    text = reviews.texts[reviews.draw_positions(1)[0]]
    found = _fitted_models.Problem.around_text(text, data[0], rows, labels)
    values = rng.standard_normal((2, rows.shape[1])) / 9
    for k, one in enumerate(data):
        assert found.best[k] == pytest.approx(evaluation.optimum(one, text), abs=1e-8)
        assert found.of_papers_plane(k) == pytest.approx(evaluation.optimum(one, text, plane="paper"), abs=1e-7)
        scores, expected = found.scores(k, values), evaluation.score(values[1], one, text)
        assert scores["relative_excess"][1] == pytest.approx(expected.relative_excess)
        assert scores["excess_loss"][1] == pytest.approx(expected.excess_loss)
        assert scores["distance"][0] == pytest.approx(np.linalg.norm(values[0] - found.best[0]))


def test_faces_have_the_sums_and_optima_of_each_model():
    rng = np.random.default_rng(0)
    images, labels = rng.random((60, 4, 4)), np.where(rng.random((2, 60)) < 0.4, 1.0, -1.0)
    data = [dpx.PrivateData(images, dpx.ImageDomain(shape=(4, 4), bounds=(0, 1)), labels=one) for one in labels]
    found = list(figure_6.problems_of_models(data[0], data[0].domain.encode(images), labels, images[0]))
    for one, problem in zip(data, found, strict=True):
        moments = evaluation.local_moments(one, images[0], plane="paper")
        assert pytest.approx(moments.A / one.size, abs=1e-7) == problem.A  # rows are stored in single precision
        assert problem.b == pytest.approx(moments.b / one.size, abs=1e-7)
        assert problem.best == pytest.approx(evaluation.optimum(one, images[0], plane="paper"), abs=1e-4)
        expected = evaluation.score(labels[0, :16] / 9, one, images[0], plane="paper").relative_excess
        assert problem.scores(labels[:1, :16] / 9)["relative_excess"][0] == pytest.approx(expected, rel=1e-4)


def test_totals_over_shards_are_the_worst_shards():
    """Two shards, one seed, two queries each, in the order they are asked."""
    runs = [
        {"a": {"mu": np.array([[0.1, 0.2]]), "cosine": np.array([[1, 2]])}},
        {"a": {"mu": np.array([[0.3, 0.35]]), "cosine": np.array([[3, 4]])}},
    ]
    together = _streams.over_shards(runs)["a"]
    assert together["mu"].tolist() == [[0.1, 0.3, 0.3, 0.35]]
    assert together["cosine"].tolist() == [[1, 3, 2, 4]]


def test_errors_are_over_queries_and_over_draws_of_noise_that_answers_share():
    fresh = np.array([[1.0, 3.0], [3.0, 1.0]])  # (seeds, queries): seeds agree about the mean, and so do queries
    assert _streams.with_both_errors("loss", fresh) == {"loss": 2.0, "± loss": 0.0}
    shared = np.array([[1.0, 1.0], [3.0, 3.0]])  # one draw for all queries of a seed
    assert _streams.with_both_errors("loss", shared) == {"loss": 2.0, "± loss": 1.0}
    assert _streams.with_both_errors("loss", np.array([[1.0, 3.0]]))["± loss"] == 1.0  # one seed says nothing about seeds


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_the_paper_books_what_its_answers_claim(inputs):
    """Strong composition of (ε, δ) answers for the basic algorithm, whatever their noise really costs."""
    told = inputs.result(runner.study("figure-2"), 2)["told"]["basic, paper"]
    assert told["claimed"][-1] == pytest.approx(paper.strong_composition([0.01] * 2, 1e-6), rel=1e-3)
    assert gdp.epsilon(told["mu"][-1], 1e-6) < 0.01


@pytest.fixture
def rows():
    rng = np.random.default_rng(1)
    return rng.standard_normal((40, 6)), np.sign(rng.standard_normal(40)), rng.standard_normal((6, 3)), 4 * rng.standard_normal(3)


def sums(rows, truth, V, w, clip=True):
    return np.concatenate([g.ravel() for g in _training._clipped_sums(rows, truth, V, w, 1.0, (rows**2).sum(axis=1), clip)])


def test_one_row_moves_the_clipped_sums_by_at_most_one(rows):
    x, y, V, w = rows
    moved = [np.linalg.norm(sums(x, y, V, w) - sums(np.delete(x, i, 0), np.delete(y, i), V, w)) for i in range(len(y))]
    assert max(moved) <= 1 + 1e-9
    assert sum(norm > 1 - 1e-9 for norm in moved) > 5  # rows with long gradients are clipped, not dropped


def test_without_clipping_the_sums_are_the_gradient_of_the_logistic_loss(rows):
    x, y, V, w = rows

    def loss(V):
        return np.log1p(np.exp(-y * (np.tanh(x @ V) @ w))).sum()

    step = np.zeros_like(V)
    step[2, 1] = 1e-5
    slope = (loss(V + step) - loss(V - step)) / 2e-5
    assert sums(x, y, V, w, clip=False)[2 * V.shape[1] + 1] == pytest.approx(slope, rel=1e-6)


def test_training_adds_the_noise_that_its_epsilon_needs(rows, monkeypatch):
    """Without signal and momentum the weights after S steps are their start minus RATE/m times the sum of the noise."""
    x, y = rows[0], rows[1]
    wide = np.zeros((len(x), 600))
    monkeypatch.setattr(_training, "MOMENTUM", 0.0)
    start, end = (_training.train(wide, y, epsilon, seed=3).V for epsilon in (None, 2.0))
    expected = _training.RATE / len(y) * _training.STEPS / gdp.mu(2.0, 1e-5)
    assert (end - start).std() == pytest.approx(expected, rel=5 / sqrt(2 * end.size))


def command(*words):
    return CliRunner().invoke(app, ["reproduce", *map(str, words)], env={"DPEXPLAIN_DATA": ""})


def test_an_unknown_name_lists_the_known_ones(tmp_path):
    result = command("figure-99", "--data", tmp_path)
    assert result.exit_code == 2
    assert all(name in result.stderr for name in ("figure-99", *runner.names()))


def test_a_missing_folder_is_told(tmp_path):
    result = command("all", "--data", tmp_path / "nowhere")
    assert result.exit_code == 2
    assert "nowhere" in result.stderr
    assert "--data DIR" in result.stderr


def test_outside_a_checkout_it_says_where_to_go(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = command("all", "--data", tmp_path)
    assert result.exit_code == 2
    assert "checkout" in result.stderr


def test_a_missing_file_is_named_with_what_to_do(tmp_path):
    with pytest.raises(DataError, match=r"acs_income_2018\.parquet is not there\. figure-2 reads it: docs/reproduction"):
        Inputs(tmp_path, tmp_path).result(runner.study("figure-2"), 2)


def test_what_cannot_run_is_told_and_the_others_go_on(tmp_path, monkeypatch, capsys):
    (tmp_path / "figure-2.json").write_text(
        json.dumps({"study": "figure-2", "title": "t", "queries": 10, "seconds": 1, "rows": []})
    )
    monkeypatch.setattr(
        "sys.argv", ["", "figure-4", "figure-2", "--data", str(tmp_path), "-o", str(tmp_path), "--quick", "--json"]
    )
    monkeypatch.setattr(runner, "draw_figure", lambda *_: None)
    assert runner.main() == 2
    told = capsys.readouterr()
    assert json.loads(told.out) == {"figure-4": None, "figure-2": []}
    assert "acs_income_2018.parquet is not there" in told.err


def test_studies_run_beside_each_other_with_the_same_options(tmp_path, monkeypatch):
    ran = []
    monkeypatch.setattr(runner, "run_child", lambda command, _: ran.append(command[command.index("experiments.paper") + 1 :]))
    monkeypatch.setattr(runner, "attempt", lambda *_: None)
    monkeypatch.setattr("sys.argv", ["", "all", "--data", str(tmp_path), "-o", str(tmp_path), "--quick", "--jobs", "2", "--json"])
    runner.main()
    options = [f"--data={tmp_path}", f"--output={tmp_path}", "--quick", "--end-with-parent"]
    assert all(words[-4:] == options for words in ran)
    assert sorted(words[:-4] for words in ran) == sorted(runner.in_turn(runner.names(), together=True))


def test_children_end_with_a_killed_parent(tmp_path):
    """A parent that starts a child which would run for minutes, and is killed: the child is gone soon after."""
    child = "import time; from experiments.paper.__main__ import end_with_parent; end_with_parent(); print('here', flush=True); time.sleep(300)"
    parent = (
        "import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', sys.argv[1]], stdin=subprocess.PIPE);"
        "print(child.pid, flush=True); child.wait()"
    )
    with subprocess.Popen([sys.executable, "-c", parent, child], stdout=subprocess.PIPE, text=True) as started:
        told = {started.stdout.readline().strip(), started.stdout.readline().strip()}
        started.kill()
        assert "here" in told
        assert started.stdout.read() == ""  # ends only when the child, which has it too, has ended


def test_no_number_of_columns_gives_the_reported_spike_by_the_printed_noise_on_thirds_of_acs():
    said = figure_5.columns_that_fit("ACS13", 1_494_974, 0.01, 95)
    assert "thirds, printed noise: n = 1 gives 195 (n = 1 gives 195)" in said
    assert "thirds, exact noise: n = 111 gives 95" in said
    text = figure_5.columns_that_fit("Text", 8_815_568, 0.006, 91)
    assert "thirds, printed noise: n = 3 gives 95" in text  # 500 words are stated
