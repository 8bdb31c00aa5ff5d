"""`dpexplain release`: makes a release, which is paid for once."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast

import typer
from rich.console import Console

from dpexplain.cli.exits import exit_on_error
from dpexplain.cli.shared_options import Force, Json, require_new
from dpexplain.domain import Domain
from dpexplain.errors import ParameterError
from dpexplain.privacy.budget import Budget
from dpexplain.progress import with_bar
from dpexplain.registration.declared_answers import OUTPUTS, Output
from dpexplain.registration.options import RegistrationOptions
from dpexplain.release.announced import WIDE
from dpexplain.release.making import release as make_release
from dpexplain.release.release import Release

if TYPE_CHECKING:
    from dpexplain.data import PrivateData
    from dpexplain.registration.model_sources import ModelSource
    from dpexplain.registration.sources import DataSource

EXAMPLE = "Example: dpexplain release data.parquet --domain domain.toml --label y --epsilon 0.5 --delta 1e-6 -o income.dpx"

Rows = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA…", help="Private rows: Parquet files, folders of them, patterns, addresses (s3://…); or .csv, .arrow."
    ),
]
Public = Annotated[Path, typer.Option("--domain", help="What is public about them: .toml or .json (docs/domain.md).")]
Epsilon = Annotated[float, typer.Option("--epsilon", help="ε to spend.")]
Delta = Annotated[float, typer.Option("--delta", help="The δ of the guarantee.")]
Written = Annotated[Path, typer.Option("--output", "-o", help="The release to write.")]
Label = Annotated[
    str | None, typer.Option("--label", help="The column with the model's answers: booleans, classes, or in [-1, 1].")
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="The model instead of --label: .onnx, .skops, .joblib (with --trusted), a KServe address, module:function.",
    ),
]
Target = Annotated[str | None, typer.Option("--target", help="The class to explain, or all.")]
Trusted = Annotated[bool, typer.Option("--trusted", help="Allow a model file that runs code when it is loaded.")]
Answer = Annotated[
    str | None, typer.Option("--answer", help="Kind of answer: probability, class or value. Not needed for a classifier.")
]
Bounds = Annotated[str | None, typer.Option("--bounds", help="Public bounds of --answer value, as LOW,HIGH.")]
Unit = Annotated[str | None, typer.Option("--unit", help="The column that identifies the person of a row.")]
MaxRows = Annotated[int, typer.Option("--max-rows-per-unit", min=1, metavar="N", help="Rows used of each person.")]
Relation = Annotated[str, typer.Option("--relation", help="add-remove or replace-one.")]
Size = Annotated[
    int | None, typer.Option("--size", help="The public number of rows. Default: the true number, which is then public.")
]
LedgerUrl = Annotated[
    str | None, typer.Option("--ledger", help="Where spending is recorded: sqlite:///file.ledger, postgresql://…")
]
Total = Annotated[float | None, typer.Option("--budget", help="Total ε of the account, if the release uses only a part of it.")]
RequestId = Annotated[
    str | None,
    typer.Option("--request-id", help="Id of this release in the ledger. Repeating it returns the same release at no cost."),
]
Stream = Annotated[
    bool | None,
    typer.Option("--stream/--in-memory", help="Read the files in batches. Default: if they do not fit into memory."),
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
    with (
        nullcontext() if source.stream or reference or source.domain.width >= WIDE else Console(stderr=True).status("Releasing")
    ):  # those have bars of their own
        made = make_release(private, budget, spend=spend, ledger=ledger, request_id=request, reference=reference)
    made.save(output)
    if as_json:
        print(json.dumps(as_data(made, private, output)))
    else:
        report(made, output, remembered=ledger is not None)
        if private.model_card is not None:
            print(private.guarantees)


class DeclaredModel(NamedTuple):
    """The options of the command that declare the model and its answers."""

    where: str | None
    trusted: bool
    target: str | None
    output: str | None
    bounds: str | None


def data_source(
    data: list[str], domain: Path, label: str | None, declared: DeclaredModel, terms: dict[str, Any], stream: bool | None
) -> DataSource:
    """The files, labels and options that a command names, and whether the rows are to be read a part at a time."""
    from dpexplain.registration.model_sources import ModelSource
    from dpexplain.registration.sources import DataSource, decide_streaming

    model = None if declared.where is None else ModelSource(declared.where, declared.trusted)
    options = RegistrationOptions(
        target=target_of(declared.target, model), output=output_of(declared.output), bounds=bounds_of(declared.bounds), **terms
    )
    return decide_streaming(DataSource(data, Domain.load(domain), label, model, options, stream=stream))


def as_data(made: Release, private: PrivateData, output: Path) -> dict[str, Any]:
    paid, spent = made.guarantee.to_dict(), private.spent.to_dict()
    summary = {"file": str(output), "guarantee": paid, "spent": spent, "columns": list(made.names)}
    return summary if private.model_card is None else summary | {"guarantees": private.guarantees.to_dict()}


def report(made: Release, output: Path, *, remembered: bool) -> None:
    print(f"Wrote {output}: {output.stat().st_size:,} bytes, {len(made.names)} columns.")
    print(made.guarantee)
    if not remembered:
        print("No --ledger was given, so this spending is recorded nowhere. A second release of the same rows adds to it.")


def target_of(text: str | None, model: ModelSource | None) -> Any:
    """The target of a model, as a whole number where it reads as one: classes may be numbers."""
    if text is None or model is None:
        return text
    try:
        return int(text)
    except ValueError:
        return text


def output_of(text: str | None) -> Output | None:
    if text is not None and text not in OUTPUTS:
        raise ParameterError(f"--answer must be one of {', '.join(OUTPUTS)}, got {text!r}")
    return cast(Output | None, text)


def bounds_of(text: str | None) -> tuple[float, float] | None:
    """Two numbers with a comma between them."""
    try:
        low, high = (None, None) if text is None else map(float, text.split(","))
    except ValueError:
        raise ParameterError(f"--bounds must be LOW,HIGH, for example 0,250000, got {text!r}") from None
    return None if low is None or high is None else (low, high)


def with_labelling_bar(starts: range) -> Any:
    """Show a progress bar while the black box is asked, on a terminal."""
    return with_bar(starts, "Asking the model")
