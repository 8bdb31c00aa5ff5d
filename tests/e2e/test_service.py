"""The service as people meet it: a real server process, real databases, a real browser; from the owner's files to an answer on a page."""

from __future__ import annotations

import json
import threading
import time
from math import sqrt
from pathlib import Path
from urllib.request import Request, urlopen

import numpy as np
import pytest
from typer.testing import CliRunner

import dpexplain as dpx
from dpexplain.cli import app
from dpexplain.errors import ServiceError
from dpexplain.ledger import open_existing, verify
from dpexplain.privacy import gdp
from dpexplain.privacy.budget import round_up
from dpexplain.service.keys import KeyFile
from hypothesis_support import examples
from service_support import OTHER, RECORD, Running, release_only, write_config, write_owner_files

pytestmark = pytest.mark.slow
SHOTS = Path("out/screenshots")


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.stderr
    return result.stdout.strip()


@pytest.fixture
def owner(tmp_path):
    return write_owner_files(tmp_path)


def new_key(config, role="analyst"):
    return run("serve", "keys", "add", "--role", role, "--config", config)


def get(url, key):
    with urlopen(Request(url, headers={"Authorization": f"Bearer {key}"}), timeout=60) as answer:
        return answer.read().decode()


def until(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.02)


def the_ledger(url):
    (ledger,) = open_existing(url)
    try:
        return verify(ledger)
    finally:
        ledger.close()


def test_from_the_owners_files_to_an_answer_on_the_page(owner, place, browser, axe):
    config = write_config(owner, ledger={"url": place.url})
    key, owners = new_key(config), new_key(config, "owner")
    with Running(config) as service:
        client = dpx.Client(service.url, key)
        first = client.explain(RECORD, request_id="mine")
        assert first.names == client.domain.names
        assert client.explain(RECORD, request_id="mine").to_dict() == first.to_dict()
        assert client.spent.epsilon == pytest.approx(0.3)
        with pytest.raises(dpx.DpexplainError, match="another question"):
            client.explain(OTHER, request_id="mine")
        with pytest.raises(dpx.DpexplainError, match="age: 400"):
            client.explain(RECORD | {"age": 400})
        with pytest.raises(ServiceError) as refused:
            dpx.Client(service.url, "dpx_wrong").explain(RECORD)
        assert refused.value.status == 401
        see_it_on_the_page(browser, axe, service, owners, place.kind)
        for _ in range(7):
            client.explain(RECORD)
        with pytest.raises(dpx.BudgetExhausted) as exhausted:
            client.explain(RECORD)
        assert exhausted.value.remaining.mu < exhausted.value.requested.mu
        assert client.explain(RECORD, request_id="mine").values == pytest.approx(first.values)  # still free, still there
        assert client.remaining.epsilon < 0.3
        assert 'dpexplain_refusals_total{reason="budget"} 1' in get(f"{service.url}/metrics", key)
        keys = KeyFile(owner / "keys.json")
        keys.revoke(keys.list_keys()[0].id)
        with pytest.raises(ServiceError, match="401"):
            client.explain(RECORD)
    assert service.process.returncode == 0
    found = the_ledger(place.url)
    assert (found.answers, found.pending) == (9, 0)
    assert "52" not in "".join(line for line in service.log.read_text().splitlines() if '"record"' in line)


def see_it_on_the_page(browser, axe, service, key, name):
    from playwright.sync_api import expect

    context = browser.new_context(viewport={"width": 1280, "height": 1000})
    page, elsewhere, complaints = context.new_page(), [], []
    page.on(
        "request", lambda request: elsewhere.append(request.url) if not request.url.startswith((service.url, "data:")) else None
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text) if "401" not in message.text else None)
    page.goto(service.url)
    page.get_by_label("The data’s owner makes one").fill("dpx_wrong")
    page.keyboard.press("Enter")
    page.get_by_text("This key is not known here.").wait_for()
    page.get_by_label("The data’s owner makes one").fill(key)
    page.keyboard.press("Enter")
    page.locator("#fields .field").first.wait_for()
    page.get_by_text("ε = 0.3 of 1 spent on 1 answer").wait_for()
    page.get_by_label("education").select_option("doctorate")
    page.get_by_label("age", exact=True).fill("44")
    page.keyboard.press("Enter")  # the form is a form: no mouse is needed
    twice = gdp.epsilon(gdp.mu(0.3, 1e-6) * sqrt(2), 1e-6)
    page.get_by_text(f"ε = {round_up(twice)} of 1 spent on 2 answers").wait_for()
    expect(page.locator("#answer[aria-busy=false]")).to_be_visible()
    expect(page.locator("#chart svg .row")).to_have_count(8)
    expect(page.get_by_role("meter", name="Privacy budget spent")).to_have_attribute("aria-valuenow", f"{twice:.4g}")
    expect(page.locator("#cost")).to_contain_text("This answer cost ε = 0.3")
    expect(page.locator("#archive-rows tr")).to_have_count(2)
    with page.expect_response("**/v1/history*"):  # the last thing the page asks for
        page.get_by_role("button", name="Explain this record").click()  # the same record again: the same question, free
    expect(page.locator("#answer[aria-busy=false]")).to_be_visible()
    expect(page.get_by_text("spent on 2 answers")).to_have_count(1)
    page.get_by_label("age", exact=True).fill("45")
    expect(page.locator("#answer.stale")).to_have_count(1)
    page.get_by_label("age", exact=True).fill("44")
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.wait_for_timeout(400)  # for the picture: transitions end
    page.screenshot(path=SHOTS / f"service-{name}.png", full_page=True)
    assert axe(page) == []
    page.emulate_media(color_scheme="light")
    page.get_by_role("button", name="Switch to dark colours").click()
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_function("document.documentElement.scrollWidth <= 390")
    page.wait_for_timeout(400)  # for the picture: transitions end
    page.screenshot(path=SHOTS / f"service-{name}-phone.png", full_page=True)
    page.get_by_role("button", name="Forget the key").click()
    page.get_by_label("The data’s owner makes one").wait_for()
    context.close()
    assert (elsewhere, complaints) == ([], [])


def test_a_release_is_served_openly(owner, browser, axe):
    words = [
        "release",
        owner / "people.parquet",
        "--domain",
        owner / "domain.toml",
        "--label",
        "y",
        "--epsilon",
        1,
        "--delta",
        1e-6,
    ]
    run(*words, "-o", owner / "people.dpx")
    config = write_config(owner, **release_only(), service={"keys": None, "open": True, "open_metrics": True})
    expected = dpx.load(owner / "people.dpx").explain(RECORD)
    with Running(config) as service:
        client = dpx.Client(service.url)
        answers = [client.explain(RECORD) for _ in range(20)]
        assert all(np.allclose(answer.values, expected.values) for answer in answers)
        assert client.remaining is None
        assert "dpexplain_spent_epsilon 0.99" in get(f"{service.url}/metrics", "")
        page = browser.new_page()
        page.goto(service.url)
        page.get_by_role("button", name="Explain this record").click()
        page.get_by_text("This answer was free.").wait_for()
        page.get_by_text("Answers are free and unlimited").wait_for()
        page.locator("#chart .row .spread").first.wait_for(state="attached")
        page.wait_for_timeout(400)  # for the picture: transitions end
        SHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SHOTS / "service-release.png", full_page=True)
        assert axe(page) == []
        page.close()


BLACKBOX = """
def score(rows):
    open("asked", "a").write(f"{rows.num_rows}\\n")
    return [1.0 if hours > 40 else -1.0 for hours in rows["hours"].to_pylist()]
"""


def test_two_workers_share_one_budget_and_finish_what_they_began(owner, sqlite_place):
    """Eight callers at once until a stop in mid-flight: nothing is over-spent, no reservation is left open, no answer is lost.

    The model is asked once for both workers.
    """
    place = sqlite_place
    (owner / "blackbox.py").write_text(BLACKBOX)
    config = write_config(
        owner,
        data={"label": None},
        model={"path": "blackbox:score"},
        ledger={"url": place.url},
        service={"workers": 2, "requests_per_minute": 0},
        mechanism={"epsilon": 0.02},
        budget={"epsilon": 4.0},
    )
    key = new_key(config)
    got: dict[str, list[float]] = {}
    with Running(config) as service:

        def ask_repeatedly(name):
            client = dpx.Client(service.url, key, retries=0)
            for number in range(10_000):
                try:
                    got[f"{name}-{number}"] = client.explain(RECORD, request_id=f"{name}-{number}").values.tolist()
                except dpx.DpexplainError:
                    return

        callers = [threading.Thread(target=ask_repeatedly, args=(name,)) for name in "abcdefgh"]
        for caller in callers:
            caller.start()
        until(lambda: len(got) >= 40 or not any(caller.is_alive() for caller in callers))
        totals = get(f"{service.url}/metrics", key)
        assert service.stop() == 0
        for caller in callers:
            caller.join(30)
    counted = float(next(line.split()[1] for line in totals.splitlines() if line.startswith("dpexplain_explain_seconds_count")))
    assert 0 < counted <= len(got)
    found = the_ledger(place.url)
    assert found.pending == 0
    assert found.answers >= len(got)
    (ledger,) = open_existing(place.url)
    kept = {done.request_id: done.answer["values"] for done in ledger.settled()}
    ledger.close()
    assert all(kept[name] == values for name, values in got.items())
    assert [line for line in (owner / "asked").read_text().split() if line != "64"] == ["3000"]  # besides made-up records


def test_the_openapi_description_holds_and_nothing_breaks_the_server(owner):
    """Property-based requests from the description: whatever is sent, no 5xx, and only good questions spend."""
    schemathesis = pytest.importorskip(
        "schemathesis", reason="schemathesis is missing, the interface is NOT fuzzed: pip install schemathesis"
    )
    from hypothesis import HealthCheck, Phase, settings

    config = write_config(owner, service={"requests_per_minute": 0})
    key = new_key(config, "owner")
    with Running(config) as service:
        described = schemathesis.openapi.from_url(f"{service.url}/openapi.json")
        seen = []

        for result in described.get_all_operations():
            operation = result.ok()
            test = settings(
                max_examples=examples(25),
                deadline=None,
                suppress_health_check=list(HealthCheck),
                phases=[Phase.generate],
                derandomize=True,
                database=None,
            )(ask_one(operation, key, seen))
            test()
        paths = {path for _, path, _ in seen}
        assert {"/v1/explain", "/v1/models/{name}:explain", "/v1/guarantee", "/v1/domain", "/v1/history", "/metrics"} <= paths
        assert len(seen) > 100
        answers = [status for _, path, status in seen if "explain" in path and status == 200]
        standing = json.loads(get(f"{service.url}/v1/guarantee", key))
        assert standing["answers"] == len(answers)


def ask_one(operation, key, seen):
    from hypothesis import given

    @given(case=operation.as_strategy())
    def test(case):
        response = case.call(headers={"Authorization": f"Bearer {key}"}, timeout=60)
        assert response.status_code < 500, (operation.method, operation.path, response.status_code, response.text)
        seen.append((operation.method, operation.path, response.status_code))

    return test
