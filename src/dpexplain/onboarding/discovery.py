"""A domain found in the private rows themselves, for a price: bounds by noisy counts, categories by noisy counts with thresholds.

Proof: `proofs/discover.md`. What is found is rounded outwards and paid from the same ledger as everything that follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from math import ceil, floor
from pathlib import Path
from typing import Any, Unpack
from uuid import uuid4

import numpy as np

from dpexplain.arguments import quote, require_kind
from dpexplain.core.text_prior import TextPrior
from dpexplain.domain import Domain
from dpexplain.domain.drafts import Draft, DraftFeature, draft_of_schema
from dpexplain.domain.drafts.draft import KINDS, round_out
from dpexplain.domain.interface import format_list, hint
from dpexplain.errors import DomainError, ParameterError
from dpexplain.ledger import open_ledger
from dpexplain.ledger.port import Account, Ledger, Request, Settled
from dpexplain.mechanisms.discovery_counts import DiscoveredColumns, DiscoveryPlan, plan_discovery
from dpexplain.mechanisms.door import Door
from dpexplain.mechanisms.gaussian import GaussianMechanism
from dpexplain.mechanisms.misfit_counts import KINDS as MISFITS
from dpexplain.mechanisms.misfit_counts import MisfitCounts, MisfitPlan
from dpexplain.mechanisms.ports import Noise
from dpexplain.noise.secure import SecureNoise
from dpexplain.privacy.budget import USED_SEED, Budget
from dpexplain.privacy.events import price
from dpexplain.registration.options import OptionKeywords, RegistrationOptions

WORDS = {"number": "numeric", "integer": "numeric", "category": "categorical", "yes-no": "binary"}
RANGED = ("numeric", "date", "datetime")
OTHER = "other"
FOUND_TOO_LITTLE = (
    "Too few rows share a value there, at this price. What was found is paid for and is in the error's .draft: "
    "dpx.Domain(error.draft.declare({…}).complete()) adds declarations and error.draft.only([…]) leaves columns out, both free"
)


def discover(
    rows: Any,
    budget: Budget,
    *,
    ledger: Ledger | str,
    columns: Mapping[str, str] | Draft | Any = None,
    declare: Mapping[str, Any] | None = None,
    candidates: Mapping[str, Iterable[Any]] | None = None,
    spend: Budget | None = None,
    request_id: str | None = None,
    noise: Noise | None = None,
    **options: Unpack[OptionKeywords],
) -> Domain:
    """The domain of private rows, with bounds and categories found privately and paid from `budget` (or `spend`, a part of it).

    - `columns` gives the kind of each column: {"age": "number", "children": "integer", "work": "category", "married": "yes-no", "opened": "date"},
      or a draft or schema (`Domain.from_schema`). Arrow tables, polars frames and Parquet files have their own.
    - `declare` gives what is known and need not be paid for, as for `Domain.from_model`.
    - `candidates` lists public values that categories may have, which makes those easier to find. Only values that many rows share are found; the rest
      is read as "other".
    - `ledger` pays, and takes the release that follows. The same `request_id` gives the same answer and spends nothing.
    - `unit`, `max_rows_per_unit`, `relation` and `name` are as for `PrivateData`.
    """
    _require_payment(budget, spend, ledger, options)
    terms = RegistrationOptions(**options)
    draft = _draft(rows, columns).declare(declare)
    draft = replace(draft, features=tuple(one for one in draft.features if one.name != terms.unit))
    plan = _plan(draft, (spend or budget).mu, terms, candidates or {})
    opened = open_ledger(ledger, Account(terms.name, "", budget, terms.neighbours))
    question = {"discover": [one.name for one in draft.open], "price": str(price(plan.events))}
    request = Request(request_id or f"discover-{uuid4().hex}", question, plan.events, _uses(noise))
    found = _run_once(
        lambda: _raw_columns(rows, draft, terms), plan, opened, request, noise, lambda made: {"discovered": made.to_dict()}
    )
    return Domain(_complete_draft(draft, DiscoveredColumns.from_dict(found["discovered"])).complete())


def count_misfits(
    rows: Any,
    domain: Domain,
    budget: Budget,
    *,
    ledger: Ledger | str,
    spend: Budget | None = None,
    request_id: str | None = None,
    noise: Noise | None = None,
    **options: Unpack[OptionKeywords],
) -> dict[str, dict[str, float]]:
    """About how many private rows a domain does not fit: clamped `below` or `above`, `missing`, of an `undeclared` value; for each feature.

    Counts have Gaussian noise, whose standard deviation is under "noise"; they are paid from `budget` (or `spend`, a part of it). The rest is
    as for `discover`.
    """
    _require_payment(budget, spend, ledger, options)
    require_kind("domain", domain, Domain, "Pass the domain of a table, dpx.Domain([…])")
    terms = RegistrationOptions(**options)
    query = MisfitCounts(len(domain.features), terms.neighbours)
    plan = MisfitPlan(GaussianMechanism(query, (spend or budget).mu))
    opened = open_ledger(ledger, Account(terms.name, "", budget, terms.neighbours))
    question = {"check": "misfits", "domain": domain.fingerprint, "price": str(price(plan.events))}
    request = Request(request_id or f"check-{uuid4().hex}", question, plan.events, _uses(noise))
    from dpexplain.registration.misfitting_rows import MisfittingRows

    counted = _run_once(
        lambda: MisfittingRows(rows, domain, terms), plan, opened, request, noise, lambda found: {"misfits": found.tolist()}
    )
    pairs = zip(domain.columns, counted["misfits"], strict=True)
    return {name: dict(zip(MISFITS, counts, strict=True)) | {"noise": plan.mechanism.sigma} for name, counts in pairs}


def _require_payment(budget: Any, spend: Any, ledger: Any, options: Mapping[str, Any]) -> None:
    if ledger is None:
        raise ParameterError(
            "discovery spends budget and must be recorded. Pass ledger=, the same as for the release that follows, so that both are counted"
        )
    for name, given in (("budget", budget), *((("spend", spend),) if spend is not None else ())):
        require_kind(name, given, Budget, "Write dpx.Budget(epsilon=0.05, delta=1e-6)")
    if options.get("cap") is not None:
        raise ParameterError("cap= belongs to PrivateData: here the ledger's budget is the cap. Leave cap= out")


def _run_once(
    rows: Callable[[], Any],
    plan: Any,
    ledger: Ledger,
    request: Request,
    noise: Noise | None,
    stored: Callable[[Any], dict[str, Any]],
) -> dict[str, Any]:
    """Reserve, run the plan and settle; or return what was released under this id before. The columns are checked before anything is spent."""
    private = rows()
    reserved = ledger.reserve(request)
    if isinstance(reserved, Settled):
        return reserved.answer
    door = Door(private, noise or SecureNoise(), reserved.quanta)
    answer = stored(plan.run(door))
    return ledger.settle(reserved, door.events, answer).answer


def _uses(noise: Noise | None) -> tuple[str, ...]:
    return () if noise is None or noise.secure else (USED_SEED,)


def _raw_columns(rows: Any, draft: Draft, terms: RegistrationOptions) -> Any:
    from dpexplain.registration.raw_columns import RawColumns

    kinds = {one.name: str(one.kind) for one in draft.open}
    return RawColumns(_table(rows, [*kinds, *([] if terms.unit is None else [terms.unit])]), kinds, terms)


def _draft(rows: Any, columns: Any) -> Draft:
    if isinstance(columns, Draft):
        return columns
    if isinstance(columns, Mapping) and all(isinstance(kind, str) for kind in columns.values()):
        return Draft(tuple(_declared_kind(str(name), kind) for name, kind in columns.items()), "the rows")
    if isinstance(columns, (list, tuple, set)):
        raise ParameterError('columns must say what each column is. Pass columns={"age": "number", "work": "category", …}')
    if columns is not None:
        return draft_of_schema(columns)
    if isinstance(rows, (str, Path)):
        return draft_of_schema(rows)
    schema = getattr(rows, "schema", None)
    if schema is None or type(rows).__module__.startswith("pandas"):
        raise ParameterError(
            f"a {type(rows).__name__} does not declare what its columns are, and guessing it would look at every row. Pass "
            'columns={"age": "number", "work": "category", …}'
        )
    return draft_of_schema(schema)


def _declared_kind(name: str, kind: str) -> DraftFeature:
    chosen = WORDS.get(kind, kind)
    if chosen not in KINDS or chosen == "ordinal":
        known = [*WORDS, "date", "datetime"]
        raise ParameterError(f"{name}: {quote(kind)}{hint(kind, known)} is not a kind of column. Use one of {format_list(known)}")
    return DraftFeature(name, chosen, {"integer": True} if kind == "integer" else {})


def _plan(draft: Draft, mu: float, terms: RegistrationOptions, candidates: Mapping[str, Iterable[Any]]) -> DiscoveryPlan:
    for one in draft.open:
        if one.kind not in (*RANGED, "categorical"):
            raise DomainError(
                f"{one.name}: {one.kind or 'a column of this type'} cannot be discovered. Declare it, or leave it out of columns="
            )
    names = [one.name for one in draft.open]
    for name in candidates:
        if name not in names:
            raise ParameterError(
                f"candidates for {name!r}{hint(name, names)}, which is not an undeclared column. Undeclared are {format_list(names)}"
            )
    numbers = tuple(one.name for one in draft.open if one.kind in RANGED)
    texts = [one.name for one in draft.open if one.kind == "categorical"]
    priors = tuple((name, TextPrior(tuple(map(str, candidates.get(name, ()))))) for name in texts)
    return plan_discovery(numbers, priors, mu, terms.neighbours)


def _table(rows: Any, names: list[str]) -> Any:
    if not isinstance(rows, (str, Path)):
        return rows
    from dpexplain.registration.tables import read_private

    return read_private(str(rows), names)


def _complete_draft(draft: Draft, found: DiscoveredColumns) -> Draft:
    """The draft completed with what was found. What did not exceed the noise stays open and is listed as undeclared."""
    features = tuple(_fill_feature(one, found) if isinstance(one, DraftFeature) else one for one in draft.features)
    return Draft(features, "discovery", FOUND_TOO_LITTLE)


def _fill_feature(one: DraftFeature, found: DiscoveredColumns) -> DraftFeature:
    if texts := found.texts.get(one.name):
        return replace(one, known={**_categories(texts), **one.known})
    if (ends := found.ranges.get(one.name)) is not None:
        return replace(one, known={**_bounds(one, *ends, found.middles[one.name]), **one.known})
    return one


def _categories(texts: list[str]) -> dict[str, Any]:
    """Values in order, whole numbers as such where all are; "other" for the rest."""
    printable = [text for text in texts if text.isprintable() and _is_unicode(text)]
    whole = all(text.removeprefix("-").isdecimal() and str(int(text)) == text and abs(int(text)) < 2**53 for text in printable)
    other = next(name for name in (OTHER, "(other)", "(any other)", "(rest)") if name not in printable)
    return {"values": sorted(map(int, printable)) if whole else printable, "other": other}


def _is_unicode(text: str) -> bool:
    return not any(0xD800 <= ord(one) <= 0xDFFF for one in text)


def _bounds(one: DraftFeature, low: float, high: float, middle: float) -> dict[str, Any]:
    if one.kind in ("date", "datetime"):
        per_day = 1.0 if one.kind == "date" else 86400.0
        # the years 1 to 9999
        first, last = (int(np.clip(end, -719162, 2932896)) for end in (floor(low / per_day), ceil(high / per_day)))
        low_text, high_text = (str(np.array(end).astype("datetime64[D]")) for end in (first, max(last, first + 1)))
        return {"low": low_text, "high": high_text}
    ends = round_out(low, high) or {"low": low - 1.0, "high": high + 1.0}
    if one.known.get("integer"):
        ends = {"low": float(floor(ends["low"])), "high": float(ceil(ends["high"]))}
    inside = min(max(middle, ends["low"]), ends["high"])
    return {
        **ends,
        "missing": float(round(inside))
        if one.known.get("integer")
        else min(max(float(f"{inside:.3g}"), ends["low"]), ends["high"]),
    }
