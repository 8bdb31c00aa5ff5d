"""The page's modules under node: the same numbers as Python, without a browser."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from dpexplain.core import weights
from dpexplain.demo.people import DOMAIN
from dpexplain.domain import Date, Datetime, Domain
from dpexplain.domain.text import TextDomain, words_of
from dpexplain.release.page import render
from release_support import StandIn

TESTS = Path(__file__).parents[1] / "web"
RECORD = dict(age=40, hours=45, education="degree", work="private", trade="science", region="north", married=True, city=True)


TEXTS = [
    "A GOOD film<br />don’t miss: 10/10!", "", "_under_ <br", "rock'n'roll 'quoted' dogs'", "ÉTÉ Straße İstanbul ΟΔΟΣ 映画 ½ x²", "\ud800 lone",
]  # fmt: skip
DATES = Domain([Date("opened", "2000-01-01", "2020-01-01"), Datetime("seen", "2020-01-01", "2020-01-02")])
TEXT = TextDomain(["film", "good", "don't", "été", "10", "never"])


def case(release, record=RECORD, entries=None):
    values, error = release.explain(record)
    data = json.loads(render(release).split('id="data">')[1].split("</script>")[0])
    return {
        "data": data,
        "record": list(record.values()) if entries is None else entries,
        "point": release.domain.encode_query(record).tolist(),
        "values": values.tolist(),
        "error": error.tolist(),
    }


def test_under_node(tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip(
            "node was not found, the page's modules are NOT tested outside the browser: apt-get install nodejs (version 20 or later)"
        )
    kinds = [weights.Stable(1.0), weights.Gaussian(0.7), weights.Window(1.4), weights.Inverse(0.5)]
    cases = [
        case(StandIn(DOMAIN, seed=seed, weight=kind, radius=radius)) for seed, kind in enumerate(kinds) for radius in (0.4, 6.0)
    ]
    cases.append(case(StandIn(DATES), {"opened": "2010-06-01", "seen": "2020-01-01T06:00:01"}))
    cases.append(case(StandIn(TEXT), "film don't 10", ["film don't 10"]))
    (tmp_path / "texts.json").write_text(json.dumps([[text, sorted(words_of(text))] for text in TEXTS]), encoding="utf-8")
    (tmp_path / "cases.json").write_text(json.dumps(cases), encoding="utf-8")
    tests = sorted(map(str, TESTS.glob("*.test.mjs")))
    assert tests
    run = subprocess.run(
        [node, "--test", *tests],
        env={"CASES": str(tmp_path / "cases.json"), "TEXTS": str(tmp_path / "texts.json")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
