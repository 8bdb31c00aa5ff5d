"""The walks in CONTRIBUTING.md are what calls do, and few changes of folder lead through a question and a release."""

import re

import pytest
from tests import walks

MOST_CHANGES = 35


@pytest.mark.slow
def test_the_walks_of_the_page_are_those_that_are_traced():
    page, traced = walks.PAGE.read_text(encoding="utf-8"), walks.traced()
    assert {name: walks.in_page(page, name).group(1) for name in traced} == traced, "write them again: python -m tests.walks"


@pytest.mark.parametrize("name", ["question", "release"])
def test_few_changes_of_folder_lead_through(name):
    walk = walks.in_page(walks.PAGE.read_text(encoding="utf-8"), name).group(1)
    assert int(re.search(r"(\d+) changes of folder", walk).group(1)) <= MOST_CHANGES
