"""What every table and figure is here: a name, what the paper shows, the files it needs, how many queries, a run and a drawing."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

import dpexplain as dpx
from dpexplain.errors import DataError
from experiments.datasets import Labelled, acs
from experiments.paper._parts import Clock, Parts

ACS_FILE, FACE_FILE = "acs_income_2018.parquet", "fer2013_48x48.npz"
TEXT_FILES = ("imdb_reviews_50k.parquet", "imdb_reviews_unlabelled_50k.parquet")
SEED = 0
SEEDS = 10  # as in the paper


@dataclass(frozen=True)
class Study:
    """`run(inputs, queries)` returns {"rows": one dict a line of the table, …}, all of it JSON; `draw` sees nothing else."""

    name: str
    title: str
    shows: str
    files: tuple[str, ...]
    full: int  # queries, as many as in the paper
    quick: int
    run: Callable[[Inputs, int], dict[str, Any]]
    draw: Callable[[dict[str, Any]], Any]
    minutes: float = (
        1.0  # of processor time for a full run with ten seeds, measured or scaled up from a smaller one: for the time left
    )


@dataclass(frozen=True)
class Reviews:
    """A public vocabulary, private texts, and their true labels ±1, which the paper takes for the black box's answers.

    The paper has more reviews. The noise on a mean gradient follows from rows x ε in its formulas, and from rows x μ in exact ones, so `factor`
    times the paper's ε or μ has the paper's noise here.
    """

    domain: Any
    texts: list[str]
    truth: np.ndarray
    paper_rows: int = 8_765_568 + 50_000

    @property
    def factor(self) -> float:
        return self.paper_rows / len(self.texts)

    def draw_positions(self, count: int, seed: int = SEED) -> list[int]:
        """Positions of random reviews that have words of the vocabulary."""
        order = np.random.default_rng(seed).permutation(len(self.texts))
        return list(islice((int(i) for i in order if self.domain.spans(self.texts[i])), count))


class Inputs:
    """The data sets, each loaded once when first asked for, and what other studies found."""

    shards: int | None = None  # how many of the paper's three disjoint parts of the data are asked; None: all
    quick: bool = False  # models are trained in fewer epochs, of fewer trees

    def __init__(self, folder: Path, output: Path, again: bool = False, seeds: int = SEEDS, clock: Clock | None = None) -> None:
        self.folder, self.output, self.again, self.seeds = folder, output, again, seeds
        self.clock = clock or Clock(say=lambda _: None)
        self.counted: set[str] = set()  # studies that the clock has seen: others may be made from them

    @property
    def own_seeds(self) -> int:
        """Seeds of the mechanisms that run in the library, which takes longer than the lanes of the paper's."""
        return 1 if self.quick else max(2, self.seeds // 3)

    def parts(self, study: str, queries: int, counted: bool = True) -> Parts:
        """Where a study's finished pieces are: those of another number of queries or seeds are others. `counted=False`: another study counts the
        processor time of those that are stored, and runs them again."""
        return Parts(self.output / "parts" / f"{study}-{queries}-{self.seeds}", self.again and counted, self.clock, counted)

    def sums(self, name: str) -> Path:
        """Where sums over rows are stored."""
        return self.output / "cache" / f"{name}.npz"

    @cached_property
    def acs(self) -> Labelled:
        return acs(self.folder, cache=self.output / "cache")

    @cached_property
    def acs_with_model(self) -> dpx.PrivateData:
        """All people behind the wall with the black box, which takes fifteen seconds to label them."""
        return self.acs.with_model()

    @cached_property
    def reviews(self) -> Reviews:
        from experiments.text import reviews

        return Reviews(*reviews(self.folder, self.output / "cache"))

    @cached_property
    def private_reviews(self) -> dpx.PrivateData:
        """The reviews behind the wall."""
        return dpx.PrivateData(self.reviews.texts, self.reviews.domain, labels=self.reviews.truth)

    @cached_property
    def faces(self) -> Any:
        from experiments import face_data

        return face_data.load(self.folder, self.output / "cache")

    @cached_property
    def face_model(self) -> Any:
        from experiments import face_network

        return face_network.classifier(self.faces, self.output / "cache", epochs=1 if self.quick else 10)

    @cached_property
    def private_faces(self) -> dpx.PrivateData:
        """The faces behind the wall, a column a pixel; the network takes twenty seconds to label them."""
        domain = dpx.ImageDomain(shape=self.faces.training.shape[1:])
        return dpx.PrivateData(self.faces.training, domain, model=self.face_model)

    def require(self, study: Study) -> None:
        for name in study.files:
            if not (self.folder / name).is_file():
                raise DataError(
                    f"{self.folder / name} is not there. {study.name} reads it: docs/reproduction.md says where it comes from"
                )

    def prepare(self, studies: list[Study]) -> None:
        """Store what several studies read, so that those that begin together do not each make it: the black box of ACS, the vocabulary of reviews."""
        files = {name for study in studies for name in study.files if (self.folder / name).is_file()}
        if ACS_FILE in files:
            _ = self.acs
        if files.issuperset(TEXT_FILES):
            _ = self.reviews

    def result(self, study: Study, queries: int) -> dict[str, Any]:
        """What the study found: from its file, if that has as many queries, or from a run that writes it."""
        stored, known = self.output / f"{study.name}.json", study.name in self.counted
        self.counted.add(study.name)
        if not self.again and stored.exists():
            found = json.loads(stored.read_text(encoding="utf-8"))
            if (found["queries"], found.get("seeds", self.seeds), found.get("shards")) == (queries, self.seeds, self.shards):
                if not known:
                    self.clock.count_part(study.name, study.minutes, None)
                return found
        self.require(study)
        start, before, cpu = perf_counter(), self.clock.done, process_time() + self.clock.stored_cpu
        found = {"study": study.name, "title": study.title, "date": datetime.now(UTC).date().isoformat()}
        found |= {"queries": queries, "seeds": self.seeds, "shards": self.shards}
        found |= study.run(self, queries)
        found["seconds"] = round(perf_counter() - start, 1)
        found["cpu seconds"] = round(process_time() + self.clock.stored_cpu - cpu, 1)  # with pieces that were there already
        if self.clock.done == before:  # a study without pieces of its own
            self.clock.count_part(study.name, study.minutes, found["seconds"])
        self.output.mkdir(parents=True, exist_ok=True)
        stored.write_text(json.dumps(found, indent=1, ensure_ascii=False), encoding="utf-8")
        return found


def mean(values: Any) -> float:
    """Four digits are more than an experiment tells."""
    return digits(float(np.mean(list(values))))


def digits(value: float, count: int = 4) -> float:
    return float(f"{value:.{count}g}")


def figure(columns: int, rows: int = 1, width: float = 5.2, height: float = 3.6) -> tuple[Any, Any]:
    """(figure, axes in rows)."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return drawn, drawn.subplots(rows, columns, squeeze=False)


def plain_numbers(axis: Any) -> None:
    """Decimal numbers on a logarithmic axis, also between its powers of ten where there are less than two."""
    low, high = sorted(axis.get_view_interval())
    between = "25" if high < 100 * low else ""
    if high < 10 * low:
        between = "2346"
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:.0e}"[0] in between else "")
    axis.set_tick_params(which="minor", labelsize=9)


def legend_above(ax: Any, columns: int) -> None:
    ax.legend(frameon=False, fontsize=8, ncols=columns, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)
