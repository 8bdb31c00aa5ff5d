"""The files that a connection was opened on, and whether they still have their names: asked before every transaction.

A file that was moved, replaced or linked under an open connection would take spending with it, and so would its log or the log's index.
"""

from __future__ import annotations

import os
import time

from dpexplain.ledger.file_checks import Inode, require_one_name

TICK = 100_000_000  # nanoseconds: longer than systems that store parts of a millisecond take to store another time
Change = tuple[int, int, int]  # which folder, and when it was changed
UNKNOWN = (0, 0, 0)


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


class Folder:
    """Tells by one question that no name in a folder was made, moved or deleted since the names were looked at.

    Each of these changes the time that the system keeps of the folder's last change, which nobody can set. Two changes within one tick of its clock may have
    the same time, so a folder that was changed just now is not relied on, nor one on a file system that stores whole milliseconds.
    """

    def __init__(self, path: str) -> None:
        self._path, self._known = path, UNKNOWN

    def look(self) -> Change:
        found = os.stat(self._path)
        return found.st_dev, found.st_ino, found.st_ctime_ns

    def remember(self, looked: Change) -> None:
        """Rely on what `look` returned before all names were found in place."""
        changed = looked[2]
        self._known = looked if changed % 1_000_000 and time.time_ns() - changed > TICK else UNKNOWN

    def is_known(self, looked: Change) -> bool:
        """Whether all names are still as they were found in place."""
        return looked == self._known


class OpenFiles:
    """The ledger, its log and the log's index, as they were when a connection was opened; `ledger` is which file it was before that."""

    def __init__(self, path: str, ledger: Inode) -> None:
        self._path, self._ledger, self._index = path, ledger, f"{path}-shm"
        self._log, self._index_inode = Handle(f"{path}-wal"), inode_of(self._index)
        self._folder = Folder(os.path.dirname(path))

    def are_in_place(self) -> bool:
        """Whether all are under their names. FileNotFoundError where the ledger is gone, LedgerUnavailable where it has a second name."""
        looked = self._folder.look()  # before the names: what changes between the two is noticed the next time
        if require_one_name(self._path) != self._ledger:
            return False
        if self._folder.is_known(looked):
            return True
        if self._log.find_inode() != self._log.inode or inode_of(self._index) != self._index_inode:
            return False
        self._folder.remember(looked)
        return True

    def are_only_deleted(self) -> bool:
        """Whether the ledger is in place, and nothing else has taken the place of a log or an index that is gone."""
        log, index = (None, self._log.inode), (None, self._index_inode)
        return inode_of(self._path) == self._ledger and self._log.find_inode() in log and inode_of(self._index) in index

    def close(self) -> None:
        self._log.close()
