"""The command line: one file per command group, registered here."""

from __future__ import annotations

import typer

from dpexplain.cli import ledger

app = typer.Typer(
    name="dpexplain",
    help="Explain black-box models to anyone without exposing anyone in the data.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def main() -> None:
    """Explain black-box models to anyone without exposing anyone in the data."""


app.add_typer(ledger.app, name="ledger")
