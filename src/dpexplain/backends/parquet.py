"""Parquet files as they were registered: which row groups they hold, and whether they are still the same files.

A file is recognised by its size, its time of change and the SHA-256 of its footer, which holds every column chunk's place, size and
statistics. Rewriting a file with all three equal needs access to the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from hashlib import sha256
from itertools import accumulate, groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from dpexplain.domain.interface import format_list, hint
from dpexplain.errors import DataError, RowsUnavailable

WILD = "*["
BUFFER = 1 << 18  # bytes read ahead of each column: a row group is never in memory as a whole
UNREADABLE = (pa.ArrowException, OSError, ValueError)


@dataclass(frozen=True, slots=True)
class KnownFile:
    """One file, and the facts by which it is recognised when it is read again."""

    path: str
    size: int
    modified: int | None
    footer: str
    groups: tuple[int, ...]  # rows in each row group
    content: int  # bytes of its columns, uncompressed


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group, and the position of its first row among all rows of all files."""

    file: int
    index: int
    start: int
    rows: int


@dataclass(frozen=True, slots=True)
class ParquetFiles:
    """Files in order of their names, with one schema."""

    system: Any
    files: tuple[KnownFile, ...]
    schema: pa.Schema

    @classmethod
    def find(cls, where: str | Path | Sequence[str | Path], columns: Sequence[str]) -> ParquetFiles:
        """What `where` names: a file, a folder, a pattern with * in it, an address such as s3://…, or a list of these.

        DataError unless every file is Parquet and has the named columns with the same types. No value is read.
        """
        places = [where] if isinstance(where, (str, Path)) else list(where)
        found = [_list_files(str(place)) for place in places]
        if not any(paths for _, paths in found):
            raise DataError(f"there are no Parquet files at {', '.join(map(str, places))}. Check the name or the pattern")
        system, paths = found[0][0], sorted({path for _, more in found for path in more})
        if any(other != system for other, _ in found):
            raise DataError("the files are on different file systems. Name files of one of them")
        known, schemas = zip(*(_read_identity(system, path) for path in paths), strict=True)
        for path, schema in zip(paths, schemas, strict=True):
            _require_columns(path, schema, schemas[0], columns)
        return cls(system, known, schemas[0])

    @property
    def rows(self) -> int:
        return sum(sum(file.groups) for file in self.files)

    @property
    def groups(self) -> tuple[RowGroup, ...]:
        """Every row group, in the order of the rows."""
        places = [(f, g, rows) for f, file in enumerate(self.files) for g, rows in enumerate(file.groups)]
        starts = accumulate((rows for _, _, rows in places), initial=0)
        return tuple(RowGroup(f, g, start, rows) for (f, g, rows), start in zip(places, starts, strict=False) if rows)

    def batches(
        self, columns: Sequence[str] | None, most: int, groups: Sequence[RowGroup] | None = None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """(position of the first row, at most `most` rows), in order. RowsUnavailable when a file is no longer what it was."""
        for index, members in groupby(self.groups if groups is None else groups, key=lambda group: group.file):
            with self._open_file(self.files[index]) as file:
                for group in members:
                    start = group.start
                    for batch in file.iter_batches(most, row_groups=[group.index], columns=columns):
                        yield start, batch
                        start += batch.num_rows

    @contextmanager
    def _open_file(self, known: KnownFile) -> Iterator[pq.ParquetFile]:
        try:
            with self.system.open_input_file(known.path) as source:
                if sha256(_footer(source)).hexdigest() != known.footer:
                    raise changed_files_error()
                yield pq.ParquetFile(source, buffer_size=BUFFER, pre_buffer=False)
        except UNREADABLE:
            raise unreadable_files_error() from None
        self.require_unchanged([known])

    def require_unchanged(self, files: Sequence[KnownFile] | None = None) -> None:
        """RowsUnavailable unless the files have the size and time of change they were registered with."""
        files = self.files if files is None else files
        try:
            found = self.system.get_file_info([file.path for file in files])
        except UNREADABLE:
            raise unreadable_files_error() from None
        for file, info in zip(files, found, strict=True):
            if not info.is_file or (info.size, _modification_time(info)) != (file.size, file.modified):
                raise changed_files_error()


def changed_files_error() -> RowsUnavailable:
    return RowsUnavailable("the files of private rows were changed since they were registered. Register them again")


def unreadable_files_error() -> RowsUnavailable:
    """The error for a file that cannot be read. It does not repeat the cause, which may quote a row."""
    return RowsUnavailable("the files of private rows cannot be read now. Check storage and memory, or register them again")


def _list_files(place: str) -> tuple[Any, list[str]]:
    """A file system and the paths in it that `place` stands for."""
    try:
        base, pattern = _split(place)
        system, root = _system(base)
        info = system.get_file_info(root)
        if pattern:
            selected = system.get_file_info(pafs.FileSelector(root, allow_not_found=True, recursive="/" in pattern))
            return system, [one.path for one in selected if one.is_file and _matches(one.path, root, pattern)]
        if info.is_file:
            return system, [root]
        inside = system.get_file_info(pafs.FileSelector(root, allow_not_found=True, recursive=True))
        return system, [one.path for one in inside if one.is_file and one.path.endswith(".parquet")]
    except UNREADABLE as error:
        raise DataError(
            f"cannot look for files at {place} ({type(error).__name__}). Check the address and access to it"
        ) from None


def _split(place: str) -> tuple[str, str]:
    """Folder and pattern; the pattern is empty where `place` has no wildcard. Options of an address, after a "?", go with the folder."""
    if "://" in place and "?" in place:
        place, options = place.split("?", 1)
        folder, pattern = _split(place)
        return f"{folder}?{options}", pattern
    wild = min((place.index(sign) for sign in WILD if sign in place), default=len(place))
    if wild == len(place):
        return place, ""
    folder = place[:wild].rpartition("/")[0]
    return folder or ("/" if place.startswith("/") else "."), place[len(folder) :].lstrip("/")


def _system(base: str) -> tuple[Any, str]:
    if "://" not in base:
        return pafs.LocalFileSystem(), Path(base).absolute().as_posix()
    system, root = pafs.FileSystem.from_uri(base)
    return system, root


def _matches(path: str, root: str, pattern: str) -> bool:
    """Match folder by folder, so that * does not cross a folder."""
    names, wanted = path[len(root) :].strip("/").split("/"), pattern.split("/")
    return len(names) == len(wanted) and all(map(fnmatchcase, names, wanted))


def _read_identity(system: Any, path: str) -> tuple[KnownFile, pa.Schema]:
    try:
        info = system.get_file_info(path)
        with system.open_input_file(path) as source:
            footer = sha256(_footer(source)).hexdigest()
            file = pq.ParquetFile(source)
            groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
            rows, content = tuple(group.num_rows for group in groups), sum(group.total_byte_size for group in groups)
            return KnownFile(path, info.size, _modification_time(info), footer, rows, content), file.schema_arrow
    except UNREADABLE as error:
        raise DataError(f"cannot read {path} as Parquet ({type(error).__name__}). Write it again as Parquet") from None


def _footer(source: Any) -> bytes:
    """The metadata at the end of a file, whose length is stored before the last four bytes."""
    size = source.size()
    length = int.from_bytes(source.read_at(8, max(size - 8, 0))[:4], "little")
    return bytes(source.read_at(min(length, size) + 8, max(size - length - 8, 0)))


def _modification_time(info: Any) -> int | None:
    return None if info.mtime_ns is None else int(info.mtime_ns)


def _require_columns(path: str, schema: pa.Schema, first: pa.Schema, columns: Sequence[str]) -> None:
    for name in columns:
        if name not in schema.names:
            remedy = f"It has {format_list(schema.names)}. Correct the domain or the options, or add the column"
            raise DataError(f"{path} has no column {name!r}{hint(name, schema.names)}. {remedy}")
        if schema.field(name).type != first.field(name).type:
            kinds = f"{schema.field(name).type} in {path} and {first.field(name).type} in the first file"
            raise DataError(f"column {name!r} is {kinds}. Write all files with one schema")
