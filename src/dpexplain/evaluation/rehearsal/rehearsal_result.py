"""The result of a rehearsal: numbers about private rows that were not paid for. It prints, and is saved for its owner alone."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.table import Column, Table
from rich.text import Text

from dpexplain.evaluation.rehearsal.faithfulness_comparison import Faithfulness
from dpexplain.evaluation.rehearsal.groups import GroupQuality
from dpexplain.privacy.expected_quality import ExpectedQuality

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WARNING = "Not private: computed from private rows without paying. For their owner only. Do not publish it."
SHOWN_GROUPS = 8


@dataclass(frozen=True, slots=True)
class NearRows:
    """How many rows count in the exact answers: the fewest (5 %), the median and the most (95 %) over the records."""

    fewest: float
    median: float
    most: float


@dataclass(frozen=True, slots=True)
class Quality:
    """The quality of one way at one ε, over all draws and records; None where the way does not have it.

    `coverage` is the share of exact slopes within two errors, `lowest_coverage` that of the column where it is lowest. `top_5_stability` is how many
    of the five strongest columns two draws share, `top_5_exact` how many a draw shares with the exact answer. `expected` is the estimate of `plan`.
    """

    way: str
    epsilon: float
    relative_excess: float
    excess_of_worst: float
    cosine: float
    top_5_exact: float
    top_5_stability: float | None
    coverage: float | None
    coverage_of_contributions: float | None
    lowest_column: str | None
    lowest_coverage: float | None
    effective_rows: float | None
    seconds: float | None
    seconds_each: float
    expected: ExpectedQuality | None
    groups: tuple[GroupQuality, ...]

    @property
    def beside_plan(self) -> str | None:
        """ "inside" where excess and cosine lie in `plan`'s intervals, else "better" or "worse"; None where it has none."""
        if self.expected is None or self.expected.excess_interval is None or self.expected.cosine_interval is None:
            return None
        (low, high), (least, most) = self.expected.excess_interval, self.expected.cosine_interval
        if self.relative_excess > high or self.cosine < least:
            return "worse"
        return "inside" if self.relative_excess >= low and self.cosine <= most else "better"

    def to_dict(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "beside_plan": self.beside_plan,
            "groups": [{**asdict(one), "worse": one.is_worse} for one in self.groups],
        }


@dataclass(frozen=True, slots=True, repr=False)
class Rehearsal:
    """Everything that a rehearsal measured. Print it, `save` it, or read the fields. Not private."""

    rows: int
    columns: int
    plane: str
    weight: str
    delta: float
    records: int
    draws: int
    seed: int
    qualities: tuple[Quality, ...]
    near: NearRows
    faithfulness: tuple[Faithfulness, ...]
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return (
            f"{self.rows:,} rows x {self.columns} columns, δ={self.delta:g}, {self.plane} plane, {self.weight} weight; "
            f"{self.records} records, {self.draws} draws of the noise, seed {self.seed}"
        )

    def to_dict(self) -> dict[str, Any]:
        """All numbers in JSON's types; each part states that it is not private."""
        mark = {"not_private": WARNING}
        public = ("rows", "columns", "plane", "weight", "delta", "records", "draws", "seed")
        return {
            **mark,
            **{name: getattr(self, name) for name in public},
            "qualities": [{**mark, **one.to_dict()} for one in self.qualities],
            "rows_nearby": {**mark, **asdict(self.near)},
            "faithfulness": [{**mark, **asdict(one)} for one in self.faithfulness],
            "notes": list(self.notes),
        }

    def plot(self) -> Figure:
        """Excess, coverage and stability against ε, and the groups with the worst answers."""
        from dpexplain.evaluation.rehearsal.rehearsal_page import draw

        return draw(self)

    def save(self, folder: str | Path, *, force: bool = False) -> list[Path]:
        """Write rehearsal.json, rehearsal.png and rehearsal.html into a folder, readable by their owner alone. Returns their paths."""
        from dpexplain.evaluation.rehearsal.owner_files import save

        return save(self, Path(folder), force=force)

    def __repr__(self) -> str:
        return f"<Rehearsal: {self.title}. Not private.>"

    def __rich__(self) -> Group:
        from dpexplain.evaluation.rehearsal.sections import sections_of

        parts: list[Any] = [Text(self.title)]
        for section in sections_of(self):
            first, *others = section.head  # narrow terminals fold words and cut nothing off
            columns = Column(first, overflow="fold"), *(Column(name, justify="right", overflow="fold") for name in others)
            table = Table(*columns, title=section.title, title_justify="left", caption=section.about)
            for row in section.rows[: section.shown]:
                table.add_row(*row)
            parts += [table, Text(WARNING, style="bold red"), Text("")]
        return Group(*parts, *(Text(one) for one in self.notes))

    def worst_groups(self) -> Quality:
        """The quality whose groups are shown: the first way's, at the largest ε."""
        first = self.qualities[0].way
        return max((one for one in self.qualities if one.way == first), key=lambda one: one.epsilon)
