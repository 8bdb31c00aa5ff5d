"""An owner's day, by the commands of docs/operations.md as they stand there: keys, who asked, a new period, the archive, an auditor, Prometheus."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from dpexplain.privacy import gdp
from dpexplain.privacy.budget import round_up
from service_support import OTHER, RECORD, Running, write_config, write_owner_files

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
PERIOD = {"data": {"name": "income-2026"}, "ledger": {"url": "sqlite:///income-2026.ledger"}}


def block(language, word):
    """The page's only block of this language that has this word."""
    (found,) = [text for text in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL) if word in text]
    return found


def ask(url, key, record, path="/v1/explain"):
    body = None if record is None else json.dumps({"record": record}).encode()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    try:
        with urlopen(Request(url + path, data=body, headers=headers), timeout=60) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as refusal:
        return refusal.code, refusal.read().decode()


def key_in(told):
    return re.search(r"dpx_\S+", told).group()


def listed_id(told):
    """Ids are parts of keys, and stand in lists by themselves."""
    (found,) = re.findall(r"(?m)(?:^|\s)([0-9a-f]{12})\s", told)
    return found


def test_an_owners_day(shell, tmp_path):
    """One service through a year's end: nothing that the page tells an owner to do fails, and what it says comes true."""
    work = write_owner_files(tmp_path / "work", 500)
    config = write_config(work, **PERIOD)
    told = shell("dpexplain serve keys add --role analyst --name 'City audit office 2026'; dpexplain serve keys list")
    old, old_id = key_in(told), listed_id(told)
    with Running(config) as service:
        assert ask(service.url, old, RECORD)[0] == 200
        told = shell(block("bash", "keys revoke").replace("1f0c9a7be2d4", old_id))  # while it runs
        new, new_id = key_in(told), listed_id(told.replace(old_id, ""))
        assert ask(service.url, old, RECORD)[0] == 401
        assert [ask(service.url, new, one)[0] for one in (RECORD, OTHER)] == [200, 200]
        check_metrics(ask(service.url, new, None, "/metrics")[1], tmp_path)
    assert service.process.returncode == 0
    shutil.copy(service.log, work / "serve.log")
    if shutil.which("jq"):
        asked = shell(block("bash", "serve.log"))
        assert f"{old_id} 1 answers, each at ε=0.3" in asked
        assert f"{new_id} 2 answers, each at ε=0.3" in asked
    open_a_new_period(shell, config, new)
    hand_to_an_auditor(shell, work)


def open_a_new_period(shell, config, key):
    """As the page's lines for service.toml say, in the same folder. The statement about both periods composes three answers and one."""
    text = config.read_text(encoding="utf-8")
    for name in ("name", "url"):
        (line,) = re.findall(rf"(?m)^{name} = .*2027.*$", block("toml", "2027"))
        text = re.sub(rf'(?m)^{name} = ".*2026.*"$', line, text)
    assert "2026" not in text
    config.write_text(text, encoding="utf-8")
    with Running(config) as service:
        before = json.loads(ask(service.url, key, None, "/v1/guarantee")[1])
        assert before["spent"]["epsilon"] == 0
        assert ask(service.url, key, RECORD)[0] == 200
    spent = gdp.epsilon(2 * gdp.mu(0.3, 1e-6), 1e-6)
    assert f"ε={round_up(spent)}" in shell(block("bash", "ledger total"))


def hand_to_an_auditor(shell, work):
    """The archive is the ledger, and its export is checked by an auditor who has neither rows nor dpexplain."""
    told = shell(block("bash", "ledger export"))
    assert "whole" in told
    assert "whole" in shell("dpexplain ledger verify sqlite:///archive/income-2026.ledger --head heads-2026.json")
    for name in ("income-2026.jsonl", "archive/income-2026.ledger"):
        assert (work / name).stat().st_mode & 0o077 == 0
    before = "0" * 64
    for text in (work / "income-2026.jsonl").read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        stated = json.dumps(line["entry"], sort_keys=True, separators=(",", ":"))
        assert line["entry"]["previous"] == before
        before = hashlib.sha256(stated.encode()).hexdigest()
        assert line["hash"] == before
    head = json.loads((work / "heads-2026.json").read_text(encoding="utf-8"))["heads"]["income-2026"]
    assert head["hash"] == before


def check_metrics(text, folder):
    """Prometheus reads the metrics, the page's scrape configuration and the alerts."""
    assert "dpexplain_spent_epsilon" in text
    if (promtool := shutil.which("promtool")) is None:
        return
    subprocess.run([promtool, "check", "metrics"], input=text, text=True, check=True, capture_output=True)
    (folder / "dpexplain.key").write_text("dpx_key", encoding="utf-8")
    scrape = block("yaml", "scrape_configs").replace("/etc/prometheus/dpexplain.key", str(folder / "dpexplain.key"))
    rules = f'rule_files: ["{ROOT / "deploy/prometheus-alerts.yml"}"]\n'
    (folder / "prometheus.yml").write_text(rules + scrape, encoding="utf-8")
    found = subprocess.run([promtool, "check", "config", folder / "prometheus.yml"], check=True, capture_output=True, text=True)
    assert re.search(r"SUCCESS: 7 rules found", found.stdout), found.stdout
