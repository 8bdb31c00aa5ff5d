"""`dpexplain release | explain`: pay once, explain forever."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import track

from dpexplain.cli.exits import told
from dpexplain.cli.tables import require_writable_kind, write_explanations
from dpexplain.domain import Domain
from dpexplain.errors import ParameterError, QueryError
from dpexplain.labels import Output
from dpexplain.privacy.budget import Budget
from dpexplain.release import Release, load
from dpexplain.release import release as make_release
from dpexplain.sources import DataSource, ModelSource, decided, register
from dpexplain.sources.tables import read_queries
from dpexplain.terms import Terms

EXAMPLES = {
    "release": "Example: dpexplain release data.parquet --domain domain.toml --label y --epsilon 0.5 --delta 1e-6 -o income.dpx",
    "explain": """Example: dpexplain explain income.dpx --record '{"age": 40, "work": "private"}'""",
}
File = Annotated[Path, typer.Argument(metavar="FILE.dpx", help="A release.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def add_to(app: typer.Typer) -> None:
    app.command(epilog=EXAMPLES["release"])(told(release))
    app.command(epilog=EXAMPLES["explain"])(told(explain))


def release(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA.parquet…", help="Private rows: Parquet files, folders of them, patterns, addresses (s3://…)."
        ),
    ],
    domain: Annotated[Path, typer.Option("--domain", help="What is public about them: .toml or .json (docs/domain.md).")],
    epsilon: Annotated[float, typer.Option("--epsilon", help="How much to spend.")],
    delta: Annotated[float, typer.Option("--delta", help="The δ of the guarantee.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The release to write.")],
    label: Annotated[
        str | None, typer.Option("--label", help="The column with the model's answers: booleans, classes, or in [-1, 1].")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="Or the model: .onnx, .skops, a KServe address, module:function.")
    ] = None,
    target: Annotated[str | None, typer.Option("--target", help="The class to explain.")] = None,
    trusted: Annotated[bool, typer.Option("--trusted", help="Allow a model file that runs code when it is loaded.")] = False,
    answer: Annotated[str, typer.Option("--answer", help="What the model is asked for: probability or class.")] = "probability",
    unit: Annotated[str | None, typer.Option("--unit", help="The column that says who owns a row.")] = None,
    max_rows: Annotated[int, typer.Option("--max-rows-per-unit", min=1, help="Rows kept for each owner.")] = 1,
    relation: Annotated[str, typer.Option("--relation", help="add-remove or replace-one.")] = "add-remove",
    size: Annotated[
        int | None, typer.Option("--size", help="The public row count; without it the true one is stated as public.")
    ] = None,
    ledger: Annotated[
        str | None, typer.Option("--ledger", help="Where spending is kept: sqlite:///file.ledger, postgresql://…")
    ] = None,
    total: Annotated[
        float | None, typer.Option("--budget", help="The account's whole ε, if the release is to use a part of it.")
    ] = None,
    request: Annotated[
        str | None,
        typer.Option("--request-id", help="Names this release in the ledger: asked for again, it is free and the same."),
    ] = None,
    stream: Annotated[
        bool | None,
        typer.Option(
            "--stream/--in-memory", help="Read the files a part at a time; by default when they would not fit into memory."
        ),
    ] = None,
    name: Annotated[str, typer.Option("--name", help="The data set's name in the ledger.")] = "data",
    reference: Annotated[
        bool, typer.Option("--reference", help="Add private reference records, labelled by --model, for any locality.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the output.")] = False,
    as_json: Json = False,
) -> None:
    """Pay once: write a release that explains any number of records without the private data."""
    require_new(output, force)
    if reference and model is None:
        raise ParameterError(
            "reference records are labelled by the model: pass --model instead of --label, or leave --reference out"
        )
    opened = None if model is None else ModelSource(model, trusted)
    terms = Terms(
        target=target_of(target, opened),
        output=output_of(answer),
        unit=unit,
        max_rows_per_unit=max_rows,
        relation=relation,
        size=size,
        name=name,
    )
    spend = Budget(epsilon, delta)
    source = decided(DataSource(data, Domain.load(domain), label, opened, terms, stream=stream))
    private = register(source, labelling, bars=True, keep_model=reference)
    with (
        nullcontext() if source.stream or reference else Console(stderr=True).status("Releasing")
    ):  # these have bars of their own
        budget = Budget(total or epsilon, delta)
        made = make_release(private, budget, spend=spend, ledger=ledger, request_id=request, reference=reference)
    made.save(output)
    if as_json:
        print(
            json.dumps(
                {
                    "file": str(output),
                    "guarantee": made.guarantee.to_dict(),
                    "spent": private.spent.to_dict(),
                    "columns": list(made.names),
                }
            )
        )
        return
    print(f"Wrote {output}: {output.stat().st_size:,} bytes, {len(made.names)} columns.")
    print(made.guarantee)
    if ledger is None:
        print("No --ledger was given: nothing remembers this spending but you. A second release of the same rows adds to it.")


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
    if output is not None:
        require_writable_kind(output)
    answers = made.explain_many(read_queries(rows, made.domain))
    if output is not None:
        write_explanations(output, made.names, answers)
        print(
            f"Wrote {output}: {len(answers):,} explanations."
            if not as_json
            else json.dumps({"file": str(output), "explanations": len(answers)})
        )
    elif as_json:
        print(json.dumps([one.to_dict() for one in answers], ensure_ascii=False))
    else:
        raise ParameterError("many explanations need a place. Pass -o explanations.parquet, or --json to print them")


def require_new(path: Path, force: bool) -> None:
    """A release cannot be had again for free, so it is not overwritten by accident; and nothing is spent on a file that cannot be written."""
    if path.exists() and not force:
        raise ParameterError(f"{path} exists already. Name another file, or pass --force to overwrite it")
    if not path.absolute().parent.is_dir():
        raise ParameterError(f"there is no folder {path.parent} to write {path.name} to. Make it first")


def parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise QueryError("the record is not JSON. Write --record '{\"age\": 40, …}', in single quotes for the shell") from None


def target_of(text: str | None, model: ModelSource | None) -> Any:
    """A model's classes may be numbers: a target that reads as a whole number is one."""
    if text is None or model is None:
        return text
    try:
        return int(text)
    except ValueError:
        return text


def output_of(text: str) -> Output:
    if text not in ("probability", "class"):
        raise ParameterError(f"--answer must be probability or class, got {text!r}")
    return "class" if text == "class" else "probability"


def labelling(starts: range) -> Any:
    """A bar while the black box is asked, where a person is watching."""
    console = Console(stderr=True)
    return track(starts, "Asking the model", console=console, transient=True, disable=not console.is_terminal)
