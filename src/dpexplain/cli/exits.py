"""Exit codes and error messages of the command line: what is wrong on one line of stderr, the remedy on the next."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

import typer

from dpexplain.errors import BudgetExhausted, DpexplainError, IntegrityError

P = ParamSpec("P")

DONE, BAD_INPUT, EXHAUSTED, INTEGRITY, REFUTED = 0, 2, 3, 4, 5  # REFUTED: an audit found that a privacy claim is wrong


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
            tell(error)
            raise typer.Exit(exit_code(error)) from None
        except OSError as error:
            tell(f"{error.filename or 'a file'}: {error.strerror}. Check the name, and that you may read or write it.")
            raise typer.Exit(BAD_INPUT) from None

    return run


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """One line on stderr; where in the source it was raised is of no use here."""
    print(f"warning: {message}", file=sys.stderr)


def tell(error: DpexplainError | str) -> None:
    """Print an error: what is wrong on the first line, the remedy on the second. Messages are written in that order."""
    what, _, remedy = str(error).partition(". ")
    print(f"error: {what.rstrip('.')}", file=sys.stderr)
    if remedy:
        print(f"       {remedy}", file=sys.stderr)
