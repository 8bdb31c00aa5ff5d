"""Options that name private rows and their model, and what they mean."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast

import typer

from dpexplain.domain import Domain
from dpexplain.errors import ParameterError
from dpexplain.progress import with_bar
from dpexplain.registration.declared_answers import OUTPUTS, Output
from dpexplain.registration.options import RegistrationOptions

if TYPE_CHECKING:
    from dpexplain.registration.model_sources import ModelSource
    from dpexplain.registration.sources import DataSource

Rows = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA…", help="Private rows: Parquet files, folders of them, patterns, addresses (s3://…); or .csv, .arrow."
    ),
]
Public = Annotated[Path, typer.Option("--domain", help="What is public about them: .toml or .json (docs/domain.md).")]
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
Stream = Annotated[
    bool | None,
    typer.Option("--stream/--in-memory", help="Read the files in batches. Default: if they do not fit into memory."),
]


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
