"""Finds groups of people who get worse answers: records that share a value, a half of a range, an answer or a sparse neighbourhood."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from dpexplain.answers.contributions import feature_names
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.domain import DomainLike
from dpexplain.errors import ParameterError

FEWEST = 5  # records in a group, and outside it, from which they are compared
_CLEAR = 2.0  # standard errors

Members = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class GroupQuality:
    """Mean relative excess of a group's answers and of everybody else's, with the standard error of the difference."""

    name: str
    records: int
    excess: float
    others: float
    error: float

    @property
    def is_worse(self) -> bool:
        """Whether the difference is larger than two standard errors. By chance this is true of about one group in forty."""
        return self.excess - self.others > _CLEAR * self.error


def form_groups(
    domain: DomainLike, points: Matrix, labels: Vector | None, rows: Vector, only: Sequence[str] | None
) -> dict[str, Members]:
    """Groups by name; `rows` is how many rows count for each record, and `only` names the features to form groups by."""
    names = feature_names(domain)
    found = {
        group: members
        for i, name in enumerate(names)
        if only is None or name in only
        for group, members in _of_feature(domain, i, name, points)
    }
    if labels is not None:
        found |= {"model answers yes": labels > 0, "model answers no": labels <= 0}
    found |= {
        "fewest rows nearby (a third)": rows <= np.quantile(rows, 1 / 3),
        "most rows nearby (a third)": rows >= np.quantile(rows, 2 / 3),
    }
    return {name: members for name, members in found.items() if FEWEST <= members.sum() <= len(points) - FEWEST}


def require_features(domain: DomainLike, only: Sequence[str] | None) -> None:
    """ParameterError unless there are features of these names."""
    names = feature_names(domain)
    if unknown := set(only or ()) - set(names):
        raise ParameterError(f"there is no feature {sorted(unknown)[0]!r} to form groups by. Choose among {list(names)[:12]}")


def _of_feature(domain: DomainLike, index: int, name: str, points: Matrix) -> Iterator[tuple[str, Members]]:
    block = domain.blocks[index]
    columns = points[:, block.start : block.stop]
    if block.kind == "one-hot":
        for j in range(block.stop - block.start):
            yield domain.names[block.start + j], columns[:, j] > 0.5
    elif block.kind == "binary":
        yield f"{name}: 1", columns[:, 0] > 0.5
        yield f"{name}: 0", columns[:, 0] <= 0.5
    else:
        middle = float(np.median(columns[:, 0]))
        yield f"{name}: upper half", columns[:, 0] > middle
        yield f"{name}: lower half", columns[:, 0] <= middle


def compare_groups(groups: Mapping[str, Members], excess: Vector) -> tuple[GroupQuality, ...]:
    """Every group against everybody else, the worst first; `excess` has one number for each record, averaged over draws."""
    found = [_compare(name, excess[members], excess[~members]) for name, members in groups.items()]
    return tuple(sorted(found, key=lambda one: one.others - one.excess))


def _compare(name: str, inside: Vector, outside: Vector) -> GroupQuality:
    error = sqrt(float(inside.var(ddof=1)) / len(inside) + float(outside.var(ddof=1)) / len(outside))
    return GroupQuality(name, len(inside), float(inside.mean()), float(outside.mean()), error)
