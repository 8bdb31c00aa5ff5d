"""Exit codes and error messages of the command line: what is wrong on one line of stderr, the remedy on the next."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Container
from functools import wraps
from inspect import signature
from typing import ParamSpec

import typer

from dpexplain.errors import BudgetExhausted, DpexplainError, IntegrityError

P = ParamSpec("P")

DONE, BAD_INPUT, EXHAUSTED, INTEGRITY, REFUTED = 0, 2, 3, 4, 5  # REFUTED: an audit found that a privacy claim is wrong

# What a message calls a Python argument, and the option of a command that has it under this name.
FLAGS = (
    ("ignore_extra", r'extra="ignore"', "--ignore-extra"),
    ("clip", r"clip=True", "--clip"),
    ("bounds", r"bounds=\((\S+), (\S+)\)", r"--bounds \1,\2"),
    ("answer", r"output='(\w+)'", r"--answer \1"),
    ("answer", r"output=(?!\w)", "--answer"),
    ("target", r"target=(?=\w|')", "--target "),
    ("target", r"target=", "--target"),
    ("trusted", r"set trusted = true", "pass --trusted"),
    ("record", r"must be a dict\b", "must be a JSON object"),
    ("record", r"[Pp]ass a dict\b", 'Write {"name": value, …}'),
)


def exit_code(error: DpexplainError) -> int:
    if isinstance(error, BudgetExhausted):
        return EXHAUSTED
    return INTEGRITY if isinstance(error, IntegrityError) else BAD_INPUT


def exit_on_error(command: Callable[P, None]) -> Callable[P, None]:
    """Run a command; what dpexplain raises becomes a message and an exit code, never a traceback."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                command(*args, **kwargs)
        except DpexplainError as error:
            print_error(with_options(str(error), signature(command).parameters))
            raise typer.Exit(exit_code(error)) from None
        except OSError as error:
            print_error(
                f"{error.filename or 'a file'}: {error.strerror or error}. Check the name, and that you may read or write it"
            )
            raise typer.Exit(BAD_INPUT) from None

    return run


def with_options(message: str, parameters: Container[str]) -> str:
    """The message with the options of a command in place of Python's arguments."""
    for parameter, keyword, flag in FLAGS:
        if parameter in parameters:
            message = re.sub(keyword, flag, message)
    return message


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print one line on stderr, without the place in the source."""
    print(f"warning: {message}", file=sys.stderr)


def print_error(error: DpexplainError | str) -> None:
    """Print an error: what is wrong on the first line, the remedy on the second. Messages are written in that order."""
    what, _, remedy = str(error).partition(". ")
    print(f"error: {what.rstrip('.')}", file=sys.stderr)
    if remedy:
        print(f"       {remedy}", file=sys.stderr)
