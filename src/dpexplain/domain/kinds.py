"""Every kind of domain there is, found by the "kind" of its description."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dpexplain.arguments import quote
from dpexplain.domain.description import parse
from dpexplain.domain.image import ImageDomain
from dpexplain.domain.interface import DomainLike, format_list, hint
from dpexplain.domain.scaled import UNSCALED
from dpexplain.domain.tabular import Domain
from dpexplain.domain.text import TextDomain
from dpexplain.errors import DomainError


def _tabular(data: Mapping[str, Any]) -> DomainLike:
    return Domain(parse(data), data.get("scale", UNSCALED))


KINDS: dict[str, Callable[[Mapping[str, Any]], DomainLike]] = {
    "tabular": _tabular,
    "encoded": _tabular,
    "image": ImageDomain.from_dict,
    "text": TextDomain.from_dict,
}


def domain_of(data: Any) -> DomainLike:
    """The domain that `to_dict` described; without a "kind" it is a table."""
    kind = data.get("kind", "tabular") if isinstance(data, Mapping) else None
    if not isinstance(kind, str) or kind not in KINDS:
        raise DomainError(
            f"a domain's kind must be one of {format_list(KINDS)}, got {quote(kind)}{hint(kind, KINDS)}. Pass what to_dict() returned"
        )
    return KINDS[kind](data)
