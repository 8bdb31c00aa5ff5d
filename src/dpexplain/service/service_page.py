"""The page at `/`: one page made of the published page's own modules, plus a budget gauge and an archive for owners."""

from __future__ import annotations

import json
import re
from functools import cache
from html import escape
from math import exp, floor

from dpexplain import web
from dpexplain.core.answer_scale import AnswerScale
from dpexplain.privacy.budget import round_up
from dpexplain.release.page import describe_outcome, measure, policy, units
from dpexplain.service.backend import SpendingSummary
from dpexplain.service.config import Settings


@cache
def render_page(settings: Settings, scale: AnswerScale) -> str:
    """The page is the same for all readers: it holds no data, asks for a key where one is needed, and fetches the data with it."""
    data = json.dumps({"open": settings.open})
    parts = {
        "title": escape(settings.title),
        "description": escape(settings.description),
        "outcome": escape(describe_outcome(settings.outcome, scale)),
        "measure": measure(scale),
        "units": units(scale),
        "stale": "The form was changed: this is about the record that was asked about.",
        "style": _style(),
        "script": web.inline_modules("service.js"),
        "data": re.sub("[<>&]", lambda match: f"\\u{ord(match[0]):04x}", data),
    }
    return web.page("service.html", parts)


@cache
def page_policy() -> str:
    """The content security policy: only this script and style, and requests to this service only."""
    return f"{policy(web.inline_modules('service.js'), _style())}; connect-src 'self'; frame-ancestors 'none'"


@cache
def _style() -> str:
    return web.source("style.css") + web.source("service.css")


def promise(spending: SpendingSummary) -> str:
    """The guarantee in words, for readers who have not heard of ε: about the whole budget, not only what is spent by now."""
    total = spending.budget.epsilon if spending.budget else spending.spent.epsilon
    delta = spending.budget.delta if spending.budget else spending.spent.delta
    ends = (
        "When the budget is spent, this service stops answering what has to be paid for."
        if spending.budget
        else "It was paid for once: asking costs no further privacy, however often."
    )
    return (
        f"With {spending.spent.neighbours.describe()}, no outcome of everything this service may ever answer becomes more than "
        f"{round_up(exp(total))} times as likely, apart from a chance of one in {floor((1 + 1e-12) / delta):,}. That bounds what anyone can "
        f"learn here about anyone in the data, whatever they ask and whatever else they know. {ends}{_card_sentence(spending)}"
    )


def _card_sentence(spending: SpendingSummary) -> str:
    """What the model's card states about those who trained it."""
    return f" {spending.people.card}" if spending.people else ""
