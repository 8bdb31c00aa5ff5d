"""Trace a question, a release and an HTTP request from room to room: `python -m tests.walks` writes the walks into CONTRIBUTING.md.

A room is a folder or a file directly in `dpexplain/`. A change of room is a call of a function in another room than the caller's, where that function
runs for the first time on the walk: methods, properties, constructors that are written out and lambdas count as functions, returning does not count,
and neither does what runs while a module is imported or a kernel compiled. So the number of changes is how many functions a reader has to follow
into another room.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType
from typing import Any

import numpy as np

import dpexplain as dpx

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "CONTRIBUTING.md"
SOURCE = Path(dpx.__file__).parent
LOADING = ("_call_with_frames_removed", "_compile_for_args")  # importlib's last own frame above what it runs, and Numba's


@dataclass
class Step:
    """Functions of one room that the step above it calls; `depth` is how many steps led there."""

    room: str  # empty for the caller outside the library
    depth: int
    functions: list[str]

    def __str__(self) -> str:
        return f"{'  ' * self.depth}{self.room}: {', '.join(self.functions)}"


class Walk:
    """Collects the steps of everything that runs within `record`, in all threads."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._seen: set[CodeType] = set()
        self._threads = threading.local()

    @property
    def changes(self) -> int:
        """Changes of room: calls from one room of the library into another."""
        return sum(len(step.functions) for step in self.steps if step.depth)

    @contextmanager
    def record(self) -> Iterator[None]:
        threading.setprofile(self._notice)
        sys.setprofile(self._notice)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def _notice(self, frame: FrameType, event: str, _: Any) -> None:
        code, own = frame.f_code, self._threads.__dict__
        if event not in ("call", "return"):
            return
        if code.co_name in LOADING:
            own["loading"] = max(own.get("loading", 0) + (1 if event == "call" else -1), 0)
        if own.get("loading") or not code.co_filename.startswith(f"{SOURCE}/"):
            return
        stack = own.setdefault("stack", [("", 0)])  # (room, depth) of each frame of the library
        if event == "call":
            stack.append(self._enter(code, *stack[-1]))
        elif len(stack) > 1:
            stack.pop()

    def _enter(self, code: CodeType, caller: str, depth: int) -> tuple[str, int]:
        file, new = code.co_filename.removeprefix(f"{SOURCE}/"), code not in self._seen
        self._seen.add(code)
        room = file.partition("/")[0].removesuffix(".py")
        if room == caller or not new:
            return room, depth
        name = code.co_qualname.replace("<locals>.", "")
        before = next((step for step in reversed(self.steps) if step.depth <= depth), None)
        if before is not None and (before.room, before.depth) == (room, depth):
            before.functions.append(name)
        else:
            self.steps.append(Step(room, depth, [name]))
        return room, depth + 1


DOMAIN = dpx.Domain([dpx.Numeric("age", 17, 97), dpx.Categorical("work", values=["a", "b", "c"]), dpx.Binary("married")])
RECORD = {"age": 40, "work": "a", "married": True}
BUDGET = dpx.Budget(1.0, 1e-6)


def people() -> dpx.PrivateData:
    rng = np.random.default_rng(0)
    rows = {"age": rng.uniform(17, 97, 500), "work": rng.choice(["a", "b", "c"], 500), "married": rng.random(500) > 0.5}
    return dpx.PrivateData(rows, DOMAIN, model=lambda table: np.where(np.asarray(table["age"]) > 50, 1.0, -1.0))


def question() -> Walk:
    """`dpx.Explainer(data, budget).explain(record)`"""
    walk, data = Walk(), people()
    with walk.record():
        dpx.Explainer(data, BUDGET).explain(RECORD)
    return walk


def release() -> Walk:
    """`dpx.release(data, budget)`"""
    walk, data = Walk(), people()
    with walk.record():
        dpx.release(data, BUDGET)
    return walk


def request() -> Walk:
    """`POST /v1/explain`, to a service that answers from a budget"""
    from tests import service_support as support

    from dpexplain.service.app import Service, create_app
    from dpexplain.service.backend import open_backend
    from dpexplain.service.config import load_config

    walk = Walk()
    with TemporaryDirectory() as folder:
        config = load_config(support.write_config(support.write_owner_files(Path(folder)), service={"keys": None, "open": True}))
        api = support.InProcess(create_app(Service(open_backend(config), config.settings, None)))
        with walk.record():
            answer = api.post("/v1/explain", json={"record": support.RECORD})
        assert answer.status_code == 200, answer.text
    return walk


WALKS: dict[str, Callable[[], Walk]] = {"question": question, "release": release, "request": request}


def as_text(name: str, walk: Walk) -> str:
    return f"{WALKS[name].__doc__}: {walk.changes} changes of room\n\n```\n" + "\n".join(map(str, walk.steps)) + "\n```\n"


def in_page(page: str, name: str) -> re.Match[str]:
    """The part of the page that this module writes."""
    found = re.search(rf"<!-- walk: {name} -->\n(.*?)<!-- end -->", page, re.DOTALL)
    assert found, f"{PAGE.name} has no place for the walk of a {name}"
    return found


def trace_walks() -> dict[str, str]:
    """Each walk as a fresh process takes it. What is cached here would leave steps out; members of sets are visited in a fixed order."""
    command, environment = [sys.executable, "-m", "tests.walks"], os.environ | {"PYTHONHASHSEED": "0"}
    run = partial(subprocess.run, capture_output=True, text=True, check=True, cwd=ROOT, env=environment)
    return {name: run([*command, name]).stdout for name in WALKS}


def main() -> None:
    """Write all walks into the page, or print the one that is named."""
    if sys.argv[1:]:
        print(as_text(sys.argv[1], WALKS[sys.argv[1]]()), end="")
        return
    page = PAGE.read_text(encoding="utf-8")
    for name, text in trace_walks().items():
        start, stop = in_page(page, name).span(1)
        page = page[:start] + text + page[stop:]
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
