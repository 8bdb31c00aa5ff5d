"""Private rows on disk, read again for each question. Memory holds two parts of them at a time, whatever their number."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from dpexplain.backends.encoded import EncodedFiles, Part
from dpexplain.backends.parquet import UNREADABLE, unreadable_files_error
from dpexplain.backends.summed import ADDING, SummedRows, answers, total
from dpexplain.errors import InputError
from dpexplain.progress import with_bar

T = TypeVar("T")
_SLOW = 1 << 28  # encoded bytes from which a progress bar is shown


class StreamedRows(SummedRows):
    """Implements the `Rows` port by one pass over the files for each question; many local questions share a pass."""

    def __init__(self, source: EncodedFiles, *, progress: bool = True) -> None:
        self._source, self._progress = source, progress

    @property
    def width(self) -> int:
        return self._source.domain.width

    @property
    def summation_error(self) -> float:
        """A part's own error, and that of adding the parts. It does not depend on how many rows there are."""
        return self._source.summation_error + ADDING

    def require_unchanged(self) -> None:
        self._source.files.require_unchanged()

    def _ask(self, question: str, query: Any) -> Any:
        self.require_unchanged()
        return total(answers(self._parts(), question, query))

    def _parts(self) -> Iterator[Part]:
        parts = _hide_causes(ahead(self._source.parts(self._source.chunks())))
        if not self._progress or self._source.rows * self.width * 4 < _SLOW:
            return parts
        count = -(-self._source.rows // self._source.part_rows)
        return iter(with_bar(parts, "reading private rows", count))


def _hide_causes(parts: Iterator[T]) -> Iterator[T]:
    """Raise RowsUnavailable without the cause, which may quote a row, where files can no longer be read."""
    try:
        yield from parts
    except (InputError, *UNREADABLE):
        raise unreadable_files_error() from None


def ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield the same items, while another thread prepares the next one."""
    with ThreadPoolExecutor(1) as pool:
        upcoming = pool.submit(next, items, None)
        while (item := upcoming.result()) is not None:
            upcoming = pool.submit(next, items, None)
            yield item
