"""Protocols between rooms stand on few pages, and CONTRIBUTING.md lists all of them."""

from tests import protocols


def test_the_list_of_protocols_is_current():
    page = protocols.PAGE.read_text(encoding="utf-8")
    assert protocols.in_page(page)[1] == protocols.as_text(), "write it again: python -m tests.protocols"


def test_protocols_outside_the_pages_are_used_by_their_own_room_alone():
    elsewhere = [one for one in protocols.protocols() if one.module not in protocols.PAGES]
    used = {one.name: protocols.rooms_that_use(one.name) - {one.module.partition("/")[0]} for one in elsewhere}
    assert {name: rooms for name, rooms in used.items() if rooms} == {}


def test_every_page_has_a_protocol_and_every_protocol_a_meaning():
    assert {one.module for one in protocols.protocols()} >= protocols.PAGES.keys()
    assert [one.name for one in protocols.protocols() if not one.meaning.endswith((".", ":"))] == []
