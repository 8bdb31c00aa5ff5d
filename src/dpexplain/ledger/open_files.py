"""The files that a connection was opened on, and whether they still have their names: asked before every transaction.

A file that was moved, replaced or linked under an open connection would take spending with it, and so would its log or the log's index.
"""

from __future__ import annotations

import os

from dpexplain.ledger.file_checks import Inode, require_one_name


def inode_of(path: str) -> Inode | None:
    """Which file it is; None where there is none."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


class Handle:
    """A file that was under a name when this was made, and which file is there now.

    On Linux this is asked of a descriptor that only names the file (closing it releases no lock), because `os.stat` reads when a file was changed:
    since Linux 6.13 the next write then has to store another time, and a durable commit after a `stat` of its log takes 50 µs longer.
    """

    def __init__(self, path: str) -> None:
        self._path, self._descriptor, self.inode = path, -1, inode_of(path)
        if self.inode is not None and hasattr(os, "O_PATH"):
            self._descriptor = os.open(path, os.O_PATH)
            found = os.fstat(self._descriptor)
            self.inode = found.st_dev, found.st_ino
        self._link = f"/proc/self/fd/{self._descriptor}"

    def find_inode(self) -> Inode | None:
        """Which file has the name now; None where there is none."""
        try:
            if os.readlink(self._link) == self._path:
                return self.inode
        except OSError:  # no descriptor, or no such links here
            pass
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

    def are_in_place(self) -> bool:
        """Whether all are under their names. FileNotFoundError where the ledger is gone, LedgerUnavailable where it has a second name."""
        ledger = require_one_name(self._path)
        return ledger == self._ledger and self._log.find_inode() == self._log.inode and inode_of(self._index) == self._index_inode

    def are_only_deleted(self) -> bool:
        """Whether the ledger is in place, and nothing else has taken the place of a log or an index that is gone."""
        log, index = (None, self._log.inode), (None, self._index_inode)
        return inode_of(self._path) == self._ledger and self._log.find_inode() in log and inode_of(self._index) in index

    def close(self) -> None:
        self._log.close()
