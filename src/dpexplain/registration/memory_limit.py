"""Estimates before rows are read whether they fit into memory: from their number and the sizes that Parquet declares."""

from __future__ import annotations

from pathlib import Path

from dpexplain.backends.parquet import ParquetFiles

SHARE = 0.5  # of the free memory that rows may take; the rest is for everything else
_MEMINFO, _GROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")


def fits(files: ParquetFiles, width: int, copies: int = 1) -> bool:
    """Whether so many processes can hold the table and its encoded rows; yes where the system does not report free memory."""
    encoded = files.rows * (4 * width + 8)
    table = sum(file.content for file in files.files)
    free = available()
    return free is None or copies * (encoded + table) <= SHARE * free


def available() -> int | None:
    """Bytes that can still be taken on this machine, or in this container."""
    known = [value for value in (_on_machine(), _in_container()) if value is not None]
    return min(known, default=None)


def _on_machine() -> int | None:
    try:
        lines = _MEMINFO.read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        return None


def _in_container() -> int | None:
    try:
        most, used = (int((_GROUP / name).read_text(encoding="ascii")) for name in ("memory.max", "memory.current"))
        return max(most - used, 0)
    except (OSError, ValueError):  # no such file, or "max"
        return None
