"""`dpexplain explain`: explain forever, from a release alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from dpexplain.cli.exits import told
from dpexplain.cli.options import File, Json
from dpexplain.errors import ParameterError, QueryError
from dpexplain.release import Release, load


def add_to(app: typer.Typer) -> None:
    app.command(epilog="""Example: dpexplain explain income.dpx --record '{"age": 40, "work": "private"}'""")(told(explain))


def explain(
    file: File,
    record: Annotated[str | None, typer.Option("--record", help="One record, as JSON.")] = None,
    rows: Annotated[Path | None, typer.Option("--rows", help="Many records: .csv, .json, .jsonl or .parquet.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where explanations of --rows go: .parquet, .csv or .json.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Explain one record or many, free of charge: needs no private data and no ledger."""
    if (record is None) == (rows is None):
        raise ParameterError("say what to explain. Pass either --record with JSON, or --rows with a file")
    made = load(file)
    if record is not None:
        show(made, parsed(record), as_json)
    elif rows is not None:
        explain_file(made, rows, output, as_json)


def show(made: Release, record: Any, as_json: bool) -> None:
    answer = made.explain(record)
    if as_json:
        print(answer.to_json(indent=2))
    else:
        Console().print(answer)


def explain_file(made: Release, rows: Path, output: Path | None, as_json: bool) -> None:
    from dpexplain.cli.tables import require_writable_kind, write_explanations
    from dpexplain.sources.tables import read_queries

    if output is not None:
        require_writable_kind(output)
    answers = made.explain_many(read_queries(rows, made.domain))
    if output is not None:
        write_explanations(output, made.names, answers)
        done = {"file": str(output), "explanations": len(answers)}
        print(json.dumps(done) if as_json else f"Wrote {output}: {len(answers):,} explanations.")
    elif as_json:
        print(json.dumps([one.to_dict() for one in answers], ensure_ascii=False))
    else:
        raise ParameterError("many explanations need a place. Pass -o explanations.parquet, or --json to print them")


def parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise QueryError("the record is not JSON. Write --record '{\"age\": 40, …}', in single quotes for the shell") from None
