"""A bar for long work, where a person is watching; silent everywhere else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress

from dpexplain.core.watch import Watch, ignore


@contextmanager
def watched(work: str, steps: int) -> Iterator[Watch]:
    """Yield what long work calls at the start of each of its `steps`, with the step's name."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield ignore
        return
    with Progress(console=console, transient=True) as shown:
        task = shown.add_task(work, total=steps)

        def watch(step: str) -> None:
            shown.update(task, advance=1, description=f"{work}: {step}")

        yield watch
