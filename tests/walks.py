"""Trace a question, a release and an HTTP request from folder to folder: `python -m tests.walks` writes the walks into CONTRIBUTING.md.

A step is a stay in one folder of the library: functions that the step above it calls there one after another, each at its first call. An indented step
was called from the one above it; coming back is no step. Files directly in `dpexplain/` are one folder; the two bottom layers of the import contract,
which everything uses, are none. Attributes, constructors, comprehensions and lambdas are left out: a reader need not open them.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType
from typing import Any

import numpy as np
from tests.import_graph import layers

import dpexplain as dpx

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "CONTRIBUTING.md"
SOURCE = Path(dpx.__file__).parent
BOTTOM, SHOWN = {name for layer in layers()[-1:] for name in layer}, 3


@dataclass
class Step:
    """A stay in a folder; `depth` is how many steps led there."""

    folder: str  # of the package, empty for the package itself
    depth: int
    functions: list[str]

    def __str__(self) -> str:
        named = ", ".join(self.functions[:SHOWN]) + (", …" if len(self.functions) > SHOWN else "")
        return f"{'  ' * self.depth}{self.folder or 'dpexplain'}/ {named}"


class Walk:
    """Collects the steps of everything that runs within `recorded`, in all threads."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._seen: set[CodeType] = set()
        self._threads = threading.local()

    @contextmanager
    def recorded(self) -> Iterator[None]:
        threading.setprofile(self._notice)
        sys.setprofile(self._notice)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def _notice(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(f"{SOURCE}/"):
            return
        stack = self._threads.__dict__.setdefault("stack", [("", 0)])  # (folder, depth) of each frame of the library
        if event == "call":
            stack.append(self._entered(code, *stack[-1]))
        elif len(stack) > 1:
            stack.pop()

    def _entered(self, code: CodeType, caller: str, depth: int) -> tuple[str, int]:
        file, new = code.co_filename.removeprefix(f"{SOURCE}/"), code not in self._seen
        self._seen.add(code)
        folder = file.rpartition("/")[0].partition("/")[0]
        if Path(file).stem in BOTTOM or (self.steps and folder == caller) or not new or not is_read(code, file):
            return (caller if Path(file).stem in BOTTOM else folder), depth
        name = f"{Path(file).stem.removeprefix('__init__')}.{code.co_qualname.replace('<locals>.', '')}".removeprefix(".")
        before = next((step for step in reversed(self.steps) if step.depth <= depth), None)
        if before is not None and (before.folder, before.depth) == (folder, depth):
            before.functions.append(name)
        else:
            self.steps.append(Step(folder, depth, [name]))
        return folder, depth + 1


def is_read(code: CodeType, file: str) -> bool:
    """Whether a reader opens it: a function or method, not an attribute, a constructor, a class body, a comprehension or a lambda."""
    last = code.co_qualname.rpartition(".")[2]
    if (last.startswith(("<", "__")) and last != "__call__") or not code.co_flags & inspect.CO_OPTIMIZED:
        return False
    value: Any = importlib.import_module(".".join(["dpexplain", *Path(file).with_suffix("").parts]).removesuffix(".__init__"))
    for part in code.co_qualname.split("."):
        value = vars(value).get(part) if hasattr(value, "__dict__") else None
    return not isinstance(value, property | cached_property)


DOMAIN = dpx.Domain([dpx.Numeric("age", 17, 97), dpx.Categorical("work", values=["a", "b", "c"]), dpx.Binary("married")])
RECORD = {"age": 40, "work": "a", "married": True}
BUDGET = dpx.Budget(1.0, 1e-6)


def people() -> dpx.PrivateData:
    rng = np.random.default_rng(0)
    rows = {"age": rng.uniform(17, 97, 500), "work": rng.choice(["a", "b", "c"], 500), "married": rng.random(500) > 0.5}
    return dpx.PrivateData(rows, DOMAIN, model=lambda table: np.where(np.asarray(table["age"]) > 50, 1.0, -1.0))


def question() -> list[Step]:
    """`dpx.Explainer(data, budget).explain(record)`"""
    walk, data = Walk(), people()
    with walk.recorded():
        dpx.Explainer(data, BUDGET).explain(RECORD)
    return walk.steps


def release() -> list[Step]:
    """`dpx.release(data, budget)`"""
    walk, data = Walk(), people()
    with walk.recorded():
        dpx.release(data, BUDGET)
    return walk.steps


def request() -> list[Step]:
    """`POST /v1/explain`, to a service that answers from a budget"""
    from tests import service_support as support

    from dpexplain.service.app import Service, create_app
    from dpexplain.service.backend import open_backend
    from dpexplain.service.config import load_config

    walk = Walk()
    with TemporaryDirectory() as folder:
        config = load_config(support.write_config(support.write_owner_files(Path(folder)), service={"keys": None, "open": True}))
        api = support.InProcess(create_app(Service(open_backend(config), config.settings, None)))
        with walk.recorded():
            answer = api.post("/v1/explain", json={"record": support.RECORD})
        assert answer.status_code == 200, answer.text
    return walk.steps


WALKS: dict[str, Callable[[], list[Step]]] = {"question": question, "release": release, "request": request}


def as_text(name: str, steps: list[Step]) -> str:
    return f"{WALKS[name].__doc__}: {len(steps) - 1} changes of folder\n\n```\n" + "\n".join(map(str, steps)) + "\n```\n"


def in_page(page: str, name: str) -> re.Match[str]:
    """The part of the page that this module writes."""
    found = re.search(rf"<!-- walk: {name} -->\n(.*?)<!-- end -->", page, re.DOTALL)
    assert found, f"{PAGE.name} has no place for the walk of a {name}"
    return found


def traced() -> dict[str, str]:
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
    for name, text in traced().items():
        start, stop = in_page(page, name).span(1)
        page = page[:start] + text + page[stop:]
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
