"""The demo tells its story from nothing, and leaves something to look at."""

import pytest
from rich.console import Console

from dpexplain.demo.people import DOMAIN, people
from dpexplain.demo.story import tell_story


def test_made_up_people_are_the_same_for_everybody_and_fit_their_domain():
    columns, rich = people(2000)
    again, _ = people(2000)
    assert columns == again
    encoded = DOMAIN.encode(columns)
    assert encoded.shape == (2000, DOMAIN.width)
    assert 0.1 < rich.mean() < 0.6
    blocks = [block for block in DOMAIN.blocks if block.kind == "one-hot"]
    assert all((encoded[:, block.start : block.stop].sum(axis=1) == 1).all() for block in blocks)


@pytest.mark.slow
def test_the_whole_story(tmp_path):
    console = Console(record=True, width=140)
    tell_story(console, tmp_path, 20_000)
    said = console.export_text()
    assert "Refused" in said
    assert "Everything released so far satisfies (ε=" in said
    assert (tmp_path / "explanation.png").read_bytes().startswith(b"\x89PNG")
    assert "Pay once, explain forever" in said
    assert "SHAP values that add up, from the same payment" in said
    assert (tmp_path / "explain.html").stat().st_size > 10_000
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "http" not in page.replace("http-equiv", "")
    assert "differential privacy" in page
