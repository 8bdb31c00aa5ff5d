"""axe-core finds nothing on the published page and on the demo's report, wide and on a phone; the service's page is checked in test_service."""

from dataclasses import replace

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.answers.contributions import feature_values
from dpexplain.demo.demo_report import write_report
from dpexplain.demo.people import DOMAIN
from dpexplain.demo.story import ASKED, PersonAnswer
from dpexplain.evaluation import Score
from dpexplain.privacy.relation import Neighbours
from dpexplain.release.page import publish
from release_support import StandIn

pytestmark = pytest.mark.slow
SIZES = [(1280, 900), (390, 844)]


def open_file(browser, path, size):
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, reduced_motion="reduce")
    page = context.new_page()
    page.goto(path.as_uri())
    return context, page


@pytest.mark.parametrize("size", SIZES, ids=["wide", "phone"])
def test_the_published_page(browser, axe, tmp_path, size):
    path = publish(StandIn(DOMAIN, rows=128), tmp_path / "page.html", title="Income", outcome="a high income")
    context, page = open_file(browser, path, size)
    page.wait_for_selector("#table tbody tr")
    for button in page.get_by_role("button", name="Show the numbers").all():
        button.click()
    page.wait_for_timeout(450)  # the sentence is spoken where a slider stops
    assert axe(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    context.close()


def with_contributions(answer, rng):
    """The answer with made-up contributions."""
    names, values = DOMAIN.columns, rng.normal(size=len(DOMAIN.columns)) / 10
    scale = dpx.AnswerScale.of("probability")
    record = feature_values(DOMAIN, answer.point[None])[0]
    return replace(
        answer, added=dpx.Contributions(names, values, 0.3, 0.3 + values.sum(), np.full(len(names), 0.03), scale, record)
    )


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    rng, answers = np.random.default_rng(1), []
    guarantee = dpx.Guarantee(0.2, 1e-6, Neighbours())
    for who, record in ASKED.items():
        point = DOMAIN.encode_query(record)
        answer = dpx.Explanation(rng.normal(size=DOMAIN.width) / 4, DOMAIN.names, point, guarantee, guarantee, domain=DOMAIN)
        answer = replace(answer, plane="fitted", intercept=0.1)
        answers.append(PersonAnswer(who, 0.4, answer, Score(0.1, 0.001, 0.99, 1.0), with_contributions(answer, rng)))
    return write_report(
        tmp_path_factory.mktemp("report"), answers, dpx.Budget(1.0, 1e-6), "Refused: nothing is left.", str(guarantee)
    )[1]


@pytest.mark.parametrize("size", SIZES, ids=["wide", "phone"])
def test_the_report_of_the_demo(browser, axe, report, size):
    context, page = open_file(browser, report, size)
    assert axe(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    context.close()
