"""What a SQLite ledger's file must be: one name for one file, in a folder that only trusted users may change.

SQLite finds a database's log by the database's *name*. A file that has two names (hard links, or a bind mount of the file itself) gets two
logs, and two processes would each count only their own spending. So a ledger has exactly one name.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from dpexplain.errors import LedgerCorrupt, LedgerUnavailable
from dpexplain.ledger.chain import RESTORE

MOUNTS = Path("/proc/self/mountinfo")
LOGS = ("", "-wal", "-shm", "-journal")
ROOM = 1 << 16  # bytes: a few commits
Inode = tuple[int, int]


def require_sound(path: Path) -> Inode:
    """Which file it is; refused if it is empty, has a second name, or can be written or replaced by any user."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):  # a pipe would be waited for without end
        raise LedgerUnavailable(f"{path} is a folder, a pipe or a device. Name the file of a ledger")
    if found.st_size == 0:
        raise LedgerCorrupt(f"the ledger {path} is an empty file: it was truncated, or is not a ledger. {RESTORE}")
    if found.st_nlink > 1:
        finish_creation(path)
    require_safe_folder(path)
    if found.st_mode & stat.S_IWOTH:
        raise LedgerUnavailable(
            f"everybody may write to the ledger {path}. Run: chmod 600 {path}. Then check it with `dpexplain ledger verify`"
        )
    if mounted := [name for suffix in LOGS if is_mount_point(name := Path(f"{path}{suffix}"))]:
        raise LedgerUnavailable(
            f"the ledger's file {mounted[0]} is mounted as a single file, so processes outside the mount would use another. "
            "Mount its whole directory instead"
        )
    return require_one_name(path)


def require_log(path: Path) -> None:
    """Raise LedgerCorrupt if the log of a ledger was deleted that nobody has closed: the newest entries may be in the log alone.

    SQLite makes the log before its index and deletes it after, so an index without a log has lost it; unless both were being deleted just now.
    """
    log, index = Path(f"{path}-wal"), Path(f"{path}-shm")
    if index.exists() and not log.exists() and index.exists():
        raise LedgerCorrupt(
            f"the log {log.name} of the ledger {path} is gone, although nobody closed the ledger: its newest entries may be lost. "
            f"Put the log back. Without it: {RESTORE}"
        )


def require_one_name(path: str | Path) -> Inode:
    """Which file it is, asked before every transaction. FileNotFoundError where there is none."""
    found = os.stat(path)
    if found.st_nlink > 1 and stat.S_ISREG(found.st_mode):
        raise LedgerUnavailable(
            f"the ledger {path} has {found.st_nlink} names (hard links). Each name has its own log, so the budget could be spent "
            f"twice. Find them (find DIR -inum {found.st_ino}), keep one name, and copy a ledger instead of linking it"
        )
    return found.st_dev, found.st_ino


def require_safe_folder(path: Path) -> None:
    mode = path.parent.stat().st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        raise LedgerUnavailable(
            f"everybody may replace files in {path.parent}, so a ledger there could be swapped. Run: chmod o-w {path.parent}"
        )


def require_room(path: Path) -> None:
    """Raise LedgerUnavailable if the disk cannot store a few further commits: a file without a name is written beside the ledger, and gone at once."""
    try:
        with tempfile.TemporaryFile(dir=path.parent) as probe:
            probe.write(bytes(ROOM))
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        raise LedgerUnavailable(
            f"the ledger {path} cannot grow: nothing can be written beside it ({error.strerror}). Free some space, or check the disk"
        ) from None


def is_mount_point(path: Path) -> bool:
    """Whether this very file is mounted. Without Linux's list of mounts only other file systems are noticed."""
    try:
        lines = MOUNTS.read_bytes().splitlines()
    except OSError:
        return os.path.ismount(path)
    points = {re.sub(rb"\\([0-7]{3})", lambda code: bytes([int(code[1], 8)]), line.split()[4]) for line in lines}
    return os.fsencode(path) in points


def finish_creation(path: Path) -> None:
    """A creator that died between linking the ledger into place and removing its draft left a second name: remove it."""
    for draft in path.parent.iterdir():
        with suppress(FileNotFoundError):
            if draft.name.startswith(f".{path.name}.") and draft.name.endswith(".new") and draft.samefile(path):
                draft.unlink()


def create_private(path: Path) -> None:
    """An empty file that only its owner may read: SQLite gives its logs the same rights."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def remove_with_logs(path: Path) -> None:
    for suffix in LOGS:
        with suppress(OSError):
            Path(f"{path}{suffix}").unlink()


def flush_directory(path: Path) -> None:
    """Make a new name survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
