"""A handle tells which file has a name now, with and without Linux's links of descriptors, and never asks when the file was changed."""

from __future__ import annotations

import os

import pytest

from dpexplain.ledger.file_checks import Handle, inode_of


def refuse(_):
    raise FileNotFoundError


@pytest.fixture(params=["links", "no links", "no descriptors"])
def handle(request, tmp_path, monkeypatch):
    if request.param == "no links":
        monkeypatch.setattr(os, "readlink", refuse)
    if request.param == "no descriptors":
        monkeypatch.delattr(os, "O_PATH", raising=False)
    path = tmp_path / "a.ledger-wal"
    path.write_bytes(b"1")
    made = Handle(str(path))
    yield path, made
    made.close()


def test_a_file_in_place_is_recognised(handle):
    path, made = handle
    path.write_bytes(b"changed")
    assert made.find_inode() == made.inode == inode_of(str(path))


def test_a_deleted_file_is_missed(handle):
    path, made = handle
    path.unlink()
    assert made.find_inode() is None


def test_a_moved_file_is_missed_and_another_in_its_place_is_noticed(handle):
    path, made = handle
    path.rename(path.with_name("elsewhere"))
    assert made.find_inode() is None
    path.write_bytes(b"2")
    assert made.find_inode() == inode_of(str(path)) != made.inode


def test_a_file_that_was_replaced_is_noticed(handle):
    path, made = handle
    other = path.with_name("other")
    other.write_bytes(b"2")
    other.replace(path)
    assert made.find_inode() == inode_of(str(path)) != made.inode


def test_a_moved_folder_is_noticed(handle):
    path, made = handle
    path.parent.rename(path.parent.with_name("moved"))
    assert made.find_inode() is None
    path.parent.with_name("moved").rename(path.parent)


def test_a_file_that_never_was_stays_missing(tmp_path):
    made = Handle(str(tmp_path / "none"))
    assert made.inode is None
    assert made.find_inode() is None
    made.close()


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="needs Linux's links of descriptors")
def test_a_file_in_place_is_not_asked_for_its_times(tmp_path, monkeypatch):
    path = tmp_path / "a.ledger-wal"
    path.write_bytes(b"1")
    made = Handle(str(path))
    monkeypatch.setattr(os, "stat", None)
    assert made.find_inode() == made.inode
    made.close()
