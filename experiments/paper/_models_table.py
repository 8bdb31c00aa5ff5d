"""The trained models of Figures 6 and 7, as docs/reproduction.md shows them: accuracy beside the paper's, the accountant's ε̂ and its parameters."""

from __future__ import annotations

from math import sqrt
from typing import Any

HEADER = (
    "model",
    "ε̂",
    "right, test",
    "in the paper",
    "noise multiplier, batch, steps",
    "in both sets, one answer of (0.1, 1e-5)",
)
TESTED = {"figure-6": 2_914, "figure-7": 15_000}  # faces, and reviews, that no model was trained on


def models_table(kept: dict[str, Any], study: str) -> list[list[str]]:
    return [_line(one, TESTED[study]) for one in kept[study]["models"]]


def _line(one: dict[str, Any], tested: int) -> list[str]:
    right, said = one["test accuracy"], one["in the paper"]
    private = one["ε̂"] != "none"
    stated = ", ".join(_number(one[key]) for key in ("noise multiplier", "batch", "steps"))
    return [
        one["model"],
        f"{one['ε̂']:.3g}" if private else "none",
        f"{100 * right:.1f} ± {100 * sqrt(right * (1 - right) / tested):.1f} %",
        f"{100 * said:.3g} %" if said else "",
        stated,
        one["a person in both sets"] or "-",
    ]


def _number(value: Any) -> str:
    return "-" if value == "" else f"{value:,}" if isinstance(value, int) else f"{value:g}"
