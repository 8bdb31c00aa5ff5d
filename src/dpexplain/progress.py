"""Progress bars on standard error for long work. They are shown on a terminal only.

A bar that is opened while another is shown gets a line below it. Rich is loaded when a bar may be shown, not with the library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from operator import length_hint
from typing import TYPE_CHECKING, TypeAlias, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")
_displays: list[Progress] = []  # the display that is open, if any: a terminal has one
ProgressCallback: TypeAlias = Callable[[str], None]
"""Called with the name of each step, which is public, and never with a number that depends on rows."""


def no_progress(step: str) -> None:
    """No-op callback."""


def with_bar(items: Iterable[T], work: str, count: int | None = None) -> Iterable[T]:
    """The items, of which there are `count`, behind a bar that moves with each."""
    from rich.console import Console

    return _track(items, work, count) if Console(stderr=True).is_terminal else items


@contextmanager
def progress_steps(work: str, steps: int) -> Iterator[ProgressCallback]:
    """Yield what long work calls at the start of each of its `steps`, with the step's name."""
    with _display() as shown:
        if shown is None:
            yield no_progress
            return
        task = shown.add_task(work, total=steps)

        def watch(step: str) -> None:
            shown.update(task, advance=1, description=f"{work}: {step}")

        yield watch
        shown.remove_task(task)


def _track(items: Iterable[T], work: str, count: int | None) -> Iterator[T]:
    with _display() as shown:
        if shown is None:
            yield from items
            return
        task = shown.add_task(work, total=count or length_hint(items) or None)
        for item in items:
            yield item
            shown.advance(task)
        shown.remove_task(task)


@contextmanager
def _display() -> Iterator[Progress | None]:
    """The display that is open, or a new one; None where there is no terminal."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if _displays or not console.is_terminal:
        yield _displays[-1] if _displays else None
        return
    with Progress(console=console, transient=True) as shown:
        _displays.append(shown)
        try:
            yield shown
        finally:
            _displays.remove(shown)
