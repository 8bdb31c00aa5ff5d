"""`dpexplain publish`: a release as one page that anyone can open."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpexplain.cli.data_options import Trusted
from dpexplain.cli.exits import exit_on_error
from dpexplain.cli.shared_options import File, Force, require_new
from dpexplain.errors import ParameterError
from dpexplain.release.release import load


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: dpexplain publish income.dpx -o income.html --surrogate --model model.onnx")(
        exit_on_error(publish)
    )


def publish(
    file: File,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")],
    title: Annotated[str | None, typer.Option("--title", help="The page's heading.")] = None,
    outcome: Annotated[
        str | None, typer.Option("--outcome", help='What a positive effect leads towards: "an income above 50k".')
    ] = None,
    surrogate: Annotated[
        bool,
        typer.Option(
            "--surrogate",
            help="Add a surrogate of the model, with answers and SHAP values. It reveals how the model behaves.",
        ),
    ] = False,
    model: Annotated[
        str | None, typer.Option("--model", help="The model, to measure the surrogate's errors; only with --surrogate.")
    ] = None,
    target: Annotated[str | None, typer.Option("--target", help="The class of --model.")] = None,
    trusted: Trusted = False,
    force: Force = False,
) -> None:
    """Write one self-contained interactive page that anyone can open, offline.

    If the release has several classes or models, the reader chooses among them.
    """
    require_new(output, force)
    if model is not None and not surrogate:
        raise ParameterError(
            "--model measures the errors of a surrogate, which was not asked for. Pass --surrogate too, or leave --model out"
        )
    options = {key: value for key, value in (("title", title), ("outcome", outcome)) if value is not None}
    made = load(file)
    if surrogate:
        from dpexplain.cli.shapley_request import ShapleyRequest

        asked = ShapleyRequest("surrogate", model, target, trusted)
        made.publish(output, **options, surrogate=asked.labeller(made) or True)
    else:
        made.publish(output, **options)
    print(f"Wrote {output}: {output.stat().st_size:,} bytes, no network needed.")
