"""The walks in CONTRIBUTING.md are what calls do, and few changes of room lead through a question, a release and a request."""

import re

import pytest
from tests import walks

MOST_CHANGES = {"question": 60, "release": 49, "request": 45}


@pytest.mark.slow
def test_the_walks_of_the_page_are_those_that_are_traced():
    page, traced = walks.PAGE.read_text(encoding="utf-8"), walks.trace_walks()
    assert {name: walks.in_page(page, name).group(1) for name in traced} == traced, "write them again: python -m tests.walks"


@pytest.mark.parametrize("name", MOST_CHANGES)
def test_few_changes_of_room_lead_through(name):
    walk = walks.in_page(walks.PAGE.read_text(encoding="utf-8"), name).group(1)
    assert int(re.search(r"(\d+) changes of room", walk).group(1)) <= MOST_CHANGES[name]


def test_a_walk_counts_each_function_once_where_it_is_first_called_from_another_room():
    walk = walks.Walk()
    codes = {name: compile(f"def {name.partition('.')[0]}(): pass", "", "exec").co_consts[0] for name in ("a", "b", "c")}
    files = {"a": "core/weights.py", "b": "core/layout.py", "c": "errors.py"}
    code = {name: codes[name].replace(co_filename=f"{walks.SOURCE}/{files[name]}") for name in codes}
    for name, caller, depth in [("a", "", 0), ("b", "core", 1), ("c", "core", 1), ("c", "core", 1), ("a", "errors", 2)]:
        walk._enter(code[name], caller, depth)
    assert walk.changes == 1
    assert [str(step) for step in walk.steps] == ["core: a", "  errors: c"]
