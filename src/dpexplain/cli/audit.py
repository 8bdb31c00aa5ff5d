"""`dpexplain audit`: tries to refute privacy claims by running mechanisms on neighbouring data sets and guessing which one was used."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpexplain.cli.exits import REFUTED, exit_on_error
from dpexplain.cli.shared_options import Json
from dpexplain.errors import ParameterError

if TYPE_CHECKING:
    from dpexplain.evaluation import Audit

NAMES = (
    "basic",
    "moments",
    "shared",
    "anchored",
    "adaptive",
    "enhanced",
    "influence",
    "shapley",
    "release",
    "reference",
    "refine",
)
VIEWS = {"transcript": ("transcript",), "answer": ("answer",), "both": ("transcript", "answer")}


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: dpexplain audit basic --epsilon 1 --delta 1e-6 --runs 2000")(exit_on_error(audit))


def audit(
    names: Annotated[list[str], typer.Argument(metavar="NAME…", help=f"{', '.join(NAMES)}, or all; or mutants.")],
    epsilon: Annotated[float, typer.Option("--epsilon", help="ε of the claim.")] = 1.0,
    delta: Annotated[float, typer.Option("--delta", help="The δ of the claim.")] = 1e-6,
    runs: Annotated[int, typer.Option("--runs", help="Runs on each of two neighbouring data sets.")] = 1000,
    view: Annotated[
        str,
        typer.Option(
            "--view", help="What the attacker sees: the transcript, the answer, or both in turn (for a release: the transcript)."
        ),
    ] = "transcript",
    steps: Annotated[int, typer.Option("--steps", help="Gradient steps, for mechanisms that use them.")] = 20,
    relation: Annotated[str, typer.Option("--relation", help="add-remove or replace-one.")] = "add-remove",
    confidence: Annotated[float, typer.Option("--confidence", help="Confidence of a refutation.")] = 0.99,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed for repeatable noise. Default: secure noise.")] = None,
    as_json: Json = False,
) -> None:
    """Test privacy claims: run mechanisms on worst-case neighbouring data sets and count correct guesses.

    `mutants` inserts one fault at a time into the library and prints which check detects it.

    Exit code 5 if a claim is refuted or a mutant survives, 0 otherwise.
    """
    if names == ["mutants"]:
        _mutants(runs, as_json)
        return
    from dpexplain import evaluation

    found: list[Audit] = []
    made = _mechanisms(epsilon, delta, steps)
    for name in _parse_names(names):
        for seen in _views(name, view):
            one = evaluation.audit(
                made[name](), view=seen, runs=runs, relation=relation, confidence=confidence, seed=seed, **_options(name)
            )
            found.append(one)
            if not as_json:
                print(one, flush=True)
    if as_json:
        print(json.dumps([one.to_dict() for one in found], indent=2))
    if not all(one.passed for one in found):
        raise typer.Exit(REFUTED)


def _mutants(runs: int, as_json: bool) -> None:
    from dpexplain.evaluation.audit.mutants import find_mutants

    found = []
    for one in find_mutants(runs):
        found.append(one)
        if not as_json:
            print(
                f"{one.name}: {one.by if one.caught else 'SURVIVED' if one.sound else 'the sound library is accused, too'}",
                flush=True,
            )
    if as_json:
        print(json.dumps([{"mutant": one.name, "caught_by": one.by, "sound": one.sound} for one in found], indent=2))
    if not all(one.caught for one in found):
        raise typer.Exit(REFUTED)


def _mechanisms(epsilon: float, delta: float, steps: int) -> dict[str, Callable[[], Any]]:
    import dpexplain as dpx
    from dpexplain.evaluation import Refining, Releasing
    from dpexplain.mechanisms.registry import MECHANISMS

    def make(kind: Any) -> Any:
        return kind(epsilon, delta, **({"steps": steps} if "steps" in {field.name for field in fields(kind)} else {}))

    named: dict[str, Callable[[], Any]] = {name: partial(make, kind) for name, kind in MECHANISMS.items()}
    return named | {
        "moments": lambda: dpx.Basic(epsilon, delta, by="moments"),
        "shared": lambda: dpx.Adaptive(epsilon, delta, by="moments"),
        "anchored": lambda: dpx.Basic(epsilon, delta, steps, plane="anchored"),
        "release": lambda: Releasing(epsilon, delta),
        "reference": lambda: Releasing(epsilon, delta, reference=True),
        "refine": lambda: Refining(epsilon, delta),
    }


def _parse_names(names: list[str]) -> list[str]:
    if names == ["all"]:
        return list(NAMES)
    if unknown := [name for name in names if name not in NAMES]:
        raise ParameterError(f"there is no mechanism {unknown[0]!r}. There are {', '.join(NAMES)}, and all")
    return names


def _views(name: str, view: str) -> tuple[Any, ...]:
    if view not in VIEWS:
        raise ParameterError(f"--view must be one of {', '.join(VIEWS)}, got {view!r}")
    return VIEWS["transcript"] if view == "both" and name in ("release", "reference", "refine") else VIEWS[view]


def _options(name: str) -> dict[str, Any]:
    """Tables of counts are audited where their cells do not depend on the noise: on categories."""
    import dpexplain as dpx

    return {"domain": dpx.Domain([dpx.Categorical(one, values=[0, 1, 2]) for one in "ab"])} if name == "reference" else {}
