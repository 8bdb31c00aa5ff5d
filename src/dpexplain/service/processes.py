"""Workers stop with their parent, and files that a killed service left are removed at the next start."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "dpexplain-service-"
LOCK = "in-use"


def end_with_parent() -> None:
    """Stop this worker, as if it had received a signal, as soon as the process that started it is gone."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="end-with-parent", daemon=True).start()


@contextmanager
def shared_folder() -> Iterator[Path]:
    """A folder for what workers share, readable by this user only and removed at the end, or at the next start after a kill."""
    remove_leftovers()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    with (folder / LOCK).open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # released by the system when this process ends, however it ends
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def remove_leftovers() -> None:
    """Remove folders of this user whose service no longer runs."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            if folder.lstat().st_uid == os.getuid() and not folder.is_symlink() and not is_in_use(folder):
                shutil.rmtree(folder)


def is_in_use(folder: Path) -> bool:
    """Whether a service runs on this folder. A folder without its lock was just made and counts as in use."""
    try:
        with (folder / LOCK).open("r+") as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
    except (FileNotFoundError, BlockingIOError):
        return True
