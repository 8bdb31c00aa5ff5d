"""SHAP values of words, from a release of texts."""

import json

import numpy as np
import pandas as pd
import pytest

import dpexplain as dpx
from dpexplain.domain.text import words_of
from dpexplain.errors import DataError, ParameterError, QueryError
from dpexplain.estimation.word_shapley import WordBackground
from dpexplain.noise.seeded import SeededNoise
from dpexplain.release.text_shapley import OTHER_WORDS, ShownText

WORDS = ["great", "bad", "not", "film", "plot", "the", "music"]
DOMAIN = dpx.TextDomain(WORDS)
TEXT = "The music is GREAT, the plot not!"


def answers(texts):
    """Ignores "film"; "not" turns "great" round; "superb" is outside the vocabulary."""
    return np.array([np.tanh(_score(words_of(text))) for text in texts])


def _score(words):
    turned = 1 - 2 * ("not" in words)
    return (
        turned * ("great" in words) - ("bad" in words) + 0.3 * ("music" in words) + 0.3 * ("plot" in words) + ("superb" in words)
    )


def texts(count=4000, seed=0):
    rng = np.random.default_rng(seed)
    topic = rng.random(count) < 0.4
    chance = np.where(topic[:, None], [0.5, 0.1, 0.2, 0.6, 0.3, 0.8, 0.4], [0.2, 0.3, 0.3, 0.4, 0.3, 0.8, 0.1])
    return [" ".join(np.array(WORDS)[row]) for row in rng.random((count, len(WORDS))) < chance]


@pytest.fixture(scope="module")
def release():
    data = dpx.PrivateData(texts(), DOMAIN, model=answers)
    return dpx.release(data, dpx.Budget(2.0, 1e-6), noise=SeededNoise(0))


def exact(text, rows):
    """Shapley values over all orders' coalitions, words as players, against true texts."""
    from math import comb

    z, x, n = DOMAIN.encode_query(text) > 0, DOMAIN.encode(rows).toarray() > 0, len(WORDS)
    members = (np.arange(2**n)[:, None] >> np.arange(n)) & 1 > 0
    kinds, counts = np.unique(x, axis=0, return_counts=True)
    mixed = np.where(members[:, None], z, kinds).reshape(-1, n)
    worth = answers([" ".join(np.array(WORDS)[row]) for row in mixed]).reshape(len(members), -1) @ (counts / counts.sum())
    size = members.sum(axis=1)
    return np.array(
        [
            sum((worth[i | 1 << j] - worth[i]) / (n * comb(n - 1, size[i])) for i in range(2**n) if not members[i, j])
            for j in range(n)
        ]
    )


def test_values_add_up_to_the_answer_about_the_text_itself(release):
    found = release.shapley(TEXT)
    assert found.answer == pytest.approx(float(answers([TEXT])[0]), abs=1e-12)
    assert found.base + found.values.sum() == pytest.approx(found.answer, abs=1e-12)
    assert found.names == (*WORDS, OTHER_WORDS)
    assert found.record == (True, False, True, False, True, True, True, True)
    assert found.details["quantity"] == "shapley"
    assert found.details["source"] == "words"
    assert found.details["same_model"]


def test_they_are_near_the_exact_values_over_true_texts_and_within_their_bars(release):
    truth, found = exact(TEXT, texts()), release.shapley(TEXT)
    assert np.abs(found.values[:-1] - truth).max() < 0.05
    assert (np.abs(found.values[:-1] - truth) <= 3 * found.error[:-1] + 1e-9).all()


def test_a_word_that_the_model_ignores_gets_zero_within_its_bar(release):
    found = release.shapley(TEXT)
    for word in ("film", "the"):
        j = WORDS.index(word)
        assert abs(found.values[j]) <= 2 * found.error[j] + 1e-12
        assert abs(found.values[j]) < 0.01


def test_words_that_the_model_treats_alike_get_alike_values(release):
    """ "music" and "plot" add the same; the background has them at different frequencies, so they are compared where both are certain."""
    twins = [text.replace("plot", "music plot").replace("music music", "music") for text in texts()]
    together = [text for text in twins if ("music" in text) == ("plot" in text)]
    made = dpx.release(dpx.PrivateData(together, DOMAIN, model=answers), dpx.Budget(8.0, 1e-6), noise=SeededNoise(1))
    found = made.shapley(TEXT)
    a, b = WORDS.index("music"), WORDS.index("plot")
    assert abs(found.values[a] - found.values[b]) <= 2 * (found.error[a] + found.error[b])


def test_words_outside_the_vocabulary_count_together(release):
    found = release.shapley("superb film")
    assert found.values[-1] > 0.5
    assert release.shapley("great film").values[-1] == 0
    assert release.shapley("great film").error[-1] == 0


def test_many_texts_are_the_single_ones(release):
    batch = release.shapley_many([TEXT, "bad film"], background=128)
    assert len(batch) == 2
    assert np.allclose(batch[1].values, release.shapley("bad film", background=128).values)
    assert batch[0].plot() is not None


def test_a_release_from_a_file_takes_the_model(release, tmp_path):
    release.save(tmp_path / "texts.dpx")
    loaded = dpx.load(tmp_path / "texts.dpx")
    with pytest.raises(ParameterError, match="model="):
        loaded.shapley(TEXT)
    found = loaded.shapley(TEXT, model=answers)
    assert np.allclose(found.values, release.shapley(TEXT).values)
    assert not found.details["same_model"]


@pytest.mark.parametrize(
    "broken", [lambda rows: 1 / 0, lambda rows: np.full(len(rows), np.nan), lambda rows: np.zeros(3), "model"]
)
def test_a_model_that_cannot_answer_is_found_before_anything_is_said(release, broken):
    with pytest.raises(DataError):
        release.shapley(TEXT, model=broken)


@pytest.mark.parametrize("record", ["", "...", 3, None, {"text": "great"}])
def test_what_is_no_text_is_refused(release, record):
    with pytest.raises(QueryError):
        release.shapley(record)


def test_the_model_is_shown_texts_as_at_registration():
    shown = []

    def listening_model(rows):
        shown.append(type(rows))
        return answers(list(rows["review"]) if isinstance(rows, pd.DataFrame) else list(rows))

    rows, domain = texts(200), dpx.TextDomain(WORDS, column="review")
    for given, kind in (
        (pd.DataFrame({"review": rows, "stars": 3}), pd.DataFrame),
        (pd.Series(rows), pd.Series),
        (np.array(rows), np.ndarray),
    ):
        columned = domain if isinstance(given, pd.DataFrame) else DOMAIN
        made = dpx.release(dpx.PrivateData(given, columned, model=listening_model), dpx.Budget(2.0, 1e-6), noise=SeededNoise(0))
        shown.clear()
        made.shapley(TEXT, background=64)
        assert set(shown) == {kind}


def test_mixtures_keep_the_order_of_the_text():
    text = ShownText.of(TEXT, DOMAIN)
    everyone, nobody = np.ones(len(WORDS) + 1, dtype=bool), np.zeros(len(WORDS) + 1, dtype=bool)
    background = np.array([word in ("bad", "music") for word in WORDS])
    assert text.mix(background, everyone) == TEXT
    assert text.mix(background, nobody) == "music bad"
    assert text.mix(background, np.append(text.has[:-1], False)) == "The music GREAT the plot not bad"
    some = np.array([word in ("great", "bad") for word in WORDS] + [True])
    assert text.mix(background, some) == "music is GREAT,   !"


def test_a_background_that_is_the_text_itself_leaves_nothing_to_add():
    has = np.array([True, False, False])
    background = WordBackground(np.tile(has[:-1], (8, 1)), np.full(8, 1 / 8), np.full(8, 0.3), 0.01, 0.0)
    values, errors = background.explain(lambda texts, joined: np.zeros(0), np.arange(8), has, np.zeros(3, dtype=bool), 0.3)
    assert (values == 0).all()
    assert (errors == 0).all()


def test_the_command_line_answers_with_the_model(release, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from dpexplain.cli import app

    release.save(tmp_path / "texts.dpx")
    (tmp_path / "scorer.py").write_text("from tests.unit.test_text_shapley import answers\n")
    monkeypatch.syspath_prepend(tmp_path)
    asked = ["explain", str(tmp_path / "texts.dpx"), "--record", json.dumps(TEXT), "--json"]
    answer = CliRunner().invoke(app, [*asked, "--method", "shapley", "--model", "scorer:answers"])
    assert answer.exit_code == 0, answer.output
    assert np.allclose(json.loads(answer.stdout)["values"], release.shapley(TEXT).values)


@pytest.mark.slow
def test_a_service_with_the_model_answers_with_contributions_that_add_up(monkeypatch):
    from dpexplain.registration.model_sources import ModelSource
    from dpexplain.registration.options import RegistrationOptions
    from dpexplain.service.backend import open_with_model
    from dpexplain.service.config import AskedModel

    made = dpx.release(dpx.PrivateData(texts(500), DOMAIN, model=answers), dpx.Budget(2.0, 1e-6))
    asked = AskedModel(ModelSource("tests.unit.test_text_shapley:answers"), RegistrationOptions())
    added = open_with_model(made, asked).explain(TEXT, "1").contributions()
    assert added.details["source"] == "words"
    assert added.base + added.values.sum() == pytest.approx(float(answers([TEXT])[0]))


def test_what_stays_with_tables_says_so(release):
    for question in (release.summary, release.surrogate, lambda: release.relabel(answers)):
        with pytest.raises(ParameterError, match="reference records"):
            question()
