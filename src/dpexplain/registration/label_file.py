"""A file with the label of each row in order: a magic number, a 32-byte key of what the labels were made from, then a float64 for each row.

The file is as private as the rows: only its owner may read it. Temporary label files are unlinked at creation.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING
from weakref import finalize

import numpy as np

from dpexplain.core.arrays import Vector
from dpexplain.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

MARK = b"DPXLABEL"
HEADER, ITEM = len(MARK) + sha256().digest_size, 8


class LabelFile:
    """Labels that are read a slice at a time, from any thread."""

    def __init__(self, handle: IO[bytes]) -> None:
        self._descriptor = os.dup(handle.fileno())
        finalize(self, os.close, self._descriptor)

    @classmethod
    def temporary(cls, rows: int, labels: Iterable[Vector]) -> LabelFile:
        """A temporary file that is unlinked at creation, so that it ends with this process. There are `rows` labels."""
        del rows
        with TemporaryFile(prefix="dpexplain-") as handle:
            _write(handle, "", labels)
            return cls(handle)

    @classmethod
    def open_cached(cls, path: Path, key: str, rows: int, labels: Iterable[Vector]) -> LabelFile:
        """The file at `path` if it was made for `key` and is whole; else `labels` are computed and stored there."""
        if not _is_made_for(path, key, rows):
            draft = path.with_name(f".{path.name}.new")
            draft.unlink(missing_ok=True)
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as handle:
                _write(handle, key, labels)
            draft.replace(path)
        with path.open("rb") as whole:
            return cls(whole)

    @property
    def columns(self) -> tuple[str, ...]:
        """None: labels come from the file, not from columns of the rows."""
        return ()

    def of(self, batch: pa.RecordBatch, start: int) -> Vector:
        return self.read_range(start, batch.num_rows)

    def read_range(self, start: int, count: int) -> Vector:
        return np.frombuffer(os.pread(self._descriptor, ITEM * count, HEADER + ITEM * start))

    def read_all(self) -> Vector:
        return self.read_range(0, (os.fstat(self._descriptor).st_size - HEADER) // ITEM)


def _write(handle: IO[bytes], key: str, labels: Iterable[Vector]) -> None:
    handle.write(_header(key))
    for part in labels:
        handle.write(np.ascontiguousarray(part, dtype=np.float64).tobytes())
    handle.flush()


def _is_made_for(path: Path, key: str, rows: int) -> bool:
    """DataError for a file that is something else: it is not overwritten."""
    try:
        with path.open("rb") as handle:
            header = handle.read(HEADER)
            whole = os.fstat(handle.fileno()).st_size == HEADER + ITEM * rows
    except FileNotFoundError:
        return False
    except OSError:
        header = b""
    if not header.startswith(MARK):
        raise DataError(f"{path} is not a label cache. Delete it to compute the labels again, or name another file")
    return whole and header == _header(key)


def _header(key: str) -> bytes:
    return MARK + sha256(key.encode()).digest()
