"""The files that a connection was opened on, and whether they still have their names: asked before every transaction.

A file that was moved, replaced or linked under an open connection would take spending with it, and so would its log or the log's index.
"""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from struct import Struct
from typing import Any

from dpexplain.ledger.file_checks import Inode, require_one_name

STATX: Any = getattr(ctypes.CDLL(None), "statx", None) if sys.platform == "linux" else None
HERE, NAMES_AND_NUMBER = -100, 0x104  # AT_FDCWD; STATX_NLINK | STATX_INO
SIZE, FIELDS = (
    256,
    Struct("=16xI8xH2xQ96xII"),
)  # of Linux's struct statx: names, type and rights, number, the device's two numbers


class Identity:
    """Whether a name still is the only one of a file, which had the name and this inode when it was made.

    Linux is asked by `statx`, and not for the file's times: since Linux 6.13 the next write to a file whose time of change was read has to store
    another time, and a durable commit after a `stat` of its log takes 50 µs longer.
    """

    def __init__(self, path: str, inode: Inode | None) -> None:
        self._buffer = ctypes.create_string_buffer(SIZE)
        numbers = ctypes.c_int(0), ctypes.c_uint(NAMES_AND_NUMBER)
        self._question = ctypes.c_int(HERE), ctypes.c_char_p(os.fsencode(path)), *numbers, ctypes.byref(self._buffer)
        found = self._ask()
        self._found = found if found is not None and (os.makedev(*found[3:]), found[2]) == inode and found[0] == 1 else None

    @property
    def tells(self) -> bool:
        """Whether `is_known` says anything: not where `statx` is missing, or the file had another inode or a second name from the start."""
        return self._found is not None

    def is_known(self) -> bool:
        """True only if so; False also where this cannot be told."""
        return self._found is not None and self._ask() == self._found

    def _ask(self) -> tuple[int, ...] | None:
        return FIELDS.unpack_from(self._buffer) if STATX is not None and STATX(*self._question) == 0 else None


def inode_of(path: str) -> Inode | None:
    """Which file it is; None where there is none."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


class Handle:
    """A file that was under a name when this was made, and which file is there now, asked without its times where that is possible.

    Where Linux has no `statx`, a descriptor is asked that only names the file; closing it releases no lock, and what is mounted over it is not noticed.
    """

    def __init__(self, path: str) -> None:
        self._path, self._descriptor, self.inode = path, -1, inode_of(path)
        if self.inode is not None and hasattr(os, "O_PATH"):
            self._descriptor = os.open(path, os.O_PATH)
            found = os.fstat(self._descriptor)
            self.inode = found.st_dev, found.st_ino
        self._link = f"/proc/self/fd/{self._descriptor}"
        self.identity = Identity(path, self.inode)

    def find_inode(self) -> Inode | None:
        """Which file has the name now; None where there is none."""
        if self.identity.is_known():
            return self.inode
        if not self.identity.tells:
            with suppress(OSError):  # no descriptor, or no such links here
                if os.readlink(self._link) == self._path:
                    return self.inode
        return inode_of(self._path)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class OpenFiles:
    """The ledger, its log and the log's index, as they were when a connection was opened; `ledger` is which file it was before that."""

    def __init__(self, path: str, ledger: Inode) -> None:
        self._path, self._ledger, self._index = path, ledger, f"{path}-shm"
        self._log, self._index_inode = Handle(f"{path}-wal"), inode_of(self._index)
        self._ledger_identity, self._index_identity = Identity(path, ledger), Identity(self._index, self._index_inode)

    def are_in_place(self) -> bool:
        """Whether all are under their names. FileNotFoundError where the ledger is gone, LedgerUnavailable where it has a second name."""
        if self._ledger_identity.is_known() and self._log.identity.is_known() and self._index_identity.is_known():
            return True
        ledger = require_one_name(self._path)
        return ledger == self._ledger and self._log.find_inode() == self._log.inode and inode_of(self._index) == self._index_inode

    def are_only_deleted(self) -> bool:
        """Whether the ledger is in place, and nothing else has taken the place of a log or an index that is gone."""
        log, index = (None, self._log.inode), (None, self._index_inode)
        return inode_of(self._path) == self._ledger and self._log.find_inode() in log and inode_of(self._index) in index

    def close(self) -> None:
        self._log.close()
