"""`dpexplain explain`: explains records from a release, free of charge and without private data."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from dpexplain.cli.data_options import Trusted
from dpexplain.cli.exits import exit_on_error, with_options
from dpexplain.cli.shared_options import File, Json, describe_count, parse_record
from dpexplain.core.plane import require_plane
from dpexplain.core.weights import from_text
from dpexplain.errors import ParameterError, QueryError
from dpexplain.release.release import Release, load

METHODS = ("plane", "shapley", "surrogate")
ESTIMATED = "The model was not asked: its answer here is what a plane estimates, and may be far from it. If you know it, pass --plane anchored --anchor"
BY_SHAPLEY = ", or ask it with --method shapley --model."
MOST_REASONS = 10  # skipped records that are named on the terminal


Record = Annotated[str | None, typer.Option("--record", help="One record, as JSON.")]
Rows = Annotated[Path | None, typer.Option("--rows", help="Many records: .csv, .json, .jsonl, .parquet or .arrow.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="File for the explanations of --rows: .parquet, .csv or .json.")
]
Anchor = Annotated[
    str | None,
    typer.Option(
        "--anchor", help="The model's answer, in its own units, for an anchored plane: a number, or a column of --rows."
    ),
]
Plane = Annotated[
    str | None,
    typer.Option("--plane", help="fitted (free intercept, the default), anchored (through --anchor), or paper (through 0)."),
]
Locality = Annotated[
    str | None,
    typer.Option("--weight", help="The locality: nearest:2000 (effective rows), gaussian:0.8, stable, … Default: the release's."),
]
IgnoreExtra = Annotated[bool, typer.Option("--ignore-extra", help="Ignore fields that the domain does not declare.")]
Clip = Annotated[bool, typer.Option("--clip", help="Replace a value outside the bounds by the nearest bound.")]
SkipErrors = Annotated[bool, typer.Option("--skip-errors", help="Skip invalid records of --rows.")]
Method = Annotated[
    str,
    typer.Option(
        "--method",
        help="plane (slopes), shapley (SHAP over reference records), or surrogate (SHAP of a surrogate, without the model).",
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="The model, for shapley and surrogate: .onnx, .skops, .joblib (with --trusted), a KServe address, module:function.",
    ),
]
Target = Annotated[str | None, typer.Option("--target", help="The class, or the name of the model, if the release has several.")]


def add_to(app: typer.Typer) -> None:
    app.command(epilog="""Example: dpexplain explain income.dpx --record '{"age": 40, "work": "private"}'""")(
        exit_on_error(explain)
    )


def explain(
    file: File,
    record: Record = None,
    rows: Rows = None,
    output: Output = None,
    anchor: Anchor = None,
    plane: Plane = None,
    weight: Locality = None,
    ignore_extra: IgnoreExtra = False,
    clip: Clip = False,
    skip: SkipErrors = False,
    method: Method = "plane",
    model: Model = None,
    target: Target = None,
    trusted: Trusted = False,
    as_json: Json = False,
) -> None:
    """Explain one record or many from a release, at no privacy cost, without private data or a ledger.

    Prints the model's approximate answer, the average, the contribution of each value, and what would change the answer.
    """
    if (record is None) == (rows is None):
        what = "no record was given" if record is None else "records come from one place"
        raise ParameterError(f"{what}. Pass either --record with JSON, or --rows with a file")
    _require_used(rows is not None, "--rows", {"--output": output, "--skip-errors": skip or None})
    _require_used(method == "plane", "--method plane", {"--plane": plane, "--anchor": anchor, "--skip-errors": skip or None})
    _require_method(method, model, weight)
    made = load(file)
    asked = None if plane is None else require_plane(plane)
    rules: dict[str, Any] = {"extra": "ignore" if ignore_extra else "refuse", "clip": clip}
    local = {} if weight is None else {"weight": from_text(weight)}
    if method != "plane":
        from dpexplain.cli.shapley_request import ShapleyRequest, explain_by_shapley

        explain_by_shapley(made, ShapleyRequest(method, model, target, trusted), record, rows, output, rules, as_json=as_json)
        return
    made = made if target is None else made.of(target)
    if record is not None:
        show(made, parse_record(record), anchor, as_json, rules | local | {"plane": asked})
    elif rows is not None:
        explain_file(
            made, rows, output, anchor, as_json, rules | local | {"plane": asked, "on_error": "skip" if skip else "raise"}
        )


def _require_method(method: str, model: str | None, weight: str | None) -> None:
    """A method that exists, with the options it needs and no others."""
    if method not in METHODS:
        raise ParameterError(f"--method must be {', '.join(METHODS[:-1])} or {METHODS[-1]}, got {method!r}")
    if method == "shapley" and model is None:
        raise ParameterError("--method shapley asks the model. Pass --model")
    if method == "plane" and model is not None:
        raise ParameterError("--method plane does not ask the model. Leave --model out, or pass --method shapley or surrogate")
    if method == "shapley" and weight is not None:
        raise ParameterError("SHAP values have no locality. Leave out either --weight or --method shapley")


def show(made: Release, record: Any, anchor: str | None, as_json: bool, rules: dict[str, Any]) -> None:
    answer = made.explain(record, anchor=None if anchor is None else _parse_anchor(anchor), **rules)
    if as_json:
        print(answer.to_json(indent=2))
        return
    console = Console()
    console.print(answer)
    if answer.plane == "fitted" and answer.added is not None:
        console.print(ESTIMATED + (BY_SHAPLEY if made.reference is not None else "."), markup=False, highlight=False)


def explain_file(
    made: Release, rows: Path, output: Path | None, anchor: str | None, as_json: bool, rules: dict[str, Any]
) -> None:
    from dpexplain.cli.explanation_files import require_output, write_explanations
    from dpexplain.registration.tables import read_query_file

    require_output(output, as_json)
    records = read_query_file(rows, made.domain)
    levels = None if anchor is None else [_take_anchor(record, anchor) for record in records]
    answers = made.explain_many(records, anchor=levels, **rules)
    if output is not None:
        write_explanations(output, made.names, answers)
        left_out = [asdict(one) for one in answers.skipped]
        done = {"file": str(output), "explanations": len(answers), "skipped": left_out}
        print(json.dumps(done) if as_json else f"Wrote {output}: {describe_count(len(answers), 'explanation')}.")
        for one in () if as_json else answers.skipped[:MOST_REASONS]:
            print(f"Skipped row {one.row}: {with_options(one.reason, {'clip'})}")
        if not as_json and len(left_out) > MOST_REASONS:
            print(f"… and {len(left_out) - MOST_REASONS:,} more; --json lists them all.")
    else:
        print(json.dumps([one.to_dict() for one in answers], ensure_ascii=False))


def _require_used(used: bool, by: str, options: dict[str, Any]) -> None:
    """Raise ParameterError for an option that would be ignored."""
    for option, value in options.items():
        if value is not None and not used:
            raise ParameterError(f"{option} is for {by} only. Leave it out, or pass {by}")


def _parse_anchor(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ParameterError(f"--anchor {text!r} is not a number. Pass the model's answer about the record") from None


def _take_anchor(record: Any, column: str) -> Any:
    if not (isinstance(record, dict) and column in record):
        raise QueryError(f"a record has no {column!r}. Name the column that holds the model's answers")
    return record.pop(column)
