"""The files of an open ledger: a handle tells which file has a name now, with and without `statx` and Linux's links of descriptors, and never asks
when the file was changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dpexplain.errors import LedgerUnavailable
from dpexplain.ledger import open_files
from dpexplain.ledger.open_files import Handle, Identity, OpenFiles, inode_of


def refuse(_):
    raise FileNotFoundError


@pytest.fixture(params=["statx", "links", "no links", "no descriptors"])
def handle(request, tmp_path, monkeypatch):
    if request.param != "statx":
        monkeypatch.setattr(open_files, "STATX", None)
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
@pytest.mark.parametrize("known", [True, False])
def test_a_file_in_place_is_not_asked_for_its_times(tmp_path, monkeypatch, known):
    if not known:
        monkeypatch.setattr(open_files, "STATX", None)
    path = tmp_path / "a.ledger-wal"
    path.write_bytes(b"1")
    made = Handle(str(path))
    monkeypatch.setattr(os, "stat", None)
    assert made.find_inode() == made.inode
    made.close()


@pytest.mark.skipif(open_files.STATX is None, reason="needs Linux's statx")
def test_only_the_only_name_of_the_same_file_is_known(tmp_path):
    path, other = tmp_path / "a.ledger", tmp_path / "other"
    path.write_bytes(b"1")
    other.write_bytes(b"1")
    one = Identity(str(path), inode_of(str(path)))
    assert one.is_known()
    path.write_bytes(b"changed")
    assert one.is_known()
    assert not Identity(str(path), inode_of(str(other))).is_known()
    assert not Identity(str(path), None).is_known()
    os.link(path, tmp_path / "second")
    assert not one.is_known()
    assert not Identity(str(path), inode_of(str(path))).is_known()  # what it was made with has two names already
    (tmp_path / "second").unlink()
    assert one.is_known()
    path.unlink()
    assert not one.is_known()


def test_a_system_that_refuses_statx_is_asked_in_another_way(tmp_path, monkeypatch):
    path = tmp_path / "a.ledger"
    for suffix in NAMES:
        Path(f"{path}{suffix}").write_bytes(b"1")
    opened = OpenFiles(str(path), inode_of(str(path)))
    monkeypatch.setattr(open_files, "STATX", lambda *_: -1)
    assert opened.are_in_place()
    later = OpenFiles(str(path), inode_of(str(path)))
    assert later.are_in_place()
    Path(f"{path}-shm").unlink()
    assert not opened.are_in_place()
    assert not later.are_in_place()
    opened.close()
    later.close()


NAMES = ("", "-wal", "-shm")


@pytest.fixture(params=["statx", "no statx"])
def files(request, tmp_path, monkeypatch):
    if request.param == "no statx":
        monkeypatch.setattr(open_files, "STATX", None)
    path = tmp_path / "ledgers" / "a.ledger"
    path.parent.mkdir(mode=0o700)
    for suffix in NAMES:
        Path(f"{path}{suffix}").write_bytes(b"1")
    opened = OpenFiles(str(path), inode_of(str(path)))
    assert opened.are_in_place()
    yield path, opened
    opened.close()


def in_place(opened):
    try:
        return opened.are_in_place()
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("suffix", NAMES)
def test_files_that_are_deleted_moved_or_replaced_are_noticed_at_once(files, suffix):
    path, opened = files
    one, aside = Path(f"{path}{suffix}"), path.with_name("aside")
    one.rename(aside)
    assert not in_place(opened)
    aside.rename(one)
    assert in_place(opened)
    with one.open():  # as SQLite holds it: its number is not given to another file
        one.unlink()
        assert not in_place(opened)
        one.write_bytes(b"another")
        assert not in_place(opened)


def test_a_second_name_in_another_folder_is_noticed(files, tmp_path):
    path, opened = files
    os.link(path, tmp_path / "second")
    with pytest.raises(LedgerUnavailable, match="2 names"):
        opened.are_in_place()
    (tmp_path / "second").unlink()
    assert opened.are_in_place()


def test_a_folder_that_was_moved_or_replaced_is_noticed(files):
    path, opened = files
    aside = path.parent.with_name("aside")
    path.parent.rename(aside)
    assert not in_place(opened)
    shutil.copytree(aside, path.parent)
    assert not in_place(opened)
    shutil.rmtree(path.parent)
    aside.rename(path.parent)
    assert in_place(opened)


MOUNTS_OVER = """
import subprocess, sys
from dpexplain.ledger.open_files import OpenFiles, inode_of
path, other, place = sys.argv[1:]
opened = OpenFiles(path, inode_of(path))
before = opened.are_in_place()
subprocess.run(["mount", "--bind", other, place], check=True)
print("mounted", before, opened.are_in_place())
"""


@pytest.mark.skipif(open_files.STATX is None, reason="needs Linux's statx")
@pytest.mark.parametrize("suffix", NAMES)
def test_what_is_mounted_over_a_file_is_noticed(tmp_path, suffix):
    path, other = tmp_path / "a.ledger", tmp_path / "other"
    for one in (other, *(Path(f"{path}{suffix}") for suffix in NAMES)):
        one.write_bytes(b"1")
    words = ["unshare", "-m", sys.executable, "-c", MOUNTS_OVER, str(path), str(other), f"{path}{suffix}"]
    try:
        found = subprocess.run(
            words, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}, check=False
        )
    except FileNotFoundError:
        pytest.skip("there is no unshare")
    if "mounted" not in found.stdout:
        pytest.skip(f"this user may not mount, a mounted file is NOT tested: {found.stderr[-200:]}")
    assert found.stdout == "mounted True False\n"


def test_other_files_of_the_folder_may_come_and_go(files):
    path, opened = files
    path.with_name("other").write_bytes(b"1")
    assert opened.are_in_place()
    path.with_name("other").unlink()
    assert opened.are_in_place()
