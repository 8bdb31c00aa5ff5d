"""A release as one self-contained HTML file: inputs, bars and guarantee, computed in the reader's browser, with no network."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from html import escape
from math import exp, floor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dpexplain import web
from dpexplain.arguments import file_errors, require_text
from dpexplain.core.answer_scale import AnswerScale
from dpexplain.domain import DomainLike
from dpexplain.errors import ParameterError
from dpexplain.privacy.budget import SEEDED_NOISE, Guarantee, round_up
from dpexplain.release.page_targets import PageTargets
from dpexplain.version import __version__

if TYPE_CHECKING:
    from dpexplain.release.release import Release
    from dpexplain.release.surrogates import ReleaseSurrogate


TITLE = "Why does the model answer as it does?"
OUTCOME, HIGHER = "the explained answer", "a higher answer"


def publish(
    release: Release | ReleaseSurrogate,
    path: str | Path,
    *,
    title: str = TITLE,
    outcome: str = OUTCOME,
    surrogate: Mapping[str, Any] | None = None,
    targets: PageTargets | None = None,
) -> Path:
    """Write the page; `outcome` says what a positive effect leads towards, for example "an income above 50k". `surrogate` is the payload of one.

    With `targets` the reader chooses which class, or which model, is explained.
    """
    text = render(release, title=title, outcome=outcome, surrogate=surrogate, targets=targets)
    with file_errors(path, "write"):
        Path(path).write_text(text, encoding="utf-8", newline="\n")
    return Path(path)


def render(
    release: Release | ReleaseSurrogate,
    *,
    title: str = TITLE,
    outcome: str = OUTCOME,
    surrogate: Mapping[str, Any] | None = None,
    targets: PageTargets | None = None,
) -> str:
    """The page as text. Names and values reach it as JSON or escaped text only."""
    _require_fields(release.domain)
    require_text("title", title)
    require_text("outcome", outcome)
    script, style = web.inline_modules("page.js"), web.source("style.css")
    payload, guarantee, library = release.payload(), release.guarantee, __version__
    scale = AnswerScale.from_dict(payload.get("scale"))
    outcome = describe_outcome(outcome, scale)
    parts = {
        "policy": policy(script, style),
        "version": escape(library),
        "title": escape(title),
        "outcome": escape(outcome),
        "measure": measure(scale),
        "units": units(scale),
        "stale": "A value in the form cannot be asked about, so this is about the record before it.",
        "lead": escape(_lead(guarantee) + _stand_in(surrogate)),
        "warning": _warning(guarantee),
        "promise": escape(promise(guarantee)),
        "statement": escape(str(guarantee)),
        "footer": escape(
            f"Published with dpexplain {library}. {_facts(payload)}{_records(payload)} This file works offline and contacts no one."
        ),
        "style": style,
        "script": script,
        "data": _data(release.domain, payload, outcome, surrogate, targets),
    }
    return web.page("page.html", parts)


def measure(scale: AnswerScale) -> str:
    """What the numbers of an answer are, as a heading that ends in the outcome."""
    if scale.kind == "probability":
        return "The model’s probability of"
    return "How strongly the model leans towards" if scale.kind == "class" else "The model’s answer; blue steps lead towards"


def describe_outcome(outcome: str, scale: AnswerScale) -> str:
    """What a positive effect leads towards: a higher answer where answers are numbers and nothing else was named."""
    return HIGHER if outcome == OUTCOME and scale.kind == "value" else outcome


def units(scale: AnswerScale) -> str:
    """The units of contributions, as part of a sentence."""
    return "in percentage points" if scale.in_percent else "in the units of the model’s answers"


def _require_fields(domain: DomainLike) -> None:
    kind = domain.to_dict().get("kind", "tabular")
    if kind not in ("tabular", "encoded", "text"):
        raise ParameterError(
            f"the page asks for a table's fields, and this domain is of kind {kind!r}. Write the release with save() instead"
        )


def policy(script: str, style: str) -> str:
    """Nothing may be loaded, sent, framed or evaluated; only this very script and this very style sheet may run."""
    return (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


def promise(guarantee: Guarantee) -> str:
    """The guarantee in words, for readers who have not heard of ε."""
    if not guarantee.private:
        return "Nothing is guaranteed: the numbers on this page were made with a setting that does not protect the people in the data."
    return (
        f"With {guarantee.neighbours.describe()}, no outcome of what was released becomes more than {round_up(exp(guarantee.epsilon))} times "
        f"as likely, apart from a chance of one in {floor((1 + 1e-12) / guarantee.delta):,}. That bounds what this page can reveal about "
        "anyone in the data, whoever asks and whatever else they know. It was paid for once: asking here costs no further privacy, "
        "however often."
    )


def pack_arrays(values: ArrayLike) -> dict[str, str]:
    """An array as base64 of little-endian bytes: integers in as few as hold them, everything else as float64, exactly."""
    array = np.asarray(values)
    if array.dtype.kind in "iu":
        largest = int(array.max(initial=0))
        kind = "u1" if largest < 2**8 else "u2" if largest < 2**16 else "u4"
        exact = array.astype(f"<{kind}")
        if not np.array_equal(exact, array):
            raise ValueError("codes must not be negative and must fit four bytes")
    else:
        kind, exact = "f8", array.astype("<f8")
        if not np.isfinite(exact).all():
            raise ValueError("a release holds finite numbers only")
    return {kind: b64encode(exact.tobytes()).decode("ascii")}


def _lead(guarantee: Guarantee) -> str:
    shield = "from noisy statistics that protect everyone in the data" if guarantee.private else "from released statistics"
    return f"Change the record and see what moves the model’s answer. Everything is computed on this page, {shield}; nothing you enter leaves it."


def _records(payload: Mapping[str, Any]) -> str:
    """A sentence about the reference records, which are too many for the page."""
    count = payload.get("records", 0)
    return (
        f" The release also holds {count:,} reference records, which this page does not use: answers from the release file are more accurate."
        if count
        else ""
    )


def _warning(guarantee: Guarantee) -> str:
    """A warning for readers where noise is seeded or the release is not private, else nothing. Other notes are part of the guarantee."""
    seeded = SEEDED_NOISE if SEEDED_NOISE in guarantee.note else ""
    warning = seeded if guarantee.private else str(guarantee)
    return f'<p class="warning" role="note">{escape(warning)}</p>' if warning else ""


def _facts(payload: Mapping[str, Any]) -> str:
    weight = {key: value for key, value in payload["weight"].items() if key != "share"}
    kind = weight.pop("kind")
    details = ", ".join(f"{key} {value:g}" for key, value in weight.items())
    columns = len(payload["mean"])
    return f"{columns} encoded columns, {kind} weight ({details}), {_shape(payload)}."


def _shape(payload: Mapping[str, Any]) -> str:
    """Which plane the effects belong to."""
    plane, radius = payload.get("plane", "paper"), payload["radius"]
    held = "" if radius is None else f" in a ball of radius {radius:g}"
    return f"slopes of the {plane} plane{held}"


def _stand_in(surrogate: Mapping[str, Any] | None) -> str:
    """The note for readers about answers that come from a surrogate."""
    if surrogate is None:
        return ""
    return (
        " Answers and what adds up to them come from a compact stand-in for the model, which explains "
        f"{floor(100 * surrogate['fidelity'])} % of how its answers vary."
    )


def _data(
    domain: DomainLike,
    payload: Mapping[str, Any],
    outcome: str,
    surrogate: Mapping[str, Any] | None = None,
    targets: PageTargets | None = None,
) -> str:
    """JSON for a script element: < > & are written as escapes, so that no text can end the element."""
    first = _release_facts(payload)
    data = {
        "domain": domain.to_dict(),
        "names": list(domain.names),
        "outcome": outcome,
        "scale": payload.get("scale"),
        "release": first,
        **({} if surrogate is None else {"surrogate": surrogate}),
        **({} if targets is None else {"targets": targets.to_dict(first, _release_facts)}),
    }
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return re.sub("[<>&]", lambda match: f"\\u{ord(match[0]):04x}", text)


def _release_facts(payload: Mapping[str, Any]) -> dict[str, Any]:
    arrays = {
        key: pack_arrays(np.asarray(payload[key], dtype=np.float64)) for key in ("mean", "eigenvalues", "eigenvectors", "t1")
    }
    noise = {**payload["noise"], "calibration": pack_arrays(np.asarray(payload["noise"]["calibration"], dtype=np.float64))}
    plain = {key: payload[key] for key in ("t0", "radius", "weight", "layout")} | {
        "plane": payload.get("plane", "paper"),
        "shared": payload.get("shared"),
    }
    extra = {"reference": _reference(payload.get("reference")), "fitted": _fitted_arrays(payload.get("fitted"))}
    return {**arrays, **plain, "noise": noise, **extra}


def _fitted_arrays(fitted: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The numbers of the fitted plane: lists as arrays, single numbers as they are."""
    if not fitted:
        return None
    lists = {key: pack_arrays(np.asarray(value, dtype=np.float64)) for key, value in fitted.items() if isinstance(value, list)}
    return dict(fitted) | lists


def _reference(reference: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if not reference:
        return None
    reals = {key: pack_arrays(np.asarray(reference[key], dtype=np.float64)) for key in ("labels", "inverse_weight")}
    return {**reals, "points": [pack_arrays(np.asarray(codes, dtype=np.int64)) for codes in reference["points"]]}


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode('utf-8')).digest()).decode('ascii')}"
