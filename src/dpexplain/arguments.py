"""Checks of what callers pass: wrong kinds of things become typed errors that name the remedy, before anything is read or spent."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import EINVAL
from math import isfinite
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from types import NoneType
from typing import Any

from dpexplain.errors import DataError, InputError, ParameterError


def is_finite(value: Any) -> bool:
    """Whether this is a finite number; text, None, booleans and other things are not."""
    return is_number(value) and isfinite(value)


def is_number(value: Any) -> bool:
    """Whether this is a real number of any kind, NumPy's included; booleans are not."""
    return not isinstance(value, bool) and isinstance(value, Real)


def require_whole(name: str, value: Any, least: int) -> None:
    """ParameterError unless `value` is a whole number of at least `least`."""
    if isinstance(value, bool) or not (isinstance(value, Integral) and int(value) >= least):
        raise ParameterError(f"{name} must be a whole number of at least {least}, got {quote(value)}")


def require_kind(name: str, value: Any, kind: type | tuple[type, ...], remedy: str) -> None:
    """ParameterError unless `value` is of this kind."""
    if not isinstance(value, kind):
        raise ParameterError(f"{name} cannot be {_shorten(value)}. {remedy}")


def require_text(name: str, value: Any) -> None:
    """ParameterError unless `value` is a text that every file can hold."""
    if not isinstance(value, str):
        raise ParameterError(f"{name} must be a text, got {_shorten(value)}. Write it in quotes")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ParameterError(f"{name} {quote(value)} is not valid Unicode. Remove the lone surrogates") from None


def require_method(name: str, value: Any, method: str, remedy: str) -> None:
    """ParameterError unless `value` is an object (not a class) with this method: for what is known by a protocol only."""
    found: Callable[..., Any] | None = None if isinstance(value, type) else getattr(value, method, None)
    if not callable(found):
        raise ParameterError(f"{name} cannot be {_shorten(value)}. {remedy}")


@contextmanager
def file_errors(path: str | Path, action: str) -> Iterator[None]:
    """An operating system's refusal becomes InputError; `action` is "read" or "write"."""
    if not isinstance(path, (str, PathLike)):
        raise ParameterError(f"cannot {action} {_shorten(path)}. Pass the path of a file, as text or a Path")
    try:
        yield
    except OSError as error:
        raise InputError(
            f"cannot {action} {str(path)!r}: {error.strerror or type(error).__name__}. Check the name, and that you may {action} it"
        ) from None
    except ValueError:  # a NUL in the name
        raise InputError(f"cannot {action} {str(path)!r}: it is not a valid file name. Pass the path of a file") from None


def require_regular_file(path: str | Path) -> int:
    """The size of a file; InputError for pipes, devices and folders, which could be read for ever."""
    with file_errors(path, "read"):
        found = Path(path).stat()
    if not stat.S_ISREG(found.st_mode):
        raise InputError(f"cannot read {str(path)!r}: it is a folder, a pipe or a device. Name a file")
    return found.st_size


def stat_file(path: Path) -> None:
    """OSError for a pipe, which would be waited for without end, a device or a folder, as for a file that is missing."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(EINVAL, "it is a folder, a pipe or a device")


@contextmanager
def without_causes() -> Iterator[None]:
    """Raise DataError without the errors that led to it: their arguments may hold rows."""
    try:
        yield
    except DataError as error:
        error.__cause__ = error.__context__ = None
        raise


def is_panic(error: BaseException) -> bool:
    """Whether a library in Rust panicked: that is no Exception, so what handles errors about a row would not handle it."""
    return not isinstance(error, Exception) and type(error).__name__ == "PanicException"


def quote(value: object) -> str:
    """The value as a message may show it; of tables, lists and arrays only the type, because their values may be private rows."""
    if isinstance(value, Real):
        return str(value)
    public = isinstance(value, (str, bytes, type, NoneType)) or type(value).__module__.startswith("dpexplain")
    if not public and not (isinstance(value, tuple) and all(isinstance(one, (Real, NoneType)) for one in value)):
        return f"a {type(value).__name__}"
    text = repr(value)
    return f"{text[:60]}…" if len(text) > 60 else text


def _shorten(value: object) -> str:
    """The value and its type, as a message may show them."""
    kind, text = type(value).__name__, quote(value)
    return text if text == f"a {kind}" else f"{text} ({kind})"
