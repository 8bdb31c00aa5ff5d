"""What an answer says about features that go together among the records: a plane shares their effects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpexplain.answers.contributions import feature_titles
from dpexplain.domain import Domain, DomainLike


def shared_effects(pairs: Sequence[Sequence[float]], domain: DomainLike) -> dict[str, Any]:
    """{"shared": …} for the details of a plane: pairs of features with their correlation, a sentence for anybody and the
    remedy for who has the release. Empty for texts and images, and without pairs.

    `pairs` are (attribute, attribute, correlation), as `estimation.related` finds them in released moments.
    """
    if not isinstance(domain, Domain):
        return {}
    titles, names = feature_titles(domain), domain.columns
    if not pairs:
        return {}
    listed = "; ".join(f"{titles[int(a)]} and {titles[int(b)]} ({strength:.1f})" for a, b, strength in pairs)
    text = f"These features go together among the records, and their effects are shared among them: {listed}."
    remedy = "To change one at a time, use release.lime or release.shapley with the model."
    found = [[names[int(a)], names[int(b)], round(float(r), 3)] for a, b, r in pairs]
    return {"shared": {"pairs": found, "text": text, "remedy": remedy}}
