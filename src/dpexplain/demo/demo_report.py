"""The demo's pictures and page: self-contained, no network, for wide and narrow windows, light and dark."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from dpexplain import plots
from dpexplain.privacy.budget import Budget

if TYPE_CHECKING:
    from dpexplain.demo.story import PersonAnswer

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>dpexplain demo</title><style>
:root {{ color-scheme: light dark; --ink: light-dark(#1b2026, #e8ebee); --ground: light-dark(#f4f5f7, #101317);
  --card: light-dark(#fff, #191e24); --line: light-dark(#e1e4e9, #2c343d); --muted: light-dark(#59626d, #a0a9b4); }}
*, *::before, *::after {{ box-sizing: border-box; }}
body {{ margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }}
main {{ max-width: 72rem; margin: 0 auto; padding: 1.5rem clamp(1rem, 3vw, 2rem) 3rem; }}
h1 {{ line-height: 1.2; letter-spacing: -0.02em; }}
h2 {{ margin: 2rem 0 0.6rem; font-size: 1.15rem; }}
.people {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); gap: 1.1rem; }}
.card {{ background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 1rem 1.2rem; min-width: 0; }}
.card h3 {{ margin: 0; font-size: 1rem; }}
.card p {{ margin: 0.4rem 0; }}
.small {{ color: var(--muted); font-size: 0.88rem; }}
.scroll {{ overflow-x: auto; }}
img {{ max-width: 100%; height: auto; background: #fff; border-radius: 12px; }}
blockquote {{ border-left: 4px solid #2166ac; margin: 0.6rem 0; padding: 0.2rem 1rem; }}
blockquote.refused {{ border-color: #b2182b; }}
table {{ border-collapse: collapse; width: 100%; font-size: 0.88rem; font-variant-numeric: tabular-nums; }}
td, th {{ padding: 0.25rem 0.5rem; text-align: left; border-bottom: 1px solid var(--line); }}
</style></head><body><main>
<h1>Why does the model say so?</h1>
<p>{intro}</p>
<h2>Five people, and what makes the model's answer</h2>
<p>{free}</p>
<div class="people">{people}</div>
<h2>What is guaranteed</h2><blockquote>{guarantee}</blockquote>
<h2>And when the budget is gone</h2><blockquote class="refused">{refusal}</blockquote>
<p><img src="data:image/png;base64,{budget}" alt="A step curve: the privacy budget that was spent after each question, and its limit" width="720"></p>
<h2>Beside the truth</h2>
<p>{truth}</p>
<div class="scroll" tabindex="0" role="region" aria-label="Beside the truth">{table}</div>
</main></body></html>
"""

_INTRO = (
    "A random forest predicts whether a made-up person earns above a threshold. Everything below was computed from private records with "
    "differential privacy."
)
_FREE = "From one private release, paid for once: it answers any number of questions, with error bars, and needs neither the rows nor the model."
_TRUTH = (
    "The same people were also asked about interactively, each answer paid from the budget above: how close these are to the exact ones on "
    "the private rows. Those are known here because these people are made up; a real "
    "service never returns them."
)


def write_report(output: Path, answers: list[PersonAnswer], budget: Budget, refusal: str, guarantee: str) -> tuple[Path, Path]:
    """Writes explanation.png and report.html."""
    output.mkdir(parents=True, exist_ok=True)
    png, html = output / "explanation.png", output / "report.html"
    _figure(answers, budget).savefig(png, dpi=130)
    spent = plots.budget([asked.explanation.guarantee.epsilon for asked in answers], budget.epsilon, title="The budget, spent")
    spent.savefig(output / "budget.png", dpi=130)
    page = _PAGE.format(
        intro=escape(_INTRO),
        free=escape(_FREE),
        people="".join(_card(asked) for asked in answers),
        guarantee=escape(guarantee),
        refusal=escape(refusal),
        budget=b64encode((output / "budget.png").read_bytes()).decode(),
        truth=escape(_TRUTH),
        table=_table(answers),
    )
    html.write_text(page, encoding="utf-8")
    return png, html


def _card(asked: PersonAnswer) -> str:
    """One person: the record, the model's answer and its explanation."""
    answer = asked.free or asked.explanation
    shown = answer if answer.added is None else replace(answer.contributions(), guarantee=None)
    answer_text = f"<p class='small'>Asked itself, the model says {asked.answer_text}.</p>"
    label = f"aria-label='Why: {escape(asked.who)}'"
    inner = f"<div class='scroll' tabindex='0' role='region' {label}>{shown._repr_html_()}</div>"
    return f"<section class='card' aria-label='{escape(asked.who)}'><h3>{escape(asked.who)}</h3>{answer_text}{inner}</section>"


def _figure(answers: list[PersonAnswer], budget: Budget) -> Figure:
    """The figure of each answer's contributions and of the spent budget."""
    figure = Figure(figsize=(15, 9), layout="constrained")
    axes = figure.subplots(2, 3).ravel()
    for ax, asked in zip(axes, answers, strict=False):
        answer = asked.free or asked.explanation
        title = f"{asked.who}: the model says {asked.answer_text}"
        drawn = {"title": title, "ax": ax}
        (answer.plot(6, **drawn) if answer.added is None else answer.contributions().plot(6, **drawn))
    spent = [asked.explanation.guarantee.epsilon for asked in answers]
    plots.budget(spent, budget.epsilon, ax=axes[-1], title="interactive answers: the budget, spent")
    figure.supxlabel("")  # each answer's own guarantee is in the report
    return figure


def _table(answers: list[PersonAnswer]) -> str:
    columns = ("who", "model says", "what would change it most", "cosine to the exact answer", "relative excess", "total ε")
    head = "".join(f"<th scope='col'>{column}</th>" for column in columns)
    return f"<table><tr>{head}</tr>{''.join(_row(asked) for asked in answers)}</table>"


def _row(asked: PersonAnswer) -> str:
    answer = asked.explanation
    strongest = "; ".join(f"{one.text} {answer.scale.format(one.value, signed=True)}" for one in answer.changes(3))
    numbers = f"<td>{asked.score.cosine:.3f}</td><td>{asked.score.relative_excess:.4f}</td>"
    return (
        f"<tr><th scope='row'>{escape(asked.who)}</th><td>{asked.answer_text}</td><td>{escape(strongest)}</td>{numbers}"
        f"<td>{answer.guarantee.epsilon:.3f}</td></tr>"
    )
