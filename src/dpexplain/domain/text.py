"""The public description of texts: a vocabulary, and how a text becomes the set of its words.

A *word* is a run of letters and digits (of any script), with apostrophes inside it: `don't` is one word, `_great_` is `great`, `10/10` is
`10` twice. HTML line breaks (`<br>`, `<br />`) separate words. Words are lower-cased, and ’ is written '. Nothing is stemmed.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import scipy

from dpexplain.arguments import quote
from dpexplain.domain import description
from dpexplain.domain.columns import TABLES, read_columns
from dpexplain.domain.interface import Block, FloatArray, format_list
from dpexplain.domain.scaled import UNSCALED, require_scale
from dpexplain.domain.values import Column, objects, unicode_text
from dpexplain.errors import DataError, DomainError, QueryError

TOKENISER = "words-1"  # the rule above; a description names it, so that another rule can never be mistaken for it
Span: TypeAlias = tuple[int, int, str]
_WORD = re.compile(r"<br\s*/?>|([^\W_]+(?:['’][^\W_]+)*)", re.IGNORECASE)


def words_of(text: str) -> set[str]:
    """The different words of a text."""
    return {_normalise(word) for word in set(_WORD.findall(text))} - {""}


def word_spans(text: str) -> list[Span]:
    """(start, stop, word) of each word, in order."""
    return [(found.start(1), found.end(1), _normalise(found[1])) for found in _WORD.finditer(text) if found[1]]


def _normalise(word: str) -> str:
    return str.lower(word).replace("’", "'")


@dataclass(frozen=True, slots=True, repr=False)
class TextDomain(description.DomainDescription):
    """Texts as points of {0, 1}ⁿ: column j is 1 where the text has the j-th word of a public vocabulary (SPEC §3).

    The vocabulary is part of what is public: take it from a dictionary or from public text (`from_public_text`), never from the private
    texts, whose rare words name people. `column` says where the text is when rows are a table; without it rows are the texts themselves.

    `encode` is for private texts, total and row-wise: a word outside the vocabulary is ignored, and whatever is not a `str` (None, NaN,
    a number, bytes) counts as the empty text. `encode_query` is strict about what is asked: a text with at least one word, known or not.
    """

    vocabulary: Sequence[str]
    column: str | None = None
    scale: float = UNSCALED  # of every word, in distances between texts
    _positions: Mapping[str, int] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        words = _vocabulary(self.vocabulary)
        if self.column is not None and not isinstance(self.column, str):
            raise DomainError(f"column must name the column that holds the text, got {quote(self.column)}")
        object.__setattr__(self, "vocabulary", words)
        object.__setattr__(self, "scale", require_scale("a text domain's ", self.scale))
        object.__setattr__(self, "_positions", {word: i for i, word in enumerate(words)})

    @classmethod
    def from_public_text(
        cls,
        texts: Iterable[Any],
        size: int = 500,
        *,
        stop_words: Iterable[str] = (),
        column: str | None = None,
        scale: float = UNSCALED,
    ) -> TextDomain:
        """The `size` words that occur in most of these *public* texts, most frequent first (ties by alphabet), without `stop_words`.

        Every word of the result is published. Do not pass the texts you want to protect.
        """
        if isinstance(texts, (str, bytes)):
            raise DomainError("from_public_text needs several texts. Pass a list or any iterable of strings")
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(words_of(text) if isinstance(text, str) else ())
        left_out = {_normalise(word) for word in stop_words}
        ranked = sorted(((-count, word) for word, count in counts.items() if word not in left_out))[:size]
        if len(ranked) < size:
            raise DomainError(
                f"the public text has only {len(ranked)} different words, and size={size} was asked for. Pass more text, or a smaller size"
            )
        return cls([word for _, word in ranked], column, scale)

    @property
    def width(self) -> int:
        return len(self.vocabulary)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.vocabulary)

    @property
    def titles(self) -> tuple[str, ...]:
        """The names: words and superpixels have no other labels."""
        return self.names

    @property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(Block(i, i + 1, "binary", self.scale) for i in range(self.width))

    @property
    def columns(self) -> tuple[str, ...]:
        return () if self.column is None else (self.column,)

    def encode(self, rows: Any) -> scipy.sparse.csr_array:
        """Private texts → (m, n) in sparse rows of ones: a list, array or series of texts, or a table with the named column."""
        indices, starts = array("q"), array("q", [0])
        for text in self.texts(rows):
            indices.extend(self._positions_in(text))
            starts.append(len(indices))
        ones = np.ones(len(indices))
        return scipy.sparse.csr_array((ones, np.array(indices), np.array(starts)), shape=(len(starts) - 1, self.width))

    def encode_query(self, record: Any) -> FloatArray:
        """One public text → (n,): a string, or a dict that has it under the domain's `column`."""
        point = np.zeros(self.width)
        point[self._positions_in(self.query_text(record))] = 1.0
        return point

    def encode_queries(self, records: Any) -> FloatArray:
        """Public texts → (k, n), each as strictly as by `encode_query`; an error names the row, counted from 0."""
        return np.array([_encode_row(i, self.encode_query, one) for i, one in enumerate(self.separate(records))]).reshape(
            -1, self.width
        )

    def separate(self, records: Any) -> list[Any]:
        """Public texts one by one."""
        if isinstance(records, str):
            raise QueryError("a single text is not a batch. Pass a list of texts, or ask about one")
        if isinstance(records, (list, tuple)):
            return list(records)
        try:
            return list(self.texts(records))
        except DataError as error:
            raise QueryError(str(error)) from None

    def position(self, word: str) -> int:
        """The column of a word of the vocabulary."""
        return self._positions[word]

    def spans(self, text: str) -> list[Span]:
        """(start, stop, word) of each word of the vocabulary, in order: what a plot highlights."""
        return [span for span in word_spans(text) if span[2] in self._positions]

    def to_dict(self) -> dict[str, Any]:
        """{"kind": "text", "tokeniser": …, "vocabulary": […], "column": …, "scale": …}, the last two where they are declared."""
        described: dict[str, Any] = {"kind": "text", "tokeniser": TOKENISER, "vocabulary": list(self.vocabulary)}
        described |= {} if self.column is None else {"column": self.column}
        return described if self.scale == UNSCALED else described | {"scale": self.scale}

    @classmethod
    def from_dict(cls, data: Any) -> TextDomain:
        if not isinstance(data, Mapping) or data.get("kind") != "text":
            raise DomainError("this does not describe a text domain. Pass what TextDomain.to_dict() returned")
        description.require_known(data, {"kind", "tokeniser", "vocabulary", "column", "scale"}, "a text domain")
        if data.get("tokeniser", TOKENISER) != TOKENISER:
            raise DomainError(
                f"this text domain cuts words by a different rule from {TOKENISER!r}. Read it with the version that made it"
            )
        return cls(data.get("vocabulary", ()), data.get("column"), data.get("scale", UNSCALED))

    def __repr__(self) -> str:
        where = "" if self.column is None else f" in column {self.column!r}"
        return f"<TextDomain: {self.width} words{where}: {format_list(self.vocabulary)}>"

    def _positions_in(self, text: object) -> list[int]:
        """Which words of the vocabulary occur, in order."""
        if not isinstance(text, str):
            return []
        positions = self._positions
        return sorted(positions[word] for word in words_of(text) if word in positions)

    def texts(self, rows: Any) -> Column:
        """The texts of any container of rows, as one column."""
        return _column(rows, self.column)

    def query_text(self, record: Any) -> str:
        """The text of a query; QueryError unless it can be asked about."""
        if isinstance(record, Mapping) and self.column is not None:
            if set(record) != {self.column}:
                raise QueryError(
                    f"a query has the one field {self.column!r}, got {format_list(record)}. Pass it, or the text itself"
                )
            record = record[self.column]
        if not isinstance(record, str):
            raise QueryError(f"a query must be a text, got {type(record).__name__}. Pass a string")
        if not words_of(record):
            raise QueryError("the text has no words. Pass a text with at least one word")
        return record


def _column(rows: Any, name: str | None) -> Column:
    """The texts of any container. Only its type and its column names decide whether this raises."""
    if isinstance(rows, (str, bytes)):
        raise DataError("one text is not a list of rows. Pass a list of texts")
    if isinstance(rows, (list, tuple)) and any(not isinstance(row, Mapping) or name in row for row in rows):
        return objects([row.get(name) if isinstance(row, Mapping) else row for row in rows])  # each row by itself
    if _is_table(rows):
        if name is None:
            raise DataError("these rows are a table. Name the column that holds the text, as in TextDomain(vocabulary, column=…)")
        return read_columns(rows, [name])[name]
    try:
        return read_columns({"text": rows}, ["text"])["text"]
    except DataError:
        raise DataError(f"texts must be a list, array or series of strings, or {TABLES}, got {type(rows).__name__}") from None


def _is_table(rows: Any) -> bool:
    return (
        (isinstance(rows, (list, tuple)) and len(rows) > 0)
        or isinstance(rows, Mapping)
        or hasattr(rows, "columns")
        or hasattr(rows, "column_names")
    )


def _vocabulary(words: Any) -> tuple[str, ...]:
    if isinstance(words, (str, bytes, Mapping, set, frozenset)) or not isinstance(words, Iterable):
        raise DomainError(f"a vocabulary is a list of words in a fixed order, got {type(words).__name__}. Pass a list")
    listed_words = tuple(_word(word) for word in words)
    if not listed_words:
        raise DomainError(
            "a vocabulary needs at least one word. List words, or use TextDomain.from_public_text(texts), which finds the most frequent ones"
        )
    if twice := [word for word, count in Counter(listed_words).items() if count > 1]:
        raise DomainError(f"the vocabulary repeats {twice[0]!r}. List each word once")
    return listed_words


def _word(word: object) -> str:
    if not isinstance(word, str):
        raise DomainError(f"the vocabulary holds {quote(word)}. Every word must be a string")
    found = words_of(word)
    if len(found) > 1:  # a text by mistake, which is not quoted: it may be private
        raise DomainError(f"an entry of the vocabulary has {len(found)} words. List single words, in lower case")
    if found != {word}:
        spelled = next(iter(found), "no word at all")
        raise DomainError(
            f"{quote(word)} can never occur: a text's words are lower-case runs of letters and digits. It reads as {spelled!r}"
        )
    return unicode_text("the vocabulary's word", word)


def _encode_row(position: int, encode: Callable[[Any], FloatArray], record: Any) -> FloatArray:
    try:
        return encode(record)
    except QueryError as error:
        raise QueryError(f"row {position}: {error}") from None
