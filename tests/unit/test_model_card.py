"""Model cards: read from anywhere they are kept, refused where they say nothing, and combined with what was spent on explanation data."""

import json

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.errors import ParameterError
from dpexplain.noise import SeededNoise
from dpexplain.privacy import training
from dpexplain.privacy.model_card import ModelCard
from dpexplain.privacy.person_guarantees import PersonGuarantees

DOMAIN = dpx.Domain([dpx.Numeric("a", 0, 1), dpx.Numeric("b", 0, 1)])
CARD = ModelCard(2.0, 1e-5, trainer="Opacus 1.6.0", rows=35_000, parameters={"noise_multiplier": 1.1, "steps": 300})
RNG = np.random.default_rng(0)
ROWS = {"a": RNG.random(400), "b": RNG.random(400)}
LABELS = np.where(ROWS["a"] > 0.5, 1.0, -1.0)


def data(**options):
    return dpx.PrivateData(ROWS, DOMAIN, labels=LABELS, **options)


def ask_once(private, plane="paper"):
    explainer = dpx.Explainer(private, dpx.Budget(1.0, 1e-6), dpx.Basic(0.5, 1e-6, plane=plane), noise=SeededNoise(0))
    explainer.explain({"a": 0.4, "b": 0.5})
    return private


def test_a_card_is_read_from_an_object_a_mapping_and_a_file(tmp_path):
    CARD.save(tmp_path / "card.json")
    for given in (CARD, CARD.to_dict(), {"epsilon": 2.0, "delta": 1e-5}, tmp_path / "card.json", str(tmp_path / "card.json")):
        found = data(model_card=given).model_card
        assert (found.epsilon, found.delta) == (2.0, 1e-5)
    assert ModelCard.read(tmp_path / "card.json") == CARD
    assert data().model_card is None


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"delta": 1e-5}, "states no epsilon"),
        ({"epsilon": -1.0}, "epsilon must be a number of at least 0"),
        ({"epsilon": "2"}, "epsilon must be a number"),
        ({"epsilon": float("nan")}, "epsilon must be"),
        ({"epsilon": 2.0, "delta": 1.0}, "delta must be a number from 0"),
        ({"epsilon": 2.0, "accuracy": 0.8}, "no field 'accuracy'"),
        ({"epsilon": 2.0, "format": "model card of somebody else"}, "not version 1"),
        ("nowhere.json", "cannot be read"),
        (7, "Pass a ModelCard"),
    ],
)
def test_what_is_no_card_is_refused_with_the_remedy(given, says):
    with pytest.raises(ParameterError, match=says):
        data(model_card=given)


def test_a_file_that_is_no_card_is_refused(tmp_path):
    for text, says in (("{", "cannot be read"), ("[1]", "not a JSON object")):
        (tmp_path / "card.json").write_text(text, encoding="utf-8")
        with pytest.raises(ParameterError, match=says):
            data(model_card=tmp_path / "card.json")


def test_a_private_models_guarantee_is_its_own_and_adds_up_for_a_person_in_both():
    private = ask_once(data(model_card=CARD))
    found = private.guarantees
    assert (found.training.epsilon, found.training.delta) == (2.0, 1e-5)
    assert found.both.epsilon == pytest.approx(2.0 + private.spent.epsilon)
    assert found.both.delta == pytest.approx(1e-5 + 1e-6)
    lines = str(found).splitlines()
    assert [line.split(":")[0] for line in lines] == [
        "In the explanation data only",
        "In the model's training data only",
        "In both",
    ]
    assert "(ε=2, δ=1e-05)" in lines[1]
    assert lines[1].endswith(str(CARD))
    told = found.to_dict()
    assert told["training"]["kind"] == "post-processed"
    assert told["model_card"]["trainer"] == "Opacus 1.6.0"
    json.dumps(told, allow_nan=False)


def test_post_processing_needs_no_last_step():
    """Without the last noisy step the model's own (ε̂, δ̂) is the statement, not the unconditional one."""
    private = ask_once(data())
    found = training.guarantee(private.spent, private.size, model_epsilon=2, model_delta=1e-5)
    assert (found.epsilon, found.delta) == (2, 1e-5)


def test_without_a_card_nothing_is_promised_to_those_who_trained_the_model():
    found = ask_once(data()).guarantees
    assert found.training is None
    assert found.both is None
    assert str(found).count("no model card says how the model was trained") == 2


def test_a_model_that_is_not_private_has_the_unconditional_statement_only():
    found = ask_once(data(model_card={"epsilon": None})).guarantees
    assert isinstance(found.training, training.Unconditional)
    assert "too large to protect anyone. The model was trained without differential privacy, as its model card says." in str(
        found
    )


def test_published_answers_of_a_model_that_is_not_private_promise_nothing():
    stated = dpx.Guarantee(0.1, 1e-6, dpx.PrivateData(ROWS, DOMAIN, labels=LABELS).setting.neighbours, model_answers=True)
    found = PersonGuarantees.of(stated, 400, ModelCard(None))
    assert found.training is None
    assert "its training was not private" in str(found)
    private = PersonGuarantees.of(stated, 400, CARD)
    assert (private.training.epsilon, private.training.delta) == (2.0, 1e-5)


def test_the_papers_calibration_promises_nothing_to_anybody_in_both():
    private = data(model_card=CARD)
    explainer = dpx.Explainer(private, dpx.Budget(1.0, 1e-6), dpx.Adaptive(calibration="paper"), noise=SeededNoise(0))
    explainer.explain({"a": 0.4, "b": 0.5})
    found = private.guarantees
    assert found.both is None
    assert "In both: nothing is promised, as for the explanation data." in str(found)


def test_nothing_spent_is_nothing_learnt_beyond_the_model():
    found = data(model_card=CARD).guarantees
    assert found.training.epsilon == 0.0


def test_shards_keep_the_card():
    for shard in data(model_card=CARD, size=400).split(2):
        assert shard.model_card == CARD


def test_a_card_says_in_a_sentence_what_it_states():
    assert str(CARD) == (
        "The model was trained by Opacus 1.6.0 with (ε̂=2, δ̂=1e-05)-differential privacy for one record of the training data, "
        "added or removed, as its model card says."
    )
    assert str(ModelCard(None)) == "The model was trained without differential privacy, as its model card says."


def test_the_command_line_prints_what_each_person_is_promised(tmp_path):
    import pandas as pd
    from typer.testing import CliRunner

    from dpexplain.cli import app

    pd.DataFrame(ROWS | {"y": LABELS > 0}).to_parquet(tmp_path / "rows.parquet")
    DOMAIN.save(tmp_path / "domain.toml")
    CARD.save(tmp_path / "card.json")
    files = [str(tmp_path / name) for name in ("rows.parquet", "domain.toml", "made.dpx", "card.json")]
    words = ["release", files[0], "--domain", files[1], "--label", "y", "--epsilon", "1", "--delta", "1e-6", "-o", files[2]]
    result = CliRunner().invoke(app, [*words, "--model-card", files[3]])
    assert result.exit_code == 0, result.output
    assert "In the model's training data only: Explanations are (ε=2, δ=1e-05)" in result.output


def test_a_release_keeps_the_card_in_its_file(tmp_path):
    made = dpx.release(data(model_card=CARD), dpx.Budget(1.0, 1e-6))
    made.save(tmp_path / "made.dpx")
    read = dpx.load(tmp_path / "made.dpx")
    assert read.model_card == CARD
    assert read.guarantees.both.epsilon == pytest.approx(2.0 + made.guarantee.epsilon)
    section = read.model_card_section()
    assert str(CARD) in section
    assert "- In both: For a person whose records are both" in section
    assert "says nothing about the records the model was trained on" not in section


def test_a_release_without_a_card_promises_nothing_to_those_who_trained_the_model(tmp_path):
    dpx.release(data(), dpx.Budget(1.0, 1e-6)).save(tmp_path / "made.dpx")
    found = dpx.load(tmp_path / "made.dpx")
    assert found.model_card is None
    assert found.guarantees.training is None


def test_another_model_on_the_same_records_has_not_this_ones_card(tmp_path):
    def first(rows):
        return np.asarray(rows["a"]) * 2 - 1

    def second(rows):
        return np.asarray(rows["b"]) * 2 - 1

    private = dpx.PrivateData(ROWS, DOMAIN, model=first, model_card=CARD)
    made = dpx.release(private, dpx.Budget(1.0, 1e-6), reference=1024, noise=SeededNoise(0))
    assert made.relabel(first).model_card == CARD
    other = made.relabel(second)
    assert other.model_card is None
    made.with_model("second", other).save(tmp_path / "both.dpx")
    both = dpx.load(tmp_path / "both.dpx")
    assert (both.model_card, both.of("second").model_card) == (CARD, None)
