"""Draw which part of the library imports which: `python -m tests.import_graph` writes docs/images/import-graph.png.

Rows are the layers of the import contract in pyproject.toml, imports point down. An arrow that follows from two others is left out, and so is the
bottom row, which everything may import. The picture carries its arrows as text, so that a test can tell whether it is current.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

import grimp
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Patch

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs/images/import-graph.png"
KEYWORD = "Imports"
GROUPS = {
    "serves people": ("#e8d5ec", "cli service demo plots web"),
    "results people hold": ("#fce3c5", "explainer noninteractive release answers onboarding"),
    "private rows, noise, ledger": ("#f7c9c9", "evaluation data registration backends noise ledger"),
    "public mathematics": ("#cfe3f5", "mechanisms estimation privacy core domain"),
}
OTHER = "#e6e6e6"
Arrow = tuple[str, str]


def layers() -> list[list[str]]:
    """Rooms of each layer, from the top, as the import contract lists them."""
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"][0]
    return [[name.strip(" ()").removeprefix("dpexplain.") for name in re.split("[|:]", layer)] for layer in contract["layers"]]


def imports() -> set[Arrow]:
    """(importer, imported) for rooms: the folders and single files directly under the package."""
    graph = grimp.build_graph("dpexplain")
    pairs = {(m, other) for m in graph.modules for other in graph.find_modules_directly_imported_by(m)}
    rooms = {(room(m), room(other)) for m, other in pairs}
    return {(a, b) for a, b in rooms if a and b and a not in (b, "__main__")}


def room(module: str) -> str:
    """`dpexplain.core.weights` → `core`; the package itself has none."""
    return f"{module}.".split(".")[1]


def needed_arrows(arrows: set[Arrow]) -> set[Arrow]:
    """The arrows that do not follow from others: the transitive reduction."""
    below: dict[str, set[str]] = {}

    def reachable(start: str) -> set[str]:
        if start not in below:
            direct = {b for a, b in arrows if a == start}
            below[start] = direct.union(*(reachable(one) for one in direct)) if direct else set()
        return below[start]

    return {(a, b) for a, b in arrows if not any(b in reachable(c) for x, c in arrows if x == a and c != b)}


def drawn_arrows() -> set[Arrow]:
    """The arrows of the picture."""
    bottom = set(layers()[-1])
    return needed_arrows({(a, b) for a, b in imports() if b not in bottom and a not in bottom})


def as_text(arrows: set[Arrow]) -> str:
    return "; ".join(f"{a} > {b}" for a, b in sorted(arrows))


def places(rows: Sequence[Sequence[str]], arrows: set[Arrow]) -> dict[str, tuple[float, float]]:
    """Each room's place: rows from the top; within a row, rooms near what they import and what imports them."""
    at = {name: (_spread(i, len(row)), -float(y)) for y, row in enumerate(rows) for i, name in enumerate(row)}
    for _ in range(8):
        for y, row in enumerate(rows):
            wanted = {
                name: _mean([at[b][0] for a, b in arrows if a == name] + [at[a][0] for a, b in arrows if b == name], at[name][0])
                for name in row
            }
            for i, name in enumerate(sorted(row, key=lambda one: (wanted[one], one))):
                at[name] = (_spread(i, len(row)), -float(y))
    return at


def _spread(i: int, count: int) -> float:
    return 3.1 * (i - (count - 1) / 2)


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def draw(path: Path = PICTURE) -> None:
    rows, arrows = layers()[:-1], drawn_arrows()
    at = places(rows, arrows)
    figure = Figure(figsize=(9, 0.72 * len(rows) + 0.5), layout="constrained")
    ax = figure.add_subplot()
    boxes = {name: _box(ax, name, *place) for name, place in at.items()}
    for a, b in sorted(arrows):
        bend = (0.3 if at[b][0] <= at[a][0] else -0.3) if at[a][1] - at[b][1] > 1.5 else 0.0
        look = {"arrowstyle": "-|>", "mutation_scale": 9, "lw": 0.8, "color": "#888888", "connectionstyle": f"arc3,rad={bend}"}
        ax.add_patch(FancyArrowPatch(at[a], at[b], patchA=boxes[a], patchB=boxes[b], shrinkA=0, shrinkB=1, zorder=1, **look))
    for i, (title, (colour, _)) in enumerate(GROUPS.items()):
        ax.text(
            -5.9 + 3.1 * i, 0.8, title, fontsize=8.5, va="center", bbox={"boxstyle": "round,pad=0.25", "fc": colour, "ec": "none"}
        )
    ax.set_xlim(-6.2, 6.2)
    ax.set_ylim(-len(rows) + 0.5, 1.1)
    ax.axis("off")
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # arrows end at boxes, whose places are known now
    canvas.print_png(path, metadata={KEYWORD: as_text(arrows)})


def _box(ax: Axes, name: str, x: float, y: float) -> Patch | None:
    colour = next((colour for colour, members in GROUPS.values() if name in members.split()), OTHER)
    style = {"boxstyle": "round,pad=0.35", "fc": colour, "ec": "#555555", "lw": 0.7}
    return ax.text(x, y, name, ha="center", va="center", fontsize=10, bbox=style, zorder=2).get_bbox_patch()


if __name__ == "__main__":
    draw()
