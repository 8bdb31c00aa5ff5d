"""Writes heads of a ledger to a file. Stored away from the ledger, it shows whether an older copy was put in the ledger's place."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from dpexplain.arguments import require_regular_file
from dpexplain.errors import LedgerCorrupt, ParameterError
from dpexplain.ledger.chain import RESTORE, head_of
from dpexplain.ledger.port import Head, Ledger

FORMAT = "dpexplain-ledger-heads-1"


def head_to_dict(head: Head) -> dict[str, Any]:
    return {"sequence": head.sequence, "hash": head.hash, "total": str(head.total)}


def head_from_dict(value: dict[str, Any]) -> Head:
    return Head(int(value["sequence"]), str(value["hash"]), int(value["total"]))


def write_heads(path: Path, heads: dict[str, Head]) -> None:
    """One head for each data set, replacing the file in one step."""
    text = json.dumps({"format": FORMAT, "heads": {name: head_to_dict(head) for name, head in sorted(heads.items())}}, indent=2)
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        draft.write_text(text + "\n", encoding="utf-8")
        os.replace(draft, path)
    except OSError as error:
        raise ParameterError(f"cannot write {path} ({error.strerror}). Choose a file in a directory you may write.") from None


def read_heads(path: Path) -> dict[str, Head]:
    require_regular_file(path)
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        if value["format"] != FORMAT:
            raise ValueError(FORMAT)
        return {name: head_from_dict(head) for name, head in value["heads"].items()}
    except OSError as error:
        raise ParameterError(f"cannot read {path} ({error.strerror}). Name a file written by `verify --save-head`.") from None
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        raise ParameterError(f"{path} holds no heads. Name a file written by `dpexplain ledger verify --save-head`.") from None


def require_head(ledger: Ledger, head: Head) -> None:
    """Raise LedgerCorrupt unless the ledger contains `head`: it was rolled back or rewritten since."""
    end = ledger.head()
    if end.sequence < head.sequence:
        what = f"ends with entry {end.sequence} and ended with {head.sequence} before: it was rolled back to an older copy, or created again"
        raise LedgerCorrupt(f"the ledger of {ledger.account.dataset!r} {what}. {RESTORE}")
    found = next(iter(ledger.entries(after=head.sequence - 1)))
    if head_of(found) != head:
        what = f"has a different entry {head.sequence} than before: its history was rewritten"
        raise LedgerCorrupt(f"the ledger of {ledger.account.dataset!r} {what}. {RESTORE}")
