"""`dpexplain check`: checks data, domain and model before anything is paid, from public facts and the model alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpexplain.cli.data_options import Answer, Bounds, Target, Trusted, bounds_of, output_of, target_of
from dpexplain.cli.exits import BAD_INPUT, exit_on_error, with_options
from dpexplain.cli.shared_options import Json
from dpexplain.errors import ParameterError

if TYPE_CHECKING:
    from dpexplain.onboarding.checks import CheckReport


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Example: dpexplain check --domain domain.toml --model model.onnx --rows 50000 --epsilon 1")(
        exit_on_error(check)
    )


def check(
    config: Annotated[
        Path | None, typer.Argument(metavar="SERVICE.toml", help="A service configuration with a domain and a model.")
    ] = None,
    domain: Annotated[Path | None, typer.Option("--domain", help="A domain file: .toml or .json.")] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", help="A model: .onnx, .skops, .joblib (with --trusted), a KServe address, module:function."),
    ] = None,
    trusted: Trusted = False,
    target: Target = None,
    answer: Answer = None,
    bounds: Bounds = None,
    rows: Annotated[
        int | None, typer.Option("--rows", min=1, metavar="N", help="Number of private rows, which is public.")
    ] = None,
    epsilon: Annotated[float | None, typer.Option("--epsilon", help="The ε you plan to spend.")] = None,
    delta: Annotated[float, typer.Option("--delta", help="Its δ.")] = 1e-6,
    as_json: Json = False,
) -> None:
    """Check a domain and a model with synthetic records. No private row is read and nothing is spent."""
    from dpexplain.privacy.budget import Budget

    budget = None if epsilon is None else Budget(epsilon, delta)
    options: dict[str, Any] = {"output": output_of(answer), "bounds": bounds_of(bounds)}
    report = (
        _of_config(config, rows, budget)
        if config is not None
        else _of_files(domain, model, trusted, target, rows, budget, options)
    )
    print(
        json.dumps(report.to_dict(), ensure_ascii=False) if as_json else with_options(str(report), ("answer", "bounds", "target"))
    )
    if not report.ok:
        raise typer.Exit(BAD_INPUT)


def _of_files(
    domain: Path | None,
    model: str | None,
    trusted: bool,
    target: str | None,
    rows: int | None,
    budget: Any,
    options: dict[str, Any],
) -> CheckReport:
    from dpexplain.domain import Domain
    from dpexplain.onboarding.checks import check as check_all
    from dpexplain.registration.model_sources import ModelSource

    if domain is None or model is None:
        lacking = (
            "--domain and --model" if domain is None and model is None else "--domain too" if domain is None else "--model too"
        )
        raise ParameterError(f"a domain is checked together with a model. Pass {lacking}, or a service's configuration")
    declared, source = Domain.load(domain), ModelSource(model, trusted)
    if target is not None:
        options["target"] = target_of(target, source)
    return check_all(declared, budget, model=source.open(declared), rows=rows, frame="pyarrow", **options)


def _of_config(config: Path, rows: int | None, budget: Any) -> CheckReport:
    from dpexplain.onboarding.checks import check as check_all
    from dpexplain.service.config import load_config

    found = load_config(config)
    if found.rows is None or found.rows.source.model is None:
        raise ParameterError(
            f"{config} serves a release, or labels from a column. There is no model to ask. Pass --domain and --model"
        )
    source = found.rows.source
    assert source.model is not None
    options = {"target": source.terms.target, "output": source.terms.output, "bounds": source.terms.bounds}
    opened = source.model.open(source.domain)
    return check_all(
        source.domain, budget or found.rows.budget, model=opened, rows=rows or source.terms.size, frame="pyarrow", **options
    )
