"""The tutorial, pasted from top to bottom into a shell."""

from __future__ import annotations

import json
import re
import socket
import tomllib
from pathlib import Path

import pytest

from dpexplain.service.config import load_config
from service_support import write_owner_files

ROOT = Path(__file__).parents[2]


def bash_blocks(document):
    return "\n".join(re.findall(r"```bash\n(.*?)```", (ROOT / document).read_text(encoding="utf-8"), re.DOTALL))


@pytest.mark.slow
def test_it_runs_as_it_stands(shell, tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    blocks = bash_blocks("docs/tutorial.md").replace("8000", port)
    told, work = shell(f"trap 'kill $SERVICE 2>/dev/null || true' EXIT\n{blocks}"), tmp_path / "work"
    assert "Refused: the budget (ε=1, δ=1e-06) cannot pay" in told
    assert "people: whole." in told
    base, added, answer = map(float, re.search(r"([\d.]+) % on average ([+-][\d.]+) points = ([\d.]+) %", told).groups())
    assert abs(base + added - answer) < 0.2  # each was rounded
    shown = re.findall(r"(?m)^(\w+) +([+-][\d.]+) ± ([\d.]+) points +([+-][\d.]+)$", told)
    assert len(shown) == 8
    assert all(abs(float(private) - float(exact)) < 8 for _, private, _, exact in shown)  # points; the noise is fresh
    assert json.loads((work / "answer.json").read_text())["request_id"] == "tutorial-1"
    spent = json.loads((work / "guarantee.json").read_text())["spent"]["epsilon"]
    assert 0.9 < spent <= 1
    assert (work / "people.html").stat().st_size > 10_000


@pytest.mark.slow
def test_the_commands_of_the_guide_run_as_written(shell):
    told = shell(re.sub(r"(?m)^(dpexplain serve service\.toml)", r"\1 --check", bash_blocks("docs/how-to/command-line.md")))
    assert "Wrote people.dpx" in told
    assert "self-employed" in told
    assert "income: {" in told


def test_the_documented_configuration_is_accepted(tmp_path):
    blocks = re.findall(r"```toml\n(.*?)```", (ROOT / "docs/service.md").read_text(encoding="utf-8"), re.DOTALL)
    service, release, released_with_model, rows, model = blocks
    write_owner_files(tmp_path, 300)
    (tmp_path / "people.parquet").rename(tmp_path / "income.parquet")
    asked = rows.replace("label =", "# label =") + model
    for text in (service + release, service + released_with_model, service + rows, service + asked):
        tomllib.loads(text)
        (tmp_path / "service.toml").write_text(text, encoding="utf-8")
        assert load_config(tmp_path / "service.toml").settings.workers == 2
