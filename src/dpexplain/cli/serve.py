"""`dpexplain serve service.toml`, and `dpexplain serve keys add | list | revoke`: answer others over HTTP."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from typer.core import TyperGroup

from dpexplain.cli.data_options import with_labelling_bar
from dpexplain.cli.exits import exit_on_error
from dpexplain.cli.shared_options import Json
from dpexplain.errors import ParameterError
from dpexplain.service.keys import KeyFile


class FileFirst(TyperGroup):
    """`serve service.toml` is short for `serve run service.toml`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=FileFirst,
    help="Serve explanations over HTTP: an API and a page, with one budget.",
    epilog="Example: dpexplain serve service.toml",
    no_args_is_help=True,
)
keys = typer.Typer(help="Manage API keys, which are stored as salted hashes.", no_args_is_help=True)
app.add_typer(keys, name="keys")

Config = Annotated[Path, typer.Option("--config", "-c", help="The service.toml that names the file of keys.")]
Keys = Annotated[Path | None, typer.Option("--keys", help="The file of keys itself.")]


@app.command(epilog="Example: dpexplain serve service.toml --port 8000")
@exit_on_error
def run(
    config: Annotated[Path, typer.Argument(metavar="SERVICE.toml", help="What to serve (docs/service.md).")],
    host: Annotated[str | None, typer.Option("--host", help="Overrides [service] host.")] = None,
    port: Annotated[int | None, typer.Option("--port", min=1, max=65535, help="Overrides [service] port.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Load everything, print what would be served, and stop.")] = False,
) -> None:
    """Serve explanations until stopped; requests under way are finished first."""
    for needed in ("fastapi", "uvicorn"):
        if find_spec(needed) is None:
            raise ParameterError(f"serving needs {needed}. Run: pip install 'dpexplain[service]'")
    from dpexplain.service.backend import open_backend
    from dpexplain.service.config import load_config
    from dpexplain.service.run import serve

    wanted = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    loaded = load_config(config)
    loaded = replace(loaded, settings=replace(loaded.settings, **wanted))  # type: ignore[arg-type]
    if check:
        backend = open_backend(loaded, with_labelling_bar)
        print(f"{loaded.settings.name}: {json.dumps(backend.about)}")
        print(backend.spending().spent)
        backend.close()
        return
    serve(loaded, with_labelling_bar, report=lambda text: Console(stderr=True).print(text, markup=False, highlight=False))


@keys.command(epilog="Example: dpexplain serve keys add --role analyst --name 'City audit office'")
@exit_on_error
def add(
    role: Annotated[
        str, typer.Option("--role", help="analyst: may ask. owner: may also read the archive and the ledger.")
    ] = "analyst",
    name: Annotated[str, typer.Option("--name", help="Name of the key's holder.")] = "",
    config: Config = Path("service.toml"),
    file: Keys = None,
    as_json: Json = False,
) -> None:
    """Add a key and print it once."""
    key = key_file(config, file).add(role, name)
    if as_json:
        print(json.dumps({"key": key, "role": role, "name": name}))
        return
    print(key)
    Console(stderr=True).print("This is shown once; only its hash is stored.", highlight=False)


@keys.command(name="list", epilog="Example: dpexplain serve keys list")
@exit_on_error
def list_keys(
    config: Config = Path("service.toml"),
    file: Keys = None,
    as_json: Json = False,
) -> None:
    """List ids, roles and names, but not the keys."""
    found = [
        {"id": key.id, "role": key.role, "name": key.name, "created": key.created} for key in key_file(config, file).list_keys()
    ]
    if as_json:
        print(json.dumps(found, indent=2))
        return
    table = Table("id", "role", "name", "created")
    for key in found:
        table.add_row(*key.values())
    Console().print(table)


@keys.command(epilog="Example: dpexplain serve keys revoke 1f0c9a7be2d4")
@exit_on_error
def revoke(
    identity: Annotated[str, typer.Argument(metavar="ID", help="From `dpexplain serve keys list`.")],
    config: Config = Path("service.toml"),
    file: Keys = None,
) -> None:
    """Revoke a key. Running services refuse it at once."""
    key_file(config, file).revoke(identity)
    print(f"Revoked {identity}.")


def key_file(config: Path, file: Path | None) -> KeyFile:
    if file is not None:
        return KeyFile(file)
    from dpexplain.service.config import load_config

    found = load_config(config).keys
    if found is None:
        raise ParameterError(
            f'{config} is open to anyone and has no keys. Set keys = "keys.json" under [service], or pass --keys'
        )
    return KeyFile(found)
