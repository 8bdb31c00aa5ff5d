"""Numbers for Prometheus. Counters live in small mapped files, one for each worker, so that any worker can report those of all."""

from __future__ import annotations

import os
from bisect import bisect_left
from itertools import accumulate
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from dpexplain.service.backend import SpendingSummary

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
REFUSALS = ("budget", "key", "role", "rate", "size", "input")
STATUSES = ("1xx", "2xx", "3xx", "4xx", "5xx")
_SLOTS = [*(f"le {bound:g}" for bound in BOUNDS), "count", "sum", *REFUSALS, *STATUSES]
_INDEX = {name: i for i, name in enumerate(_SLOTS)}


class Metrics:
    """Counts of this worker, and the sum over all workers that share `folder`."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder, self._lock = folder, Lock()
        if folder is None:
            self._own = np.zeros(len(_SLOTS))
        else:
            self._own = np.memmap(folder / f"metrics-{os.getpid()}", np.float64, "w+", shape=(len(_SLOTS),))
        self._slots: Any = memoryview(self._own.data)  # NumPy takes ten times as long to add to one number

    def count_answer(self, seconds: float) -> None:
        bucket = bisect_left(BOUNDS, seconds)
        with self._lock:
            if bucket < len(BOUNDS):
                self._slots[bucket] += 1
            self._slots[_INDEX["count"]] += 1
            self._slots[_INDEX["sum"]] += seconds

    def count_refusal(self, why: str) -> None:
        self._add(why)

    def count_response(self, status: int) -> None:
        self._add(f"{status // 100}xx")

    def _add(self, name: str) -> None:
        with self._lock:
            self._slots[_INDEX[name]] += 1

    def totals(self) -> dict[str, float]:
        """Totals by name; those of bounds count what took at most so long."""
        if self._folder is None:
            found = [self._own]
        else:
            found = [np.fromfile(path, np.float64) for path in self._folder.glob("metrics-*")]
        counts: list[float] = np.sum([one for one in found if len(one) == len(_SLOTS)], axis=0).tolist()
        return dict(zip(_SLOTS, [*accumulate(counts[: len(BOUNDS)]), *counts[len(BOUNDS) :]], strict=True))

    def text(self, spending: SpendingSummary) -> str:
        totals = self.totals()
        lines = [*_gauges(spending), *_histogram(totals)]
        lines += _family("dpexplain_refusals_total", "counter", "Requests refused, by reason.")
        lines += [f'dpexplain_refusals_total{{reason="{why}"}} {totals[why]:g}' for why in REFUSALS]
        lines += _family("dpexplain_responses_total", "counter", "Responses by class of status.")
        lines += [f'dpexplain_responses_total{{status="{one}"}} {totals[one]:g}' for one in STATUSES]
        return "\n".join(lines) + "\n"


def _family(name: str, kind: str, text: str) -> list[str]:
    return [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]


def _gauges(spending: SpendingSummary) -> list[str]:
    left = None if spending.remaining is None else spending.remaining.epsilon
    whole = None if spending.budget is None else spending.budget.epsilon
    values: dict[str, tuple[str, float | None]] = {
        "dpexplain_spent_epsilon": ("Privacy spent so far, as epsilon at the delta of the budget.", spending.spent.epsilon),
        "dpexplain_remaining_epsilon": ("What one more answer may cost at most.", left),
        "dpexplain_budget_epsilon": ("The whole budget.", whole),
        "dpexplain_answers": ("Answers kept in the ledger.", spending.answers),
    }
    return [
        line
        for name, (text, value) in values.items()
        if value is not None
        for line in (*_family(name, "gauge", text), f"{name} {value!r}")
    ]


def _histogram(totals: dict[str, float]) -> list[str]:
    name = "dpexplain_explain_seconds"
    buckets = [f'{name}_bucket{{le="{bound:g}"}} {totals[f"le {bound:g}"]:g}' for bound in BOUNDS]
    count = totals["count"]
    ends = [f'{name}_bucket{{le="+Inf"}} {count:g}', f"{name}_sum {totals['sum']!r}", f"{name}_count {count:g}"]
    return [*_family(name, "histogram", "Time to explain, ledger included."), *buckets, *ends]
