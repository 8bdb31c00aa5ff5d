"""Finished pieces of long work in files, so that an interrupted run goes on where it stopped and says how long the rest will take."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

Columns = dict[str, dict[str, np.ndarray]]  # {mechanism: {quantity: array}}
CPU = "cpu seconds"


class Clock:
    """Time left of several pieces of work whose sizes are known in proportion: what is done took so long, so the rest takes as much for its size."""

    def __init__(self, total: float = 1.0, say: Callable[[str], None] | None = None) -> None:
        self.total, self.done, self.worked, self.seconds = total, 0.0, 0.0, 0.0
        self.stored_cpu = 0.0  # processor seconds that pieces took which were there already
        self.say = say or (lambda text: print(text, file=sys.stderr, flush=True))

    def count_part(self, name: str, size: float, seconds: float | None) -> None:
        """`seconds` None: it was stored already."""
        self.done += size
        if seconds is None:
            self.say(f"  {name}: stored before")
            return
        self.worked, self.seconds = self.worked + size, self.seconds + seconds
        self.say(f"  {name}: {_time(seconds)}; {self.done / self.total:.0%} done, about {_time(self.left)} left")

    @property
    def left(self) -> float:
        return self.seconds / self.worked * max(self.total - self.done, 0.0) if self.worked else float("nan")


class Parts:
    """`get(key, compute)` computes once; arrays go to FOLDER/KEY.npz, written whole or not at all."""

    def __init__(self, folder: Path, again: bool = False, clock: Clock | None = None, counted: bool = True) -> None:
        self.folder, self.again, self.clock, self.counted = folder, again, clock or Clock(say=lambda _: None), counted

    def get(self, key: str, compute: Callable[[], Columns], size: float = 1.0) -> Columns:
        stored = self.folder / f"{key}.npz"
        if stored.exists() and not self.again:
            self.clock.count_part(key, size, None)
            self.clock.stored_cpu += _cpu(stored) if self.counted else 0.0
            return _read(stored)
        start, cpu = perf_counter(), process_time()
        found = compute()
        self.folder.mkdir(parents=True, exist_ok=True)
        unfinished = stored.with_suffix(".unfinished.npz")
        arrays = {f"{name}|{what}": array for name, one in found.items() for what, array in one.items()}
        np.savez_compressed(unfinished, **arrays, **{CPU: np.array(process_time() - cpu)})
        unfinished.replace(stored)
        self.clock.count_part(key, size, perf_counter() - start)
        return found


def _cpu(path: Path) -> float:
    with np.load(path) as arrays:
        return float(arrays[CPU]) if CPU in arrays.files else 0.0


def _read(path: Path) -> Columns:
    found: Columns = {}
    with np.load(path) as arrays:
        for key in (one for one in arrays.files if one != CPU):
            name, what = key.rsplit("|", 1)
            found.setdefault(name, {})[what] = arrays[key]
    return found


def _time(seconds: float) -> str:
    if seconds != seconds:
        return "an unknown time"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d} min" if minutes else f"{rest} s"
