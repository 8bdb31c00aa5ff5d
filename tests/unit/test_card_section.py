"""A release writes its section of a model card from public facts alone."""

import numpy as np
import pytest
from typer.testing import CliRunner

import dpexplain as dpx
from dpexplain.cli import app

DOMAIN = dpx.Domain(
    [dpx.Numeric("age", 17, 97), dpx.Categorical("a|b *c*", values=[f"v{i}" for i in range(20)]), dpx.Binary("city")]
)


@pytest.fixture(scope="module")
def release():
    rng = np.random.default_rng(0)
    rows = {"age": rng.uniform(17, 97, 300), "a|b *c*": rng.choice(["v1", "v2"], 300), "city": rng.random(300) < 0.5}
    data = dpx.PrivateData(rows, DOMAIN, labels=rng.uniform(-1, 1, 300), size=1_000)
    return dpx.release(data, dpx.Budget(1.0, 1e-6))


def test_it_states_the_guarantee_the_declarations_and_the_limits(release):
    text = release.model_card_section()
    assert str(release.guarantee) in text
    assert "| ε, δ in total | 1, 1e-06 |" in text
    assert "| rows, a public number | 1,000 |" in text
    assert "| age | numeric | 17 to 97 |" in text
    assert "| city | binary | yes or no |" in text
    assert r"| a\|b \*c\* | categorical | v0, v1" in text
    assert "… (20 in all)" in text
    assert release.digest in text
    assert "It says nothing about the records the model was trained on" in text


def test_the_command_line_writes_the_same(release, tmp_path):
    release.save(tmp_path / "a.dpx")
    shown = CliRunner().invoke(app, ["card", str(tmp_path / "a.dpx")])
    assert shown.exit_code == 0
    assert shown.stdout == release.model_card_section()
    target = tmp_path / "card.md"
    assert CliRunner().invoke(app, ["card", str(tmp_path / "a.dpx"), "-o", str(target)]).exit_code == 0
    assert target.read_text(encoding="utf-8") == shown.stdout
    assert CliRunner().invoke(app, ["card", str(tmp_path / "a.dpx"), "-o", str(target)]).exit_code == 2


@pytest.mark.parametrize(
    ("domain", "rows", "declared"),
    [
        (dpx.TextDomain(["good", "bad"]), ["good film", "bad film"] * 50, "a public vocabulary of 2 words"),
        (dpx.ImageDomain(shape=(4, 4), grid=(2, 2)), np.zeros((100, 4, 4), dtype=np.uint8), "2 x 2"),
        (dpx.Domain.encoded(2), np.full((100, 2), 0.5), "| encoded columns | 2 |"),
    ],
    ids=["texts", "images", "vectors"],
)
def test_every_domain_has_one(domain, rows, declared):
    data = dpx.PrivateData(rows, domain, labels=np.tile([1.0, -1.0], 50))
    assert declared in dpx.release(data, dpx.Budget(1.0, 1e-6)).model_card_section()
