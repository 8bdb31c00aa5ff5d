"""The page's modules under node: the same numbers as Python, without a browser."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from dpexplain.core import weights
from dpexplain.demo.people import DOMAIN
from dpexplain.publish import render
from release_support import StandIn

TESTS = Path(__file__).parents[1] / "web"
RECORD = dict(age=40, hours=45, education="degree", work="private", trade="science", region="north", married=True, city=True)


def case(release):
    values, error = release.explain(RECORD)
    data = json.loads(render(release).split('id="data">')[1].split("</script>")[0])
    return {
        "data": data,
        "record": list(RECORD.values()),
        "point": DOMAIN.encode_query(RECORD).tolist(),
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
    (tmp_path / "cases.json").write_text(json.dumps(cases), encoding="utf-8")
    tests = sorted(map(str, TESTS.glob("*.test.mjs")))
    assert tests
    run = subprocess.run(
        [node, "--test", *tests],
        env={"CASES": str(tmp_path / "cases.json")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
