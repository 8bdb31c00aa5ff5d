"""The page as text: one file, exact numbers, nothing that could run but its own script."""

import json
import re
from base64 import b64decode, b64encode
from hashlib import sha256

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain import web
from dpexplain.core.answer_scale import AnswerScale
from dpexplain.demo.people import DOMAIN
from dpexplain.privacy.relation import Neighbours
from dpexplain.release.page import OUTCOME, describe_outcome, pack_arrays, promise, publish, render
from release_support import StandIn


@pytest.fixture(scope="module")
def release():
    return StandIn(DOMAIN, rows=64)


@pytest.fixture(scope="module")
def page(release):
    return render(release, title="Income", outcome="a high income")


def test_arrays_are_packed_exactly():
    numbers = np.array([0.1, -1 / 3, 5e-324, 1e308, 0.0])
    assert np.array_equal(np.frombuffer(b64decode(pack_arrays(numbers)["f8"]), "<f8"), numbers)
    assert np.frombuffer(b64decode(pack_arrays([0, 255])["u1"]), "<u1").tolist() == [0, 255]
    assert np.frombuffer(b64decode(pack_arrays([0, 4096])["u2"]), "<u2").tolist() == [0, 4096]
    assert np.frombuffer(b64decode(pack_arrays([0, 65536])["u4"]), "<u4").tolist() == [0, 65536]


@pytest.mark.parametrize("wrong", [[-1, 3], [0, 2**32], [0.5, float("nan")], [float("inf")]])
def test_what_cannot_be_packed_exactly_is_refused(wrong):
    with pytest.raises(ValueError, match=r"codes must|finite"):
        pack_arrays(wrong)


def test_released_numbers_survive_to_the_last_bit(release, page):
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    for key, shape in (("mean", 20), ("eigenvalues", 20), ("eigenvectors", 400), ("t1", 20)):
        stored = np.frombuffer(b64decode(data["release"][key]["f8"]), "<f8")
        assert stored.shape == (shape,)
        assert np.array_equal(stored, np.ravel(release.payload()[key]))
    assert data["outcome"] == "a high income"


def test_numbers_lead_to_higher_ones_where_no_outcome_is_named():
    value = AnswerScale.of("value", (0, 60))
    assert describe_outcome(OUTCOME, value) == "a higher answer"
    assert describe_outcome("a longer stay", value) == "a longer stay"
    assert describe_outcome(OUTCOME, AnswerScale.of("probability")) == OUTCOME


def test_the_policy_allows_this_script_and_style_and_nothing_else(page):
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)[1]
    for tag, directive in (('<script type="module">', "script-src"), ("<style>", "style-src")):
        text = page.split(tag)[1].split(tag[:1] + "/" + re.match(r"<(\w+)", tag)[1])[0]
        digest = b64encode(sha256(text.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_nothing_is_loaded_from_elsewhere(page):
    markup = page.split('id="data">')[0] + page.split('<script type="module">')[0].split("</script>")[-1]
    assert re.findall(r'(?:src|href)="(?!data:|#)[^"]*"', markup) == []
    assert not re.search(
        r"\bfetch\(|XMLHttpRequest|WebSocket|import\(|innerHTML|outerHTML|document\.write|\beval\(", web.inline_modules("page.js")
    )
    assert re.findall(r"https?://(?!www\.w3\.org/)", page) == []


def test_every_module_is_inlined_once_without_import_and_export():
    script, order = web.inline_modules("page.js"), web.resolve_imports("page.js")
    assert order[-1] == "page.js"
    assert len(order) == len(set(order)) == 21
    assert not re.search(r"^\s*(import|export)\b", script, re.MULTILINE)
    declared = re.findall(r"^(?:async )?(?:function|const|let|class) (\w+)", script, re.MULTILINE)
    assert len(declared) == len(set(declared)), "modules share one scope on the page: give each top-level name one meaning"
    assert "</" not in script
    assert "</" not in web.source("style.css")


def test_text_is_escaped_wherever_it_goes(release):
    hostile = '"></title><script>alert(1)</script>{{data}}&'
    page = render(release, title=hostile, outcome=hostile)
    assert page.count("<script") == 2
    assert page.count('{"domain"') == 1


def test_the_promise_rounds_towards_the_truth():
    said = promise(dpx.Guarantee(1.0, 1e-5, Neighbours(unit="person_id", rows_per_unit=3)))
    assert "one in 100,000" in said
    assert "all records of any one person_id (at most 3) added or removed" in said
    factor = float(re.search(r"more than ([\d.e+]+) times", said)[1])
    exact = np.exp(dpx.Guarantee(1.0, 1e-5, Neighbours()).epsilon)
    assert exact <= factor <= 1.01 * exact


def test_publish_writes_one_file_and_says_where(release, tmp_path):
    path = publish(release, str(tmp_path / "income.html"))
    assert path.read_text(encoding="utf-8") == render(release)
    assert [entry.name for entry in tmp_path.iterdir()] == ["income.html"]
