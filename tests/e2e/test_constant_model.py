"""A model that always says the same has no explanation: on every surface all values are within their errors of 0, and the answer is the constant."""

import json
import re
import socket
import threading
from contextlib import contextmanager

import numpy as np
import pytest
import uvicorn

import dpexplain as dpx
from dpexplain.demo.people import DOMAIN, people
from dpexplain.ledger import open_ledger
from dpexplain.noise.seeded import SeededNoise
from dpexplain.release.page import publish
from dpexplain.service.app import Service, create_app
from dpexplain.service.backend import LedgerBackend, ReleaseBackend
from dpexplain.service.config import Settings
from service_support import OTHER, RECORD, InProcess

CONSTANT = 0.9
RECORDS = [RECORD, OTHER, RECORD | {"age": 70, "trade": "care", "married": False}]


@pytest.fixture(scope="module")
def data():
    rows, _ = people(20_000, seed=3)
    return dpx.PrivateData(rows, DOMAIN, model=lambda rows: np.full(len(rows["age"]), CONSTANT), output="probability")


@pytest.fixture(scope="module")
def release(data):
    return dpx.release(data, dpx.Budget(1.0, 1e-6), noise=SeededNoise(5))


def assert_nothing_to_explain(values, errors, answer, answer_error, errors_allowed=2.0):
    assert np.abs(values).max() < 0.02
    assert (np.abs(values) <= errors_allowed * np.asarray(errors)).all()
    assert abs(answer - CONSTANT) <= max(errors_allowed * answer_error, 1e-9)


def test_a_release(release):
    for record in RECORDS:
        answer = release.explain(record)
        added = answer.contributions()
        assert_nothing_to_explain(added.values, added.error, added.answer, added.answer_error)
        assert (np.abs(answer.values) <= 2 * answer.error).all()
        assert "about 90 %; the average is 90 %; together these values make no difference." in added.sentence


@pytest.mark.parametrize("make", [dpx.Basic, dpx.Adaptive, dpx.Enhanced])
@pytest.mark.parametrize("plane", ["fitted", "anchored"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_paid_answers_with_bars(data, epsilon, plane, make):
    explainer = dpx.Explainer(data, dpx.Budget(9.0, 1e-5), make(epsilon, 1e-6, plane=plane), noise=SeededNoise(3))
    answers = [explainer.explain(record) for record in RECORDS]
    if make is not dpx.Basic:  # answers from history are free
        answers += [dpx.NonInteractive(explainer.history).explain(record) for record in RECORDS]
    for answer in answers:
        added = answer.contributions()
        assert_nothing_to_explain(added.values, added.error, added.answer, added.answer_error)
        assert (np.abs(answer.values) <= 2 * answer.error).all()
        assert re.search(r"90(\.\d)? %; the average is 90(\.\d)? %", added.sentence)  # tenths of a point are within the error


@pytest.mark.parametrize(
    "mechanism",
    [
        dpx.Basic(0.1, 1e-6, by="descent"),
        dpx.Basic(1.0, 1e-6, by="descent"),
        dpx.Adaptive(1.0, 1e-6, by="descent"),
        dpx.Enhanced(1.0, 1e-6, by="descent"),
    ],
)
def test_paid_answers_are_within_the_error_to_expect(data, mechanism):
    """It is a guess for answers without bars: it must not shrink with the slopes of a flat model."""
    explainer = dpx.Explainer(data, dpx.Budget(9.0, 1e-5), mechanism, noise=SeededNoise(1))
    answers = [explainer.explain(record) for record in RECORDS]
    errors = np.abs([answer.values / answer.details["expected"]["error"] for answer in answers])
    assert (errors <= 2).mean() > 0.9
    assert errors.max() < 5
    for answer, added in ((answer, answer.contributions()) for answer in answers):
        assert "the middle of all ranges" in added.sentence
        assert added.base + added.values.sum() == pytest.approx(added.answer)
        assert np.abs(added.values).max() <= 5 * answer.details["expected"]["error"] * answer.scale.half_range
    assert [answer.scale.answer(answer.intercept) for answer in answers] == pytest.approx([CONSTANT] * 3, abs=0.2)


@pytest.mark.slow
def test_the_published_page(release, browser, tmp_path):
    page = browser.new_page()
    page.goto(publish(release, tmp_path / "page.html").as_uri())
    assert_page_has_nothing_to_explain(page)
    page.close()


@pytest.mark.slow
def test_the_page_of_a_service_that_pays_once(data, browser, tmp_path):
    application = create_app(Service(from_ledger(dpx.Adaptive)(data, tmp_path), Settings(name="constant", open=True), None))
    with serve_application(application) as url:
        page = browser.new_page()
        page.goto(url)
        for age, cost in ((40, "This answer cost ε = 1"), (70, "This answer was free.")):
            page.get_by_label("age", exact=True).fill(str(age))
            page.keyboard.press("Enter")
            page.get_by_text(cost).wait_for()
            assert_page_has_nothing_to_explain(page)
    page.close()


@contextmanager
def serve_application(application):
    """The address of the application on a free port of this machine, served by a thread."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(application, log_level="error"))
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(60)


def assert_page_has_nothing_to_explain(page):
    page.wait_for_function("() => document.getElementById('sentence').textContent.includes('about 90')")
    read = "rows => rows.map((row) => [Number(row.dataset.value), Number(row.dataset.error)])"
    values, errors = np.array(page.eval_on_selector_all("#steps-table tbody tr", read)).T
    assert len(values) == len(DOMAIN.features)
    assert_nothing_to_explain(values, errors, CONSTANT, 0.0)
    assert page.text_content("#sentence").endswith("together these values make no difference.")
    assert page.locator("#waterfall .row.uncertain").count() == len(DOMAIN.features)


def from_release(data, folder):
    return ReleaseBackend(dpx.release(data, dpx.Budget(1.0, 1e-6)))


def from_ledger(make):
    def backend(data, folder):
        ledger = open_ledger(f"sqlite:///{folder}/constant.ledger", data.account(dpx.Budget(9.0, 1e-6)))
        return LedgerBackend(data, make(1.0, 1e-6), ledger)

    return backend


def client_of(backend):
    return InProcess(create_app(Service(backend, Settings(name="constant", open=True), None)))


@pytest.mark.parametrize(
    "backend", [from_release, *map(from_ledger, (dpx.Basic, dpx.Adaptive))], ids=["release", "basic", "adaptive"]
)
def test_the_service(data, backend, tmp_path):
    """With noise from the operating system, which no seed makes repeatable: four errors."""
    client = client_of(backend(data, tmp_path))
    answer = client.post("/v1/models/constant:explain", json={"instances": RECORDS}).json()
    for one in answer["explanations"]:
        assert (one["quantity"], one["plane"]) == ("contributions", "fitted")
        values, errors = (np.array(list(one[name].values())) for name in ("attributions", "error"))
        assert list(one["attributions"]) == [feature.name for feature in DOMAIN.features]
        assert one["base_value"] + values.sum() == pytest.approx(one["answer"])
        assert_nothing_to_explain(values, errors, one["answer"], 0.01, errors_allowed=4.0)
    single = client.post("/v1/explain", json={"record": RECORD}).json()
    assert single["contributions"]["answer"] == pytest.approx(CONSTANT, abs=0.02)
    assert json.dumps(single)
