"""`dpexplain ledger show | verify | export | total`: reads a ledger without changing it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Annotated, Any

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from dpexplain.cli.exits import INTEGRITY, exit_on_error, print_error
from dpexplain.cli.shared_options import Json, describe_count
from dpexplain.errors import IntegrityError, ParameterError
from dpexplain.ledger import Account, Entry, Head, Ledger, VerificationReport, open_existing, verify
from dpexplain.ledger.anchor import head_from_dict, head_to_dict, read_heads, write_heads
from dpexplain.ledger.chain import RESTORE, seal
from dpexplain.privacy.budget import Guarantee, round_up
from dpexplain.privacy.filter import Filter

app = typer.Typer(help="Read a ledger: what was spent, whether it is intact, all its entries.", no_args_is_help=True)

Url = Annotated[str, typer.Argument(metavar="URL", help="sqlite:///file.ledger or postgresql://user@host/database")]
Dataset = Annotated[str | None, typer.Option("--dataset", help="Only this data set's account.")]


@app.command(epilog="Example: dpexplain ledger show sqlite:///income.ledger")
@exit_on_error
def show(
    url: Url,
    dataset: Dataset = None,
    last: Annotated[int, typer.Option("--last", min=0, help="Number of newest entries; 0 for all.")] = 20,
    as_json: Json = False,
) -> None:
    """Show entries with time, cost and running (ε, δ)."""
    with accounts(url, dataset) as ledgers:
        if as_json:
            print(json.dumps([summary(ledger) | {"entries": lines(ledger, last)} for ledger in ledgers], indent=2))
        else:
            for ledger in ledgers:
                show_account(ledger, last)


@app.command(name="verify", epilog="Example: dpexplain ledger verify sqlite:///income.ledger --head heads.json")
@exit_on_error
def verify_command(
    url: Url,
    dataset: Dataset = None,
    head: Annotated[Path | None, typer.Option("--head", help="Heads stored earlier, to detect a roll-back.")] = None,
    save_head: Annotated[
        Path | None, typer.Option("--save-head", help="File for the verified heads. Store it on another machine.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check every entry; exit 4 if anything was edited, removed, reordered, cut or (with --head) rolled back."""
    kept = {} if head is None else read_heads(head)
    with accounts(url, dataset) as ledgers:
        results = [verify_account(ledger, kept.get(ledger.account.dataset)) for ledger in ledgers]
    if dataset is None:
        results += [missing_account(name) for name in kept if name not in {result["dataset"] for result in results}]
    print_results(results, as_json)
    if not all(result["ok"] for result in results):
        raise typer.Exit(INTEGRITY)
    if save_head is not None:
        write_heads(save_head, kept | {result["dataset"]: head_from_dict(result["head"]) for result in results})


@app.command(epilog="Example: dpexplain ledger export sqlite:///income.ledger -o entries.jsonl")
@exit_on_error
def export(
    url: Url,
    dataset: Dataset = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Output file. Default: standard output.")] = None,
) -> None:
    """Write every entry as one line of JSON with its hash."""
    with accounts(url, dataset) as ledgers, open_output(output) as out:
        for ledger in ledgers:
            for entry in ledger.entries():
                row = seal(entry)
                name = json.dumps(ledger.account.dataset)
                out.write(f'{{"dataset":{name},"hash":"{row.hash}","entry":{row.document}}}\n')


@app.command(epilog="Example: dpexplain ledger total sqlite:///income-2026.ledger sqlite:///income-2027.ledger")
@exit_on_error
def total(
    urls: Annotated[list[str], typer.Argument(metavar="URL…", help="Ledgers about the same people.")],
    as_json: Json = False,
) -> None:
    """Compose the spending of several accounts about the same people into one (ε, δ)."""
    spent: list[tuple[Account, Filter]] = []
    for url in urls:
        with accounts(url, None) as ledgers:
            spent += [(one.account, one.state()) for one in ledgers]
    if not spent:
        raise ParameterError("there is no account in these ledgers. Name ledgers that were spent from")
    together = combine_guarantees(spent)
    if as_json:
        print(json.dumps({"accounts": [account.dataset for account, _ in spent], "spent": together.to_dict()}, indent=2))
    else:
        print(together)


def combine_guarantees(spent: list[tuple[Account, Filter]]) -> Guarantee:
    """GDP composes by adding μ², across accounts as within one; stated at the smallest δ and for the relation they share."""
    relations = {account.neighbours for account, _ in spent}
    if len(relations) > 1:
        raise ParameterError(
            "these accounts protect different units or relations, so they have no common statement. Name those that agree"
        )
    delta = min(account.budget.delta for account, _ in spent)
    total = Guarantee.of_quanta(sum(state.spent_quanta for _, state in spent), delta, relations.pop())
    return total.qualify({use for _, state in spent for use in state.uses})


@contextmanager
def accounts(url: str, dataset: str | None) -> Iterator[list[Ledger]]:
    ledgers = open_existing(url)
    chosen: list[Ledger] = [ledger for ledger in ledgers if dataset in (None, ledger.account.dataset)]
    if dataset is not None and not chosen:
        names = ", ".join(repr(ledger.account.dataset) for ledger in ledgers) or "none"
        raise ParameterError(f"the ledger has no account for data set {dataset!r}. It has {names}.")
    try:
        yield chosen
    finally:
        for ledger in ledgers:
            ledger.close()


@contextmanager
def open_output(output: Path | None) -> Iterator[IO[str]]:
    """Standard output, or a file. A new file can be read by its owner only: entries hold what was asked."""
    if output is None:
        yield sys.stdout
        return
    try:
        handle = os.fdopen(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8")
    except OSError as error:
        raise ParameterError(f"cannot write {output} ({error.strerror}). Choose a file in a directory you may write.") from None
    with closing(handle):
        yield handle


def verify_account(ledger: Ledger, head: Head | None) -> dict[str, Any]:
    name = ledger.account.dataset
    try:
        return {"dataset": name, "ok": True, "anchored": head is not None, **as_result(verify(ledger, head))}
    except IntegrityError as error:
        return {"dataset": name, "ok": False, "anchored": head is not None, "error": str(error)}


def as_result(found: VerificationReport) -> dict[str, Any]:
    counts = {"entries": found.head.sequence, "answers": found.answers, "pending": found.pending}
    return {**counts, "uses": list(found.uses), "head": head_to_dict(found.head)}


def missing_account(name: str) -> dict[str, Any]:
    return {"dataset": name, "ok": False, "anchored": True, "error": f"the account {name!r} is gone from the ledger. {RESTORE}"}


def print_results(results: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print(json.dumps(results, indent=2))
    for result in results:
        if not result["ok"]:
            print_error(f"{result['dataset']}: {result['error']}")
        elif not as_json:
            print(verified_sentence(result))


def verified_sentence(result: dict[str, Any]) -> str:
    head, anchor = (
        result["head"],
        "" if result["anchored"] else " No --head was given, so a roll-back to an older copy would not be detected.",
    )
    counts = f"{describe_count(result['entries'], 'entry', 'entries')}, {describe_count(result['answers'], 'answer')}, "
    counts += f"{describe_count(result['pending'], 'reservation')} open"
    used = f" It was used with {' and '.join(result['uses'])}." if result["uses"] else ""
    return f"{result['dataset']}: whole. {counts}; head {head['sequence']} {head['hash'][:16]}….{used}{anchor}"


def summary(ledger: Ledger) -> dict[str, Any]:
    state = ledger.state()
    return {
        "account": ledger.account.to_dict(),
        "head": head_to_dict(ledger.head()),
        "spent": spent_from(ledger).to_dict(),
        "remaining": state.remaining.to_dict(),
    }


def spent_from(ledger: Ledger) -> Guarantee:
    """Everything that was paid for. What is reserved without an answer counts, and is not called released."""
    spent, answered = ledger.state().spent, 1 + 2 * ledger.answer_count()  # the account, and a reservation and an answer each
    return spent if ledger.head().sequence == answered else replace(spent, subject="Everything released or reserved so far")


def newest_entries(ledger: Ledger, last: int) -> Iterator[Entry]:
    return ledger.entries(after=max(ledger.head().sequence - last, 0) if last else 0)


def lines(ledger: Ledger, last: int) -> list[dict[str, Any]]:
    return [line(ledger, entry) for entry in newest_entries(ledger, last)]


def line(ledger: Ledger, entry: Entry) -> dict[str, Any]:
    """One entry as text: its cost and the running total as ε at the account's δ, never rounded down."""
    account = ledger.account

    def epsilon(quanta: int) -> float:
        return Guarantee.of_quanta(quanta, account.budget.delta, account.neighbours).epsilon if quanta else 0.0

    return {
        "sequence": entry.sequence,
        "time": entry.time,
        "kind": entry.kind,
        "request": entry.request,
        "what": describe_events(entry),
        "epsilon": epsilon(entry.quanta),
        "running_epsilon": epsilon(entry.total),
        "delta": account.budget.delta,
        "quanta": str(entry.quanta),
        "total": str(entry.total),
    }


def describe_events(entry: Entry) -> str:
    """What was paid for, from the events' own names."""
    events = entry.body.get("events", [])
    named = [f"{event.get('count', 1)} × {event['what']}" if event.get("count", 1) != 1 else event["what"] for event in events]
    return ", ".join(named) or {"open": "account opened", "refund": "given back"}.get(entry.kind, "free")


def show_account(ledger: Ledger, last: int) -> None:
    console, left = Console(), ledger.state().remaining
    console.print(heading(ledger), table(ledger, newest_entries(ledger, last)), sep="\n", markup=False, highlight=False)
    console.print(str(spent_from(ledger)), markup=False, highlight=False, soft_wrap=True)
    console.print(f"Left: ε={left.epsilon:.3g} in one release.", markup=False, highlight=False)


def heading(ledger: Ledger) -> str:
    account = ledger.account
    budget = f"budget ε={account.budget.epsilon:g}, δ={account.budget.delta:g}"
    return f"{account.dataset}: {budget}, for {account.neighbours.describe()}"


def table(ledger: Ledger, entries: Iterable[Entry]) -> Table:
    delta = ledger.account.budget.delta
    shown = Table("#", Column("when (UTC)", no_wrap=True), "entry", "request", "what", "cost ε", f"running ε at δ={delta:g}")
    for entry in entries:
        shown.add_row(*(Text(cell) for cell in cells(line(ledger, entry))))
    return shown


def cells(entry: dict[str, Any]) -> tuple[str, ...]:
    cost = {"open": "", "refund": "-"}.get(entry["kind"], round_up(entry["epsilon"]))
    when = entry["time"][:19].replace("T", " ")
    return str(entry["sequence"]), when, entry["kind"], entry["request"], entry["what"], cost, round_up(entry["running_epsilon"])
