"""Several classes of one release: on the published page, from a service and its page, and from the command line, equal to Python's own answers."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.demo.people import DOMAIN, people
from page_support import enter, numbers_of, settle
from service_support import JSON, RECORD, Running, release_only, run, write_config

pytestmark = pytest.mark.slow

SHOTS = Path("out/screenshots")
BOX = """
import numpy as np


class Grades:
    classes_ = np.array(["approved", "by hand", "refused"])

    def predict_proba(self, table):
        age, married = np.asarray(table["age"], float), np.asarray(table["married"]).astype(float)
        scores = np.stack([(age - 40) / 15, married, 0.5 - married + (40 - age) / 30], axis=1)
        odds = np.exp(scores)
        return odds / odds.sum(axis=1, keepdims=True)


grades = Grades()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("classes")
    (place / "grades_box.py").write_text(BOX)
    return place


@pytest.fixture(scope="module")
def release(folder):
    space = {}
    exec(BOX, space)
    data = dpx.PrivateData(people(1500, seed=7)[0], DOMAIN, model=space["grades"], target="all")
    made = dpx.release(data, dpx.Budget(4.0, 1e-6), reference=1024)
    made.save(folder / "people.dpx")
    return made


@pytest.fixture(autouse=True)
def importable(folder, monkeypatch):
    monkeypatch.syspath_prepend(folder)


def open_file(browser, path):
    page = browser.new_page(viewport={"width": 1280, "height": 1100})
    page.goto(path.as_uri())
    page.wait_for_selector("#table tbody tr")
    return page


def test_the_page_explains_the_class_that_is_chosen(browser, axe, release, tmp_path):
    page = open_file(browser, release.publish(tmp_path / "grades.html"))
    enter(page, DOMAIN, RECORD)
    chooser = page.get_by_label("Explain", exact=True)
    assert chooser.locator("option").all_text_contents() == list(release.targets) == ["approved", "by hand", "refused"]
    for name in ("refused", "by hand", "approved"):
        chooser.select_option(label=name)
        settle(page)
        expected = replace(release.of(name), reference=None).explain(RECORD)  # a page has no reference records
        values, errors = numbers_of(page, "#table", DOMAIN.width)
        np.testing.assert_allclose(values, expected.values, atol=1e-9)
        np.testing.assert_allclose(errors, expected.error, atol=1e-9)
        assert page.locator("#whole-heading").inner_text() == f"The model’s probability of “{name}”"
        assert name in page.locator("#table caption").text_content()
        assert page.get_by_text(f"towards “{name}”").count() >= 1
    page.wait_for_timeout(500)  # for the picture: transitions end
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SHOTS / "page-classes.png", full_page=True)
    assert axe(page) == []
    page.close()


def test_each_class_has_its_own_stand_in(browser, release, tmp_path):
    page = open_file(browser, release.publish(tmp_path / "grades.html", surrogate=True))
    enter(page, DOMAIN, RECORD)
    for name in release.targets:
        page.get_by_label("Explain", exact=True).select_option(label=name)
        settle(page)
        expected = release.surrogate(target=name).shapley(RECORD)
        values, errors = numbers_of(page, "#steps-table", len(DOMAIN.features))
        np.testing.assert_allclose(values, expected.values, atol=1e-5)  # its tables are rounded
        np.testing.assert_allclose(errors, expected.error, atol=1e-9)
    page.close()


def test_models_stand_beside_the_first_one_on_the_page(browser, release, tmp_path):
    both = replace(release, named={}).with_model("v2", release.of("refused"))
    page = open_file(browser, both.publish(tmp_path / "both.html", outcome="an approval"))
    enter(page, DOMAIN, RECORD)
    chooser = page.get_by_label("Explain", exact=True)
    assert chooser.locator("option").all_text_contents() == ["the first model", "v2"]
    for name, of_it in (("v2", both.of("v2")), ("the first model", both)):
        chooser.select_option(label=name)
        settle(page)
        expected = replace(of_it, reference=None, named={}).explain(RECORD)
        np.testing.assert_allclose(numbers_of(page, "#table", DOMAIN.width)[0], expected.values, atol=1e-9)
        assert page.locator("#whole-heading").inner_text() == "The model’s probability of an approval"
    page.close()


def test_a_release_for_one_class_has_no_chooser(browser, release, tmp_path):
    page = open_file(browser, replace(release, named={}).publish(tmp_path / "one.html"))
    assert page.locator("#target-line").is_hidden()
    page.close()


def test_a_service_and_its_page_explain_every_class(browser, axe, folder, release):
    config = write_config(folder, **release_only(), model={"path": "grades_box:grades"}, service={"keys": None, "open": True})
    with Running(config) as service:
        client = dpx.Client(service.url)
        for name in release.targets:
            answer = client.explain(RECORD, target=name)
            np.testing.assert_allclose(answer.values, release.explain(RECORD, target=name).values, atol=1e-9)
            np.testing.assert_allclose(answer.contributions().values, release.shapley(RECORD, target=name).values, atol=1e-9)
        with pytest.raises(dpx.errors.InputError, match="approved"):
            client.explain(RECORD, target="lost")
        see_classes_on_the_page(browser, axe, service.url, release)


def see_classes_on_the_page(browser, axe, url, release):
    page = browser.new_page(viewport={"width": 1280, "height": 1100})
    page.goto(url)
    chooser = page.get_by_label("Explain", exact=True)
    chooser.wait_for()
    enter(page, DOMAIN, RECORD)
    page.get_by_role("button", name="Explain this record").click()
    page.get_by_text("This answer was free.").wait_for()
    for name in ("refused", "by hand"):
        with page.expect_response("**/v1/explain"):
            chooser.select_option(label=name)
        page.locator("#answer[aria-busy=false]").wait_for()
        values, _ = numbers_of(page, "#steps-table", len(DOMAIN.features))
        np.testing.assert_allclose(values, release.shapley(RECORD, target=name).values, atol=1e-9)
        assert page.locator("#whole-heading").inner_text() == f"The model’s probability of “{name}”"
    page.wait_for_timeout(500)
    page.screenshot(path=SHOTS / "service-classes.png", full_page=True)
    assert axe(page) == []
    page.close()


def test_the_command_line_explains_one_class_of_several(folder, release):
    words = ("explain", folder / "people.dpx", "--record", JSON, "--target", "refused", "--json")
    plane = json.loads(run(*words).stdout)
    np.testing.assert_allclose(plane["values"], release.explain(RECORD, target="refused").values, atol=1e-9)
    by_shapley = json.loads(run(*words, "--method", "shapley", "--model", "grades_box:grades").stdout)
    np.testing.assert_allclose(by_shapley["values"], release.shapley(RECORD, target="refused").values, atol=1e-9)
    stand_in = json.loads(run(*words, "--method", "surrogate", "--model", "grades_box:grades").stdout)
    expected = release.surrogate(target="refused").shapley(RECORD)
    np.testing.assert_allclose(stand_in["values"], expected.values, atol=1e-9)
    np.testing.assert_allclose(stand_in["error"], expected.error, atol=1e-9)
