"""The section of a model card about a release: what is guaranteed, what was declared, what is not protected."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpexplain.release.release import Release

_SHOWN = 12  # categories or levels of one feature
_UNTRAINED = "The guarantee is about the explanation data. It says nothing about the records the model was trained on."
_LIMITS = (
    "Explanations describe the model around a record, on average. They do not name causes, and they do not say what to do.",
    "Facts that hold for everybody are not hidden: an explanation says how the model treats people like the one asked about.",
)


def card_section(release: Release) -> str:
    """Markdown for a model card, from released and declared facts alone."""
    tables = [_table(("property", "value"), _facts(release))]
    if features := _features(release.domain.to_dict()):
        tables.append(_table(("feature", "kind", "declared"), features))
    limits = _LIMITS if release.model_card else (_UNTRAINED, *_LIMITS)
    parts = ["## Private explanations", str(release.guarantee), *_people(release), *tables]
    parts.append("**What it does not say**\n\n" + "\n".join(f"- {limit}" for limit in limits))
    return "\n\n".join(parts) + "\n"


def _people(release: Release) -> list[str]:
    """What people are promised by where their records are, where the model's own card says how it was trained."""
    if release.model_card is None:
        return []
    people = "\n".join(f"- {line}" for line in str(release.guarantees).splitlines())
    return [f"**By where a person's records are**\n\n{people}"]


def _facts(release: Release) -> list[tuple[str, str]]:
    guarantee, reference = release.guarantee, release.reference
    facts = [
        ("ε, δ in total", f"{guarantee.epsilon:.4g}, {guarantee.delta:.4g}"),
        ("μ (Gaussian differential privacy)", f"{guarantee.mu:.4g}"),
        ("rows, a public number", f"{release.size:,}"),
        ("answers", _answers(release)),
        ("encoded columns", f"{release.domain.width:,}"),
        ("weight of rows by distance", release.weight.kind),
        ("synthetic records", "none" if reference is None else f"{len(reference):,}"),
    ]
    if release.named:
        facts.append(("other classes or models", ", ".join(release.named)))
    return [*facts, ("made by", f"dpexplain {release.library}"), ("SHA-256 of the file", release.digest)]


def _answers(release: Release) -> str:
    scale = release.scale
    names = {"probability": "a probability", "class": "a class, as 0 or 1", "label": "a number from -1 to 1"}
    return names.get(scale.kind, f"a number from {scale.low:g} to {scale.high:g}")


def _features(domain: dict[str, Any]) -> list[tuple[str, ...]]:
    """One row for each feature of a table; one row for what other domains declare."""
    if domain["kind"] == "tabular":
        return [(one["name"], one["kind"], _describe_feature(one)) for one in domain["features"]]
    if domain["kind"] == "text":
        return [(domain.get("column", "text"), "words", f"a public vocabulary of {len(domain['vocabulary']):,} words")]
    if domain["kind"] == "image":
        return [("image", "superpixels", " x ".join(map(str, domain.get("grid") or domain["shape"])))]
    return []


def _describe_feature(feature: dict[str, Any]) -> str:
    values = feature.get("values") or feature.get("levels")
    if values:
        more = f", … ({len(values)} in all)" if len(values) > _SHOWN else ""
        return ", ".join(map(str, values[:_SHOWN])) + more
    return f"{_number(feature['low'])} to {_number(feature['high'])}" if "low" in feature else "yes or no"


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _table(header: tuple[str, ...], rows: list[Any]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join("| " + " | ".join(_cell(text) for text in line) + " |" for line in lines)


def _cell(text: str) -> str:
    """Names come from data: nothing in them may end a cell or become markup."""
    return re.sub(r"([\\|`*_<>\[\]])", r"\\\1", " ".join(text.split()))
