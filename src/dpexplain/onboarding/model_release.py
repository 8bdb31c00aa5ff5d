"""A release of a fitted estimator in one call: it derives the domain from the model, checks, registers the rows and pays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from dpexplain.data import PrivateData
from dpexplain.domain import Domain
from dpexplain.errors import DataError
from dpexplain.ledger.port import Ledger
from dpexplain.mechanisms.ports import Noise
from dpexplain.onboarding.checks import check
from dpexplain.privacy.budget import Budget
from dpexplain.registration.options import OptionKeywords
from dpexplain.release.making import release
from dpexplain.release.release import Release


def release_model(
    model: Any,
    rows: Any,
    budget: Budget,
    *,
    declare: Mapping[str, Any] | None = None,
    suggested: bool = False,
    reference: bool | int = False,
    spend: Budget | None = None,
    ledger: Ledger | str | None = None,
    noise: Noise | None = None,
    **options: Unpack[OptionKeywords],
) -> Release:
    """A private release that explains a fitted estimator: `release_model(pipeline, frame, dpx.Budget(1.0, 1e-6)).explain(record)`.

    The domain is that of the model's own metadata (`Domain.from_model`, with `declare=` and `suggested=`); `Undeclared` lists what it does not contain.
    The model is tried on made-up records first (`dpx.check`), so that nothing is paid for a constant answer or a model that refuses. The rest is
    as for `PrivateData` (`target=`, `output=`, `unit=`, …) and `dpx.release`.
    """
    domain = Domain.from_model(model, declare, suggested=suggested)
    data = PrivateData(rows, domain, model=model, **options)
    if problems := check(data, budget).of("problem"):
        raise DataError(f"{problems[0]} (nothing was spent)")
    return release(data, budget, reference=reference, spend=spend, ledger=ledger, noise=noise)
