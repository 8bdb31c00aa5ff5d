"""`dpexplain release`: makes a release, which is paid for once."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from dpexplain.cli.data_options import (
    Answer,
    Bounds,
    DeclaredModel,
    Label,
    MaxRows,
    Model,
    Public,
    Relation,
    Rows,
    Size,
    Stream,
    Target,
    Trusted,
    Unit,
    data_source,
    with_labelling_bar,
)
from dpexplain.cli.exits import exit_on_error
from dpexplain.cli.shared_options import Force, Json, require_new
from dpexplain.errors import ParameterError
from dpexplain.privacy.budget import Budget
from dpexplain.release.announced import WIDE
from dpexplain.release.making import release as make_release
from dpexplain.release.release import Release

if TYPE_CHECKING:
    from dpexplain.data import PrivateData

LABELS = "numbers from -1 to 1, and what is beyond is cut. Declare --answer (and --bounds) if it is something else."
EXAMPLE = "Example: dpexplain release data.parquet --domain domain.toml --label y --epsilon 0.5 --delta 1e-6 -o income.dpx"

Epsilon = Annotated[float, typer.Option("--epsilon", help="ε to spend.")]
Delta = Annotated[float, typer.Option("--delta", help="The δ of the guarantee.")]
Written = Annotated[Path, typer.Option("--output", "-o", help="The release to write.")]
LedgerUrl = Annotated[
    str | None, typer.Option("--ledger", help="Where spending is recorded: sqlite:///file.ledger, postgresql://…")
]
Total = Annotated[float | None, typer.Option("--budget", help="Total ε of the account, if the release uses only a part of it.")]
RequestId = Annotated[
    str | None,
    typer.Option("--request-id", help="Id of this release in the ledger. Repeating it returns the same release at no cost."),
]
Name = Annotated[str, typer.Option("--name", help="The data set's name in the ledger.")]
Card = Annotated[
    Path | None,
    typer.Option(
        "--model-card", help="Privacy of the model's training (JSON); prints the guarantee for people in the training data."
    ),
]
Reference = Annotated[
    bool,
    typer.Option("--reference", help="Add synthetic reference records, labelled by --model, for SHAP values and narrow weights."),
]


def add_to(app: typer.Typer) -> None:
    app.command(epilog=EXAMPLE)(exit_on_error(release))


def release(
    data: Rows,
    domain: Public,
    epsilon: Epsilon,
    delta: Delta,
    output: Written,
    label: Label = None,
    model: Model = None,
    target: Target = None,
    trusted: Trusted = False,
    answer: Answer = None,
    bounds: Bounds = None,
    unit: Unit = None,
    max_rows: MaxRows = 1,
    relation: Relation = "add-remove",
    size: Size = None,
    ledger: LedgerUrl = None,
    total: Total = None,
    request: RequestId = None,
    stream: Stream = None,
    name: Name = "data",
    model_card: Card = None,
    reference: Reference = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write a release, paid once, that explains any number of records without the private data."""
    from dpexplain.data import PrivateData
    from dpexplain.registration.sources import register

    require_new(output, force)
    if reference and model is None:
        raise ParameterError(
            "reference records are labelled by the model. Pass --model instead of --label, or leave --reference out"
        )
    answers = DeclaredModel(model, trusted, target, answer, bounds)
    terms = {"unit": unit, "max_rows_per_unit": max_rows, "relation": relation, "size": size, "name": name}
    spend, budget = Budget(epsilon, delta), Budget(epsilon if total is None else total, delta)
    source = data_source(data, domain, label, answers, terms | {"model_card": model_card}, stream)
    private = PrivateData.from_registered(register(source, with_labelling_bar, bars=True, keep_model=reference))
    if label is not None and private.answer_scale.kind == "label" and not as_json:
        print(f"{label!r} is read as {LABELS}", flush=True)
    has_bars = source.stream or reference or source.domain.width >= WIDE
    with nullcontext() if has_bars else Console(stderr=True).status("Releasing"):
        made = make_release(private, budget, spend=spend, ledger=ledger, request_id=request, reference=reference)
    made.save(output)
    if as_json:
        print(json.dumps(as_data(made, private, output)))
    else:
        report(made, output, remembered=ledger is not None)
        if private.model_card is not None:
            print(private.guarantees)


def as_data(made: Release, private: PrivateData, output: Path) -> dict[str, Any]:
    paid, spent = made.guarantee.to_dict(), private.spent.to_dict()
    summary = {"file": str(output), "guarantee": paid, "spent": spent, "columns": list(made.names)}
    summary |= {"unused_ranges": list(made.unused_ranges)}
    return summary if private.model_card is None else summary | {"guarantees": private.guarantees.to_dict()}


def report(made: Release, output: Path, *, remembered: bool) -> None:
    print(f"Wrote {output}: {output.stat().st_size:,} bytes, {len(made.names)} columns.")
    print(made.guarantee)
    if made.unused_ranges:
        print(
            f"Numbers that use less than 3 % of their declared ranges: {', '.join(made.unused_ranges)}. Their slopes are hardly known. "
            "Before you pay again, declare bounds that most rows are within."
        )
    if not remembered:
        print("No --ledger was given, so this spending is recorded nowhere. A second release of the same rows adds to it.")
