"""Progress bars on standard error for long work. They are shown on a terminal only.

Rich is loaded when a bar may be shown, not with the library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeAlias, TypeVar

T = TypeVar("T")
ProgressCallback: TypeAlias = Callable[[str], None]
"""Called with the name of each step, which is public, and never with a number that depends on rows."""


def no_progress(step: str) -> None:
    """No-op callback."""


def with_bar(items: Iterable[T], work: str, count: int | None = None) -> Iterable[T]:
    """The items, of which there are `count`, behind a bar that moves with each."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    return track(items, work, count, console=console, transient=True) if console.is_terminal else items


@contextmanager
def progress_steps(work: str, steps: int) -> Iterator[ProgressCallback]:
    """Yield what long work calls at the start of each of its `steps`, with the step's name."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not console.is_terminal:
        yield no_progress
        return
    with Progress(console=console, transient=True) as shown:
        task = shown.add_task(work, total=steps)

        def watch(step: str) -> None:
            shown.update(task, advance=1, description=f"{work}: {step}")

        yield watch
