"""Queries for any kind of domain, read under one set of rules."""

from __future__ import annotations

from typing import Any

from dpexplain.domain.interface import DomainLike
from dpexplain.domain.queries import Extra, Queries, QueryRules, Read, read_each
from dpexplain.domain.tabular import Domain
from dpexplain.errors import ParameterError


def read_query(
    domain: DomainLike, record: Any, known_extra: tuple[str, ...] = (), extra: Extra = "refuse", clip: bool = False
) -> Read:
    """The encoded point of one public record, and notes on values that were not read as given. `QueryRules` explains the options."""
    rules = QueryRules(extra, clip, known_extra=known_extra)
    if isinstance(domain, Domain):
        return domain.read_query(record, rules)
    _require_table_rules(rules)
    return domain.encode_query(record), {}


def read_queries(domain: DomainLike, records: Any, rules: QueryRules) -> Queries:
    """The same for every record of a batch; records that cannot be asked about raise or are skipped, depending on the rules."""
    if isinstance(domain, Domain):
        return domain.read_queries(records, rules)
    _require_table_rules(rules)
    separate = domain.separate(records)
    if rules.on_error == "skip":
        return read_each(separate, lambda record: (domain.encode_query(record), {}), domain.width, rules)
    return Queries(domain.encode_queries(records), tuple(separate), ({},) * len(separate), tuple(range(len(separate))))


def _require_table_rules(rules: QueryRules) -> None:
    """A text or an image has no bounds to clip to."""
    if rules.clip:
        raise ParameterError("clip=True is for tables: a text or an image has no declared bounds. Leave it out")
