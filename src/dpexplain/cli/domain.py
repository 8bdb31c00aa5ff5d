"""`dpexplain domain draft`: a domain file to complete, from the metadata of a model or a schema."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from dpexplain.cli.data_options import Trusted
from dpexplain.cli.exits import exit_on_error
from dpexplain.cli.shared_options import Force, Json, require_new
from dpexplain.errors import ParameterError

app = typer.Typer(help="What is public about private rows: draft a domain file.", no_args_is_help=True)


@app.callback()
def main() -> None:
    """What is public about private rows: draft a domain file."""


@app.command(epilog="Example: dpexplain domain draft --model model.onnx -o domain.toml")
@exit_on_error
def draft(
    model: Annotated[
        str | None, typer.Option("--model", help="A model that stores its columns: .onnx, .skops, .joblib, a KServe V2 address.")
    ] = None,
    schema: Annotated[
        Path | None, typer.Option("--schema", help="A schema instead: of a .parquet or .arrow file, or a JSON Schema.")
    ] = None,
    columns: Annotated[list[str] | None, typer.Option("--column", help="Only this column; may be repeated.")] = None,
    scale: Annotated[float, typer.Option("--scale", help="Length of a declared range in distances. Default: 1.")] = 1.0,
    trusted: Trusted = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The .toml file to write. Default: standard output.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write a commented domain file. Missing facts are marked for you to declare. No row is read."""
    from dpexplain.domain.drafts import draft_of_model, draft_of_schema

    if (model is None) == (schema is None):
        raise ParameterError("a draft is made from one source. Pass either --model or --schema")
    if output is not None:
        require_new(output, force)
    found = draft_of_schema(schema) if model is None else draft_of_model(open_model(model, trusted))
    found = replace(found.only(columns or None), scale=scale)
    text = found.to_toml()
    if output is not None:
        output.write_text(text, encoding="utf-8")
    if as_json:
        left = [{"name": one.name, "kind": one.kind, "declare": list(one.open)} for one in found.open]
        print(json.dumps({"file": None if output is None else str(output), "features": len(found.features), "open": left}))
    elif output is None:
        print(text, end="")
    else:
        print(f"Wrote {output}. {found}")


def open_model(model: str, trusted: bool) -> Any:
    """The estimator in a file of one; an ONNX file or an address as it is."""
    from dpexplain.registration.model_sources import load_estimator

    if Path(model).suffix.lower() in (".skops", ".pkl", ".pickle", ".joblib"):
        return load_estimator(model, trusted)
    return model
