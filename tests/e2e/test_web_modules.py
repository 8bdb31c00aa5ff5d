"""The page's modules under node: the same numbers as Python, without a browser."""

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.answers.contributions import Contributions
from dpexplain.core import weights
from dpexplain.core.answer_scale import AnswerScale
from dpexplain.demo.people import DOMAIN, people
from dpexplain.domain import Binary, Categorical, Date, Datetime, Domain, Numeric
from dpexplain.domain.text import TextDomain, words_of
from dpexplain.estimation import calibrate
from dpexplain.noise.seeded import SeededNoise
from dpexplain.release.page import render
from release_support import StandIn

TESTS = Path(__file__).parents[1] / "web"
RECORD = dict(age=40, hours=45, education="degree", work="private", trade="science", region="north", married=True, city=True)


TEXTS = [
    "A GOOD film<br />don’t miss: 10/10!", "", "_under_ <br", "rock'n'roll 'quoted' dogs'", "ÉTÉ Straße İstanbul ΟΔΟΣ 映画 ½ x²", "\ud800 lone",
]  # fmt: skip
DATES = Domain([Date("opened", "2000-01-01", "2020-01-01"), Datetime("seen", "2020-01-01", "2020-01-02")])
GAPS = Domain(
    [
        Numeric("income", 0, 100, missing=30),
        Categorical("work", ["a", "b"], other="else"),
        Categorical("home", ["a", "b"], optional=True),
        Date("since", "2000-01-01", "2020-01-01", missing="2005-01-01"),
        Binary("married", missing=True),
    ]
)
TEXT = TextDomain(["film", "good", "don't", "été", "10", "never"])


def case(release, record=RECORD, entries=None):
    return case_of(release, record, entries, *release.explain(record))


def case_of(release, record, entries, values, error):
    data = json.loads(render(release).split('id="data">')[1].split("</script>")[0])
    return {
        "data": data,
        "record": list(record.values()) if entries is None else entries,
        "point": release.domain.encode_query(record).tolist(),
        "values": values.tolist(),
        "error": error.tolist(),
    }


SCALED = Domain([replace(one, scale=0.5 + i / 4) for i, one in enumerate(DOMAIN.features)], scale=0.8)


def released_case(domain=DOMAIN, **options):
    """What a real release answers, by the plane it was made with."""
    rows, _ = people(1500, seed=4)
    model = lambda table: np.tanh(DOMAIN.encode(table) @ np.linspace(-2, 2, DOMAIN.width))  # noqa: E731
    made = dpx.release(dpx.PrivateData(rows, domain, model=model), dpx.Budget(2.0, 1e-6), noise=SeededNoise(1), **options)
    answer, added = made.explain(RECORD), made.explain(RECORD).contributions()
    whole = {"values": added.values, "base": added.base, "answer": added.answer}
    errors = {"error": added.error, "baseError": added.base_error, "answerError": added.answer_error}
    given = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in (whole | errors).items()}
    plane = {"plane": answer.plane, "intercept": answer.intercept, "contributions": given}
    return case_of(made, RECORD, None, answer.values, answer.error) | plane


def scale_cases():
    """How Python writes answers and contributions, for the browser to write alike."""
    scales = [
        AnswerScale(),
        AnswerScale.of("probability"),
        AnswerScale.of("value", (0, 250_000)),
        AnswerScale.of("value", (-3, 8)),
    ]
    numbers = [0.0, 0.62, -0.031, 0.0731, 0.00042, -1e-9, 0.9, 0.996, 1.0, 1.2346, -47.5123, 41_234.56, -1_234.51]
    formats = [
        {
            "scale": scale.to_dict(),
            "value": value,
            "answer": scale.format(value),
            "difference": scale.format(value, signed=True),
            "spread": scale.spread(value),
        }
        for scale in scales
        for value in numbers
    ]
    return {
        "formats": formats,
        "contributions": [contribution_case(count) for count in (3, 6, 7, 20, 90)]
        + [contribution_case(3, base) for base in (1.3, -0.4)],
    }


def contribution_case(count, base=0.24):
    values, names = np.sin(np.arange(1.0, count + 1)) / 10, tuple(f"x{i}" for i in range(count))
    error, scale = np.full(count, 0.01), AnswerScale.of("probability")
    one = Contributions(names, values, base, base + values.sum(), error, scale)
    steps = [[step.label, step.start, step.value, step.error] for step in one.steps(5)]
    given = {"values": values.tolist(), "error": error.tolist(), "base": one.base, "answer": one.answer}
    return {"given": given, "scale": scale.to_dict(), "sentence": one.sentence, "steps": steps, "labels": names}


def test_under_node(tmp_path, monkeypatch):
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
    gaps = dict.fromkeys(GAPS.columns)
    held = {"domain": GAPS.to_dict(), "record": gaps, "point": GAPS.encode_query(gaps).tolist()}
    (tmp_path / "gaps.json").write_text(json.dumps(held), encoding="utf-8")
    cases.append(case(StandIn(TEXT), "film don't 10", ["film don't 10"]))
    monkeypatch.setattr(calibrate, "replicates", lambda _: 2)
    cases += [
        released_case(),
        released_case(weight=weights.Gaussian(1.2)),
        released_case(weight=weights.Nearest(400)),
        released_case(radius=0.3),
        released_case(plane="paper"),
        released_case(SCALED),
        released_case(SCALED, weight=weights.Nearest(400)),
        released_case(SCALED, weight=weights.Gaussian(0.7), plane="paper"),
    ]
    (tmp_path / "texts.json").write_text(json.dumps([[text, sorted(words_of(text))] for text in TEXTS]), encoding="utf-8")
    (tmp_path / "scales.json").write_text(json.dumps(scale_cases()), encoding="utf-8")
    (tmp_path / "cases.json").write_text(json.dumps(cases), encoding="utf-8")
    tests = sorted(map(str, TESTS.glob("*.test.mjs")))
    assert tests
    run = subprocess.run(
        [node, "--test", *tests],
        env={name.upper(): str(tmp_path / f"{name}.json") for name in ("cases", "texts", "scales", "gaps")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
