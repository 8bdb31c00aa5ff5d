"""The picture and the page of a rehearsal. Every section of the page states that it is not private."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from dpexplain.evaluation.rehearsal.rehearsal_result import SHOWN_GROUPS, WARNING, Quality
from dpexplain.evaluation.rehearsal.sections import Section, sections_of
from dpexplain.plots.style import DASHES, INK, MARKERS, NEGATIVE, SERIES, UNCERTAIN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dpexplain.evaluation.rehearsal.rehearsal_result import Rehearsal

_STYLE = """:root { color-scheme: light dark; --ink: light-dark(#1b2026, #e8ebee); --ground: light-dark(#f4f5f7, #101317);
  --card: light-dark(#fff, #191e24); --line: light-dark(#e1e4e9, #2c343d); --muted: light-dark(#59626d, #a0a9b4);
  --alarm: light-dark(#9b1526, #ff9aa5); }
*, *::before, *::after { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
.banner { position: sticky; top: 0; z-index: 1; background: #8f1322; color: #fff; padding: 0.5rem 1rem; font-weight: 600; text-align: center; }
main { max-width: 72rem; margin: 0 auto; padding: 1rem clamp(1rem, 3vw, 2rem) 3rem; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 0.4rem 1.2rem 1rem; margin: 1.1rem 0; min-width: 0; }
h1 { line-height: 1.2; letter-spacing: -0.02em; } h2 { font-size: 1.15rem; margin: 0.8rem 0 0.2rem; }
.alarm { color: var(--alarm); font-size: 0.85rem; margin: 0.2rem 0 0.6rem; }
.small { color: var(--muted); font-size: 0.88rem; }
.scroll { overflow-x: auto; }
img { max-width: 100%; height: auto; background: #fff; border-radius: 8px; }
table { border-collapse: collapse; width: 100%; font-size: 0.88rem; font-variant-numeric: tabular-nums; }
td, th { padding: 0.25rem 0.6rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
td:first-child, th:first-child { text-align: left; }
@media print { .banner { position: fixed; width: 100%; } section { break-inside: avoid; } main { padding-top: 3.5rem; } }"""

_START = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex"><title>Rehearsal (not private)</title>"""
_BANNER = '<div class="banner" role="note">Not private. For the owner of the data only.</div>'


def page_of(rehearsal: Rehearsal, picture: bytes) -> str:
    """One self-contained HTML page."""
    alt = "Relative excess and coverage of error bars against ε, and the groups with the worst answers"
    image = f'<img src="data:image/png;base64,{b64encode(picture).decode()}" alt="{alt}">'
    parts = [_section("In one picture", image, "The same numbers are in the tables below.")]
    parts += [_section(one.title, _table(one), one.about) for one in sections_of(rehearsal)]
    notes = "".join(f"<p>{escape(one)}</p>" for one in rehearsal.notes)
    main = f"<h1>Rehearsal of a release</h1>\n<p>{escape(rehearsal.title)}</p>{''.join(parts)}{notes}"
    return f"{_START}<style>{_STYLE}</style></head><body>\n{_BANNER}<main>\n{main}</main></body></html>\n"


def _section(title: str, content: str, about: str) -> str:
    inner = f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(title)}">{content}</div>'
    small = f'<p class="small">{escape(about)}</p>'
    return f'<section><h2>{escape(title)}</h2><p class="alarm">{escape(WARNING)}</p>{inner}{small}</section>\n'


def _table(section: Section) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in section.head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in section.rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def draw(rehearsal: Rehearsal) -> Figure:
    """Excess and coverage against ε for every way, and the worst groups of the first."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 4.6), layout="constrained")
    excess, bars, groups = figure.subplots(1, 3)
    ways = list(dict.fromkeys(one.way for one in rehearsal.qualities))
    for i, way in enumerate(ways):
        found = sorted((one for one in rehearsal.qualities if one.way == way), key=lambda one: one.epsilon)
        style = {"color": SERIES[i], "marker": MARKERS[i], "linestyle": DASHES[i], "label": way}
        excess.loglog([one.epsilon for one in found], [max(one.relative_excess, 1e-6) for one in found], **style)
        _draw_plan(excess, found, SERIES[i])
        if all(one.coverage is not None for one in found):
            bars.semilogx([one.epsilon for one in found], [one.coverage for one in found], **style)
    excess.set(xlabel="ε", ylabel="relative excess")
    excess.set_title("Distance to the exact answer (bars: what plan had said)", fontsize=9)
    bars.axhspan(0.93, 0.97, color=UNCERTAIN, alpha=0.4)
    bars.set(xlabel="ε", ylabel="share within two errors", ylim=(0, 1.02))
    bars.set_title("Coverage of error bars (grey: 93 to 97 %)", fontsize=9)
    epsilons = sorted({one.epsilon for one in rehearsal.qualities})
    for ax in (excess, bars):
        ax.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
        ax.set_xticks([], minor=True)
        ax.grid(alpha=0.3)
        if ax.get_legend_handles_labels()[0]:
            ax.legend(fontsize=8)
    _draw_groups(groups, rehearsal.worst_groups())
    figure.suptitle(f"Not private, for the owner only. {rehearsal.title}", fontsize=9, color=NEGATIVE)
    return figure


def _draw_plan(ax: Axes, found: Sequence[Quality], colour: str) -> None:
    for one in found:
        if one.expected is not None and one.expected.excess_interval is not None:
            ax.vlines(one.epsilon, *one.expected.excess_interval, color=colour, alpha=0.35, linewidth=6)


def _draw_groups(ax: Axes, shown: Quality) -> None:
    worst = shown.groups[:SHOWN_GROUPS][::-1]
    colours = [NEGATIVE if one.is_worse else UNCERTAIN for one in worst]
    ax.barh(range(len(worst)), [one.excess for one in worst], xerr=[one.error for one in worst], color=colours, ecolor=INK)
    ax.plot([one.others for one in worst], range(len(worst)), "|", color=INK, markersize=14, label="everybody else")
    ax.set_yticks(range(len(worst)), [f"{one.name[:34]} ({one.records})" for one in worst], fontsize=8)
    ax.set_xlabel("relative excess")
    ax.set_title(f"Worst groups, {shown.way} at ε={shown.epsilon:g} (red: clearly worse)", fontsize=9)
    if worst:
        ax.legend(fontsize=8)
