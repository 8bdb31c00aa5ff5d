"""`dpexplain rehearse`: measures, on the owner's own rows, the quality of a release. Not private, and spends nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

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
from dpexplain.cli.shared_options import Force, Json
from dpexplain.core.weights import from_text

if TYPE_CHECKING:
    from dpexplain.data import PrivateData

EXAMPLE = (
    "Example: dpexplain rehearse data.parquet --domain domain.toml --model model.onnx --epsilon 0.1 --epsilon 1 -o rehearsal"
)


Epsilons = Annotated[
    list[float] | None,
    typer.Option("--epsilon", metavar="<float>", help="Total ε; may be repeated. Default: 0.1, 0.3 and 1."),
]
Delta = Annotated[float, typer.Option("--delta", help="The δ of each.")]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Folder for rehearsal.html, .png and .json. Not private: do not share it."),
]
Ways = Annotated[
    list[str] | None,
    typer.Option("--way", metavar="<str>", help="release, reference, basic or adaptive; may be repeated. Default: release."),
]
Questions = Annotated[
    Path | None,
    typer.Option(
        "--questions", help="Records to explain: .csv, .json, .jsonl, .parquet or .arrow. Default: private rows drawn at random."
    ),
]
Queries = Annotated[int, typer.Option("--queries", min=1, metavar="N", help="Number of private rows to explain.")]
Draws = Annotated[int, typer.Option("--draws", min=1, metavar="N", help="Noise draws for each ε.")]
Locality = Annotated[str | None, typer.Option("--weight", help="The locality, such as stable, gaussian:0.8 or nearest:2000.")]
Plane = Annotated[str, typer.Option("--plane", help="fitted, anchored or paper.")]
Groups = Annotated[
    list[str] | None,
    typer.Option("--group", metavar="<str>", help="A feature to group people by; may be repeated. Default: all features."),
]
Seed = Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Seed of rows and noise.")]


def add_to(app: typer.Typer) -> None:
    app.command(epilog=EXAMPLE)(exit_on_error(rehearse))


def rehearse(
    data: Rows,
    domain: Public,
    epsilon: Epsilons = None,
    delta: Delta = 1e-6,
    output: Output = None,
    way: Ways = None,
    questions: Questions = None,
    queries: Queries = 40,
    draws: Draws = 5,
    weight: Locality = None,
    plane: Plane = "fitted",
    group: Groups = None,
    seed: Seed = 0,
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
    stream: Stream = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Compare releases at several ε with exact answers on your own rows. Not private, for the owner only; spends nothing."""
    from dpexplain.data import PrivateData
    from dpexplain.evaluation.rehearsal.owner_files import require_folder
    from dpexplain.evaluation.rehearsal.rehearse import Way
    from dpexplain.evaluation.rehearsal.rehearse import rehearse as run
    from dpexplain.registration.sources import register

    if output is not None:
        require_folder(output, force=force)
    options: dict[str, Any] = {"delta": delta, "queries": queries, "draws": draws, "plane": plane, "seed": seed}
    options |= {"weight": None if weight is None else from_text(weight), "groups": group or None}
    terms = {"unit": unit, "max_rows_per_unit": max_rows, "relation": relation, "size": size}
    answers = DeclaredModel(model, trusted, target, answer, bounds)
    source = data_source(data, domain, label, answers, terms, stream)
    private = PrivateData.from_registered(register(source, with_labelling_bar, bars=True, keep_model=model is not None))
    found = run(
        private,
        epsilon or (0.1, 0.3, 1.0),
        ways=cast(list[Way], way or ["release"]),
        records=_records_of(questions, private),
        **options,
    )
    written = [] if output is None else found.save(output, force=force)
    if as_json:
        print(json.dumps({**found.to_dict(), "files": [str(one) for one in written]}, ensure_ascii=False, indent=2))
        return
    console = Console()
    console.print(found)
    for path in written:
        console.print(f"Wrote {path}, readable by you alone.", markup=False, highlight=False)
    console.print("Nothing was spent.")


def _records_of(path: Path | None, private: PrivateData) -> Any:
    """Records in a file; None where there is none."""
    from dpexplain.registration.tables import read_query_file

    return None if path is None else read_query_file(path, private.domain)
