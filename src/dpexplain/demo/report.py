"""The demo's picture and page: self-contained, no network."""

from __future__ import annotations

from base64 import b64encode
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from dpexplain.plots.style import INK, MUTED, NEGATIVE, POSITIVE, tidy
from dpexplain.privacy.budget import Budget

if TYPE_CHECKING:
    from dpexplain.demo.story import Asked

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>dpexplain demo</title><style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }}
img {{ width: 100%; height: auto; background: white; border-radius: 8px; }}
blockquote {{ border-left: 4px solid #2166ac; margin: 1rem 0; padding: .2rem 1rem; }}
.refused {{ border-color: #b2182b; }}
table {{ border-collapse: collapse; width: 100%; }} td, th {{ padding: .3rem .6rem; text-align: left; border-bottom: 1px solid #8884; }}
</style></head><body>
<h1>Why does the model say so?</h1>
<p>{intro}</p>
<img src="data:image/png;base64,{picture}" alt="Bar charts of five private explanations beside the non-private ones, and the budget spent">
<h2>What is guaranteed</h2><blockquote>{guarantee}</blockquote>
<h2>And when the budget is gone</h2><blockquote class="refused">{refusal}</blockquote>
<h2>The numbers</h2>{table}
<p><small>The non-private column is the exact optimum on the private rows. It is shown here because these people are made up;
a real service never returns it.</small></p>
</body></html>
"""


def write_report(output: Path, answers: list[Asked], budget: Budget, refusal: str, guarantee: str) -> tuple[Path, Path]:
    """Writes explanation.png and report.html."""
    output.mkdir(parents=True, exist_ok=True)
    png, html = output / "explanation.png", output / "report.html"
    _figure(answers, budget).savefig(png, dpi=130)
    intro = (
        "A random forest predicts whether a made-up person earns above a threshold. Each answer below was computed from private records with "
        "differential privacy, paid for from a budget, and compared with the non-private truth."
    )
    picture = b64encode(png.read_bytes()).decode()
    page = _PAGE.format(
        intro=escape(intro), picture=picture, guarantee=escape(guarantee), refusal=escape(refusal), table=_table(answers)
    )
    html.write_text(page, encoding="utf-8")
    return png, html


def _figure(answers: list[Asked], budget: Budget) -> Figure:
    figure = Figure(figsize=(13, 8), layout="constrained")
    axes = figure.subplots(2, 3).ravel()
    for ax, asked in zip(axes, answers, strict=False):
        _pair(ax, asked)
    _budget(axes[-1], [asked.explanation.guarantee.epsilon for asked in answers], budget)
    figure.suptitle("Private explanations (bars) beside the non-private optimum (dots)", x=0.01, ha="left", color=INK)
    return figure


def _pair(ax, asked: Asked) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """The eight strongest private effects, with the non-private value as a dot."""
    order = np.argsort(-np.abs(asked.explanation.values))[:8][::-1]
    values = asked.explanation.values[order]
    ax.barh(range(len(order)), values, color=[POSITIVE if v >= 0 else NEGATIVE for v in values], alpha=0.85)
    ax.plot(asked.truth[order], range(len(order)), "o", color=INK, markersize=5)
    ax.set_yticks(range(len(order)), [asked.explanation.names[i] for i in order])
    ax.axvline(0, color=INK, linewidth=0.8)
    ax.set_title(f"{asked.who}: {asked.probability:.0%} rich", loc="left", fontsize=10, color=INK)
    tidy(ax, axis="x")


def _budget(ax, spent: list[float], budget: Budget) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    steps = range(1, len(spent) + 1)
    ax.step([0, *steps], [0, *spent], where="post", color=POSITIVE, linewidth=2)
    ax.plot(steps, spent, "o", color=POSITIVE)
    ax.axhline(budget.epsilon, color=NEGATIVE, linestyle="--", linewidth=1.5)
    ax.text(0.1, budget.epsilon, f"budget ε = {budget.epsilon:g}", color=NEGATIVE, va="bottom", fontsize=9)
    ax.set_ylim(0, budget.epsilon * 1.2)
    ax.set_xlabel("questions answered", color=MUTED)
    ax.set_title("the budget draining (total ε)", loc="left", fontsize=10, color=INK)
    tidy(ax)


def _table(answers: list[Asked]) -> str:
    head = "<tr><th>who</th><th>model says</th><th>strongest effects</th><th>cosine to truth</th><th>relative excess</th><th>total ε</th></tr>"
    return f"<table>{head}{''.join(_row(asked) for asked in answers)}</table>"


def _row(asked: Asked) -> str:
    effects = escape(", ".join(f"{name} {value:+.2f}" for name, value, _ in asked.explanation.top(3)))
    numbers = f"<td>{asked.score.cosine:.3f}</td><td>{asked.score.relative_excess:.4f}</td>"
    return (
        f"<tr><td>{escape(asked.who)}</td><td>{asked.probability:.0%} rich</td><td>{effects}</td>{numbers}"
        f"<td>{asked.explanation.guarantee.epsilon:.3f}</td></tr>"
    )
