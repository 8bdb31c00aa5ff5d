"""The command line: one file per command group, registered here. Heavy imports wait inside the commands, so that --help is quick."""

from __future__ import annotations

from typing import Annotated

import typer

from dpexplain.cli import (
    audit,
    bench,
    card,
    check,
    demo,
    domain,
    explain,
    ledger,
    plan,
    publish,
    rehearse,
    release,
    reproduce,
    serve,
)
from dpexplain.version import __version__

app = typer.Typer(
    name="dpexplain",
    help="Explain black-box models to anyone without exposing anyone in the data.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


@app.callback(epilog="Completion for your shell: dpexplain --install-completion")
def main(
    version: Annotated[bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Explain black-box models to anyone without exposing anyone in the data."""
    del version  # its callback has printed it


demo.add_to(app)
plan.add_to(app)
app.add_typer(domain.app, name="domain")
check.add_to(app)
rehearse.add_to(app)
release.add_to(app)
explain.add_to(app)
publish.add_to(app)
card.add_to(app)
app.add_typer(serve.app, name="serve")
app.add_typer(ledger.app, name="ledger")
audit.add_to(app)
reproduce.add_to(app)
bench.add_to(app)
